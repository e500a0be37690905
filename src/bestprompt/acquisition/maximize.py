"""Maximisers of an acquisition function over N candidates: exhaustive, batched with pending evaluations, and PR-M-UCB.

Notation (paper symbol → name):
    α_t(z_n)            acquisition                                   → ``score_at(rows)``  (k,)
    p(z_i; θ)           θ_i / Σθ, θ in [0, 1]^N                       → ``SparseTheta``
    𝔐, 𝔗, I, ℓ_𝔱        starts, iterations, samples, learning rates   → ``Reinforce`` fields
    ∇ log p(z_i; θ)     e_i/θ_i − 1/Σθ   [eq.gradient]                → ``SparseTheta.ascend``
    r_n                 evaluations, pending ones included            → ``counts``          (N,)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bestprompt.acquisition.sparse import SparseTheta
from bestprompt.types import Acquisition, FloatArray, IntArray, Posterior

ScoreAt = Callable[[IntArray], FloatArray]


def _best(values: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    """Positions of the n largest values, best first, ties in random order."""
    order = np.lexsort((rng.random(len(values)), -values))
    return np.asarray(order[:n], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Argmax:
    """The n best of all candidates, ties at random."""

    def __call__(self, score_at: ScoreAt, n_candidates: int, n: int, rng: np.random.Generator) -> IntArray:
        """(min(n, N),) candidates; see :class:`bestprompt.types.Maximizer`."""
        return _best(score_at(np.arange(n_candidates, dtype=np.int64)), n, rng)


def fantasise(posterior: Posterior, row: int, noise: float) -> Posterior:
    """The posterior once an evaluation of ``row`` is under way: imagined to give the mean, it only shrinks the spread.

    σ_j² ← σ_j² − c_j² / (σ_i² + σ_noise²), c_j the covariance of rows j and i among the draws; the draws shrink with
    it (the square-root form of the Kalman update, so that their covariance is updated exactly and no randomness is
    needed). Without draws only row i itself is updated.
    """
    variance = float(posterior.std[row]) ** 2
    if variance == 0.0:
        return posterior
    total = variance + noise
    if posterior.draws is None or len(posterior.draws) < 3:
        std = posterior.std.copy()
        std[row] = np.sqrt(variance * noise / total)
        return Posterior(posterior.mean, std, posterior.draws)
    centre = posterior.draws.mean(axis=0)
    anomalies = posterior.draws - centre
    own = anomalies[:, row]
    # Correlations come from the draws, scales from the posterior's own std, which may be exact where the draws are not.
    sizes = np.sqrt((anomalies**2).sum(axis=0)) * np.sqrt(own @ own)
    correlation = np.divide(own @ anomalies, sizes, out=np.zeros(len(sizes)), where=sizes > 0)
    correlation[row] = 1.0
    std = posterior.std * np.sqrt(np.maximum(1.0 - correlation**2 * (variance / total), 0.0))
    gain = correlation * posterior.std / np.sqrt(variance) * (variance / total)
    damping = 1.0 / (1.0 + np.sqrt(noise / total))
    return Posterior(posterior.mean, std, centre + anomalies - damping * np.outer(own, gain))


def imagine(posterior: Posterior, under_way: IntArray, noise: FloatArray) -> Posterior:
    """The posterior once ``under_way`` (n,) evaluations of each row are; m of one row are one of m-th the noise."""
    for row in np.flatnonzero(under_way).tolist():
        posterior = fantasise(posterior, row, float(noise[row]) / int(under_way[row]))
    return posterior


def batch_argmax(
    posterior: Posterior,
    acquisition: Acquisition,
    counts: IntArray,
    noise: FloatArray,
    step: int,
    n: int,
    rng: np.random.Generator,
    pending: IntArray | None = None,
) -> IntArray:
    """The next ``n`` proposals, to be evaluated at once (a deviation: the paper evaluates one at a time).

    Each proposal, and each evaluation already under way, counts in r_n and in t, and its outcome is fantasised in σ
    before the next is chosen; a candidate may be proposed more than once.

    Args:
        posterior: At all N candidates.
        acquisition: What to maximise.
        counts: (N,) finished evaluations.
        noise: (N,) variance of one evaluation.
        step: t, finished evaluations in all.
        n: Proposals wanted.
        rng: Breaks ties.
        pending: (N,) evaluations under way.
    """
    counts = np.array(counts, dtype=np.int64)
    under_way = np.zeros_like(counts) if pending is None else np.asarray(pending)
    posterior, step = imagine(posterior, under_way, noise), step + int(under_way.sum())
    counts += under_way
    chosen = []
    for _ in range(n):
        row = int(_best(acquisition(posterior, counts, step), 1, rng)[0])
        chosen.append(row)
        posterior, step = fantasise(posterior, row, float(noise[row])), step + 1
        counts[row] += 1
    return np.asarray(chosen, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search leaves behind.

    Attributes:
        theta: θ* of the start whose last samples were worth most.
        rows: (k,) candidates it looked at, each once.
        values: (k,) α at these.
    """

    theta: SparseTheta
    rows: IntArray
    values: FloatArray

    def best(self, n: int, rng: np.random.Generator) -> IntArray:
        """The n best candidates looked at, best first."""
        return np.asarray(self.rows[_best(self.values, n, rng)])


@dataclass(frozen=True, slots=True)
class Reinforce:
    """PR-M-UCB (Alg. 2): gradient ascent on E_p(z;θ)[α(z)], asking for α only where it samples.

    Work and memory do not grow with N (see :mod:`sparse`). θ is projected onto [0, 1]^N after each step. Two additions
    in either mode: a leave-one-out baseline, which keeps the gradient unbiased, and division by the standard
    deviation of α, so that one learning rate serves any level and scale of α; the paper leaves its rates open, and
    without these a rate that suits one α leaves θ where it started for another. ``Reinforce.paper()`` answers by a
    draw from p(z; θ*) as published, and takes the standard deviation among the present samples of a start, a
    normalised gradient (which is no longer unbiased): as p settles on good candidates their differences shrink, and
    the step does not. The defaults return the best candidates *seen* instead, which at large N matters most: θ_i ≤
    1 bounds p(z_i; θ) by 1/Σθ, so within few iterations p stays nearly uniform.

    Attributes:
        starts: 𝔐.
        iterations: 𝔗.
        samples: I.
        rate: ℓ_𝔱 = rate / sqrt(𝔱).
        baseline: ``"leave-one-out"`` or ``None``.
        standardise: Divide α by its standard deviation.
        spread: Of which that is: of all samples so far (``"seen"``), or of a start's present ones (``"sampled"``).
        answer: ``"seen"``, or ``"draw"`` from p(z; θ*) as in the paper.
    """

    starts: int = 8
    iterations: int = 40
    samples: int = 8
    rate: float = 0.3
    baseline: Literal["leave-one-out"] | None = "leave-one-out"
    standardise: bool = True
    spread: Literal["seen", "sampled"] = "seen"
    answer: Literal["seen", "draw"] = "seen"

    @classmethod
    def paper(cls, starts: int = 10, iterations: int = 50, samples: int = 10, rate: float = 30.0) -> Reinforce:
        """Algorithm 2, its step scaled by the spread of α among the samples it is made of."""
        return cls(starts, iterations, samples, rate, spread="sampled", answer="draw")

    def __call__(self, score_at: ScoreAt, n_candidates: int, n: int, rng: np.random.Generator) -> IntArray:
        """(n,) candidates; see :class:`bestprompt.types.Maximizer`.

        ``score_at`` cannot tell how α falls as proposals pile up, so they are chosen as if each were the only one; for
        a batch that counts its own proposals see :func:`bestprompt.acquisition.sampled_batch.sampled_batch`.
        """
        looked = self.look(score_at, n_candidates, rng)
        return looked.theta.sample(n, rng) if self.answer == "draw" else looked.best(n, rng)

    def look(self, score_at: ScoreAt, n_candidates: int, rng: np.random.Generator) -> SearchResult:
        """The search itself: ascends from all starts and remembers α wherever it was asked for."""
        thetas = [SparseTheta(n_candidates, rng) for _ in range(self.starts)]
        seen: dict[int, float] = {}
        values: FloatArray = np.empty((self.starts, self.samples))
        for iteration in range(self.iterations):
            rows = np.stack([theta.sample(self.samples, rng) for theta in thetas])
            values = np.asarray(score_at(rows.reshape(-1))).reshape(rows.shape)
            seen.update(zip(rows.reshape(-1).tolist(), values.reshape(-1).tolist(), strict=True))
            advantages = self._advantages(values, seen)
            for theta, its_rows, its_advantages in zip(thetas, rows, advantages, strict=True):
                theta.ascend(its_rows, its_advantages, self.rate / np.sqrt(iteration + 1.0))
        chosen = thetas[int(values.sum(axis=1).argmax())]
        return SearchResult(chosen, np.array(list(seen), dtype=np.int64), np.array(list(seen.values())))

    def _advantages(self, values: FloatArray, seen: dict[int, float]) -> FloatArray:
        """(𝔐, I) α less its baseline, in the chosen unit."""
        centred = values
        if self.baseline is not None and self.samples > 1:
            # α_i − mean of the others: independent of z_i, hence unbiased.
            centred = (values - values.mean(axis=1, keepdims=True)) * (self.samples / (self.samples - 1.0))
        if not self.standardise:
            return centred
        scale = values.std(axis=1, keepdims=True) if self.spread == "sampled" else np.std(list(seen.values()))
        # What rounding leaves of equal values is no spread: in its units a step would be noise.
        return centred / np.where(scale > 1e-9 * np.abs(values).max(), scale, np.inf)
