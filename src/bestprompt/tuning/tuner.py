"""β and γ by simulation (paper: "Hyperparameter Selection in Acquisition Function"): try on the twin, keep the best.

Notation (paper symbol → name):
    (β_t^(q), γ^(q))   candidate pair: b sqrt(2 ln t), c·spread/sqrt(m + offset)   → ``pairs``          (Q, 2)
    ṽ(z_n)             synthetic score                                             → inside ``simulate``
    z_n*^(q)           prompt selected under pair q                                → its value in ``Tuning.values``

The simulated belief is Gaussian in low-rank form, Cov(v) = F C Fᵀ with C (p, p). Observing row i with noise R:
    c = F C f_i,  S = σ_i² + R,  μ += c (ṽ − μ_i)/S,  σ² −= c²/S,  C −= (C f_i)(C f_i)ᵀ/S,
so a step of all Q·M simulations is one matrix product with F. Everything runs in one compiled program.

Deviation, by default: ``truth="draw"`` draws the true surface from the kriging posterior anew in each of M
macro-replications, and judges by its value at the selected prompt. The paper (``truth="mean"``) takes μ_SK itself as
the truth and adds σ²_SK to the noise: a belief that starts at μ_SK then knows the truth from the outset, and the
simulation cannot price exploration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import qmc

from bestprompt.acquisition.functions import CountGamma, LogBeta, ModifiedUCB
from bestprompt.tuning.synthetic import Twin
from bestprompt.types import Evidence, FloatArray

State = tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]

DEFAULT_GRID: tuple[tuple[float, float], ...] = tuple(
    (b, c) for b in (0.05, 0.15, 0.3, 0.6, 1.0) for c in (0.0, 0.05, 0.2, 0.6)
)


@dataclass(frozen=True, slots=True)
class Tuning:
    """What was tried and what it was worth.

    Attributes:
        beta: The chosen b.
        gamma: The chosen c, in units of ``spread``.
        spread: Standard deviation of the twin's scores.
        offset: m₀ in γ(m) = c·spread/sqrt(m + m₀).
        pairs: (Q, 2) all pairs tried.
        values: (Q,) mean true score of the selected prompt.
        standard_errors: (Q,) of those means over macro-replications (common random numbers, so differences are
            tighter).
    """

    beta: float
    gamma: float
    spread: float
    offset: float
    pairs: FloatArray
    values: FloatArray
    standard_errors: FloatArray

    def acquisition(self) -> ModifiedUCB:
        """M-UCB with the chosen pair."""
        return ModifiedUCB(LogBeta(self.beta), CountGamma(self.gamma * self.spread, self.offset))


@dataclass(frozen=True, slots=True)
class Tuner:
    """The recipe.

    Attributes:
        n_replications: M, macro-replications; every pair meets the same ones.
        truth: ``"draw"`` (default) or ``"mean"`` (the paper).
        select: Selection rule at the end: by posterior mean (default) or by highest observed mean (the paper).
        offset: m₀; 1 by default, 0 in the paper.
    """

    n_replications: int = 32
    truth: Literal["draw", "mean"] = "draw"
    select: Literal["posterior", "observed"] = "posterior"
    offset: float = 1.0

    @classmethod
    def paper(cls, n_replications: int = 1) -> Tuner:
        """The appendix to the letter: one run per pair, truth μ_SK, noise σ²_SK + g*, selection by observed mean."""
        return cls(n_replications, "mean", "observed", 0.0)

    def grid(
        self,
        twin: Twin,
        evidence: Evidence,
        budget: int,
        rng: np.random.Generator,
        pairs: Sequence[tuple[float, float]] | FloatArray = DEFAULT_GRID,
        belief: Twin | None = None,
        padded: int = 0,
    ) -> Tuning:
        """The best of a finite set of pairs (b, c) over ``budget`` further evaluations.

        Args:
            twin: The synthetic scorer.
            evidence: The warm-up, whose counts and means the simulated runs start from.
            budget: Evaluations left, T − T_W.
            rng: All pairs share its draws.
            pairs: (Q, 2) candidates.
            belief: What the surrogate believes after the warm-up, e.g. ``twin_of(posterior, noise)``; the twin itself
                by default.
            padded: Steps of the compiled program, of which ``budget`` are made: one program serves all shorter budgets.
        """
        tried = np.asarray(pairs, dtype=np.float64)
        start = twin if belief is None else belief
        errors = np.full((self.n_replications, max(budget, padded)), np.nan)
        surface = rng.standard_normal((self.n_replications, twin.factor.shape[1])) @ twin.factor.T
        if self.truth == "draw":
            truth, noise = twin.mean + surface, twin.noise
        else:
            truth, noise = np.broadcast_to(twin.mean, surface.shape), twin.variance + twin.noise
        errors[:, :budget] = rng.standard_normal((self.n_replications, budget))
        # Stands for γ(0) = ∞ where m₀ = 0: first in line, yet small enough for single precision to order the rest.
        at_zero = 100.0 * twin.spread * (1.0 + float(tried[:, 1].max()))
        outcomes = simulate(
            *(_single(x) for x in (start.mean, start.factor, twin.noise, truth, noise, errors)),
            *(_single(x) for x in (evidence.counts, np.where(evidence.counts > 0, evidence.means, 0.0))),
            _single(tried * np.array([1.0, twin.spread])),
            _single(np.array([self.offset, at_zero, max(int(evidence.counts.sum()), 1)])),
            observed_rule=self.select == "observed",
        )
        values = np.asarray(outcomes, dtype=np.float64)
        means = values.mean(axis=1)
        best = int(means.argmax())
        spread = values.std(axis=1, ddof=1) if self.n_replications > 1 else 0.0 * means
        off = spread / np.sqrt(self.n_replications)
        return Tuning(float(tried[best, 0]), float(tried[best, 1]), twin.spread, self.offset, tried, means, off)

    def ranges(
        self,
        twin: Twin,
        evidence: Evidence,
        budget: int,
        rng: np.random.Generator,
        beta: tuple[float, float] = (0.02, 2.0),
        gamma: tuple[float, float] = (0.005, 1.0),
        n_pairs: int = 16,
        rounds: int = 2,
        belief: Twin | None = None,
        padded: int = 0,
    ) -> Tuning:
        """The best over continuous ranges of b and c: space-filling pairs on the log scale, then again around the best.

        Each further round searches a box of half the width (on the log scale) around the best pair so far.
        """
        low, high = np.log([beta[0], gamma[0]]), np.log([beta[1], gamma[1]])
        centre, half = (low + high) / 2, (high - low) / 2
        tunings: list[Tuning] = []
        for _ in range(rounds):
            # A stream keyed by purpose has no seed sequence to spawn from, which the hypercube asks for.
            cube = qmc.LatinHypercube(2, rng=np.random.default_rng(int(rng.integers(2**63)))).random(n_pairs)
            pairs = np.exp(np.clip(centre + half * (2 * cube - 1), low, high))
            tunings.append(self.grid(twin, evidence, budget, rng, pairs, belief, padded))
            champion = max(tunings, key=lambda t: float(t.values.max()))
            centre, half = np.log([champion.beta, champion.gamma]), half / 2
        joined = (
            np.concatenate([getattr(t, name) for t in tunings]) for name in ("pairs", "values", "standard_errors")
        )
        return Tuning(champion.beta, champion.gamma, twin.spread, self.offset, *joined)


def _single(x: np.ndarray) -> np.ndarray:
    return np.asarray(x, dtype=np.float32)


@partial(jax.jit, static_argnames=("observed_rule",))
def simulate(
    mean: jax.Array,
    factor: jax.Array,
    assumed_noise: jax.Array,
    truth: jax.Array,
    true_noise: jax.Array,
    errors: jax.Array,
    counts: jax.Array,
    means: jax.Array,
    pairs: jax.Array,
    settings: jax.Array,
    observed_rule: bool,
) -> jax.Array:
    """(Q, M) true value of the prompt selected by each pair in each macro-replication.

    Args:
        mean: (N,) belief before the simulated evaluations.
        factor: (N, p) its covariance's factor.
        assumed_noise: (N,) noise the belief reckons with.
        truth: (M, N) true surfaces.
        true_noise: (N,) variance of a synthetic score.
        errors: (M, T') standard normal errors, one per step, shared by the pairs; NaN for steps that are not made.
        counts: (N,) warm-up evaluations.
        means: (N,) their means.
        pairs: (Q, 2) b and absolute c.
        settings: offset m₀, value standing for γ(0) if m₀ = 0, and warm-up evaluations in all.
        observed_rule: Select by highest observed mean rather than posterior mean.
    """
    offset, at_zero, first_step = settings
    n_steps = errors.shape[1]
    betas = jnp.sqrt(2.0 * jnp.log(first_step + jnp.arange(n_steps)))

    def one(pair: jax.Array, surface: jax.Array, noise_draws: jax.Array) -> jax.Array:
        def step(carry: State, inputs: tuple[jax.Array, jax.Array]) -> tuple[State, None]:
            mu, variance, core, evaluations, totals = carry
            beta, error = inputs
            made = ~jnp.isnan(error)
            error = jnp.where(made, error, 0.0)
            shifted = evaluations + offset
            gamma = jnp.where(shifted > 0, pair[1] / jnp.sqrt(jnp.maximum(shifted, 1e-6)), at_zero * jnp.sign(pair[1]))
            row = jnp.argmax(mu + pair[0] * beta * (jnp.sqrt(variance) + gamma))
            score = surface[row] + jnp.sqrt(true_noise[row]) * error
            direction = core @ factor[row]
            covariance = factor @ direction
            gain = made / (variance[row] + assumed_noise[row])
            return (
                mu + covariance * ((score - mu[row]) * gain),
                jnp.maximum(variance - covariance**2 * gain, 0.0),
                core - jnp.outer(direction, direction) * gain,
                evaluations.at[row].add(1.0 * made),
                totals.at[row].add(score * made),
            ), None

        start = (mean, jnp.sum(factor**2, axis=1), jnp.eye(factor.shape[1], dtype=mean.dtype), counts, counts * means)
        (mu, _, _, evaluations, totals), _ = jax.lax.scan(step, start, (betas, noise_draws))
        averages = jnp.where(evaluations > 0, totals / jnp.maximum(evaluations, 1.0), -jnp.inf)
        return surface[jnp.argmax(averages if observed_rule else mu)]

    over_replications = jax.vmap(one, in_axes=(None, 0, 0))
    return jax.vmap(over_replications, in_axes=(0, None, None))(pairs, truth, errors)
