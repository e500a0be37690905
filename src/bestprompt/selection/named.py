"""Strategies on one named surrogate: the paper's mode, and the default mode with a surrogate of the user's choice.

Paper mode, verbatim: noise variances g* by kriging of the warm-up variances, M-UCB with β_t = sqrt(2 ln t) and
γ(m) = 2/sqrt(m), and the highest observed mean is selected; the network's weights are independent normals throughout
(Alg. 4), or drawn by standard HMC (Alg. 3) where that is asked for. With a default-mode surrogate the bonus is in units
of the scores' spread and tuned on the kriging twin (:mod:`bonus`), noise is estimated from all scores, effects of
common items are taken out, candidates have a part of their own (:mod:`nugget`), and the highest posterior mean is
selected. Batches count their own proposals (the paper evaluates one at a time), and above ``DENSE`` candidates, or
where asked for, the acquisition is maximised by PR-M-UCB (Alg. 2), which looks only where it samples. Other
acquisitions may take M-UCB's place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from bestprompt.acquisition.functions import (
    UCB,
    CountGamma,
    ExpectedImprovement,
    LogBeta,
    ModifiedUCB,
    Open,
    Thompson,
    TopTwoThompson,
)
from bestprompt.acquisition.maximize import Reinforce, batch_argmax
from bestprompt.acquisition.sampled_batch import sampled_batch
from bestprompt.errors import ConfigError
from bestprompt.kriging.variance import variance_model
from bestprompt.rng import stream
from bestprompt.selection.bonus import Bonus, tuned_bonus
from bestprompt.selection.config import SelectorConfig
from bestprompt.selection.noise import Noise, estimate_noise, score_scale, shrunken_item_effects
from bestprompt.selection.nugget import NONE, Nugget, first_nugget
from bestprompt.selection.stand_in import Refusal, diagnostics, fit
from bestprompt.selection.state import SelectionState
from bestprompt.selection.these_items import Cells
from bestprompt.surrogates.base import make_surrogate
from bestprompt.types import Acquisition, Evidence, FittedSurrogate, FloatArray, IntArray, Posterior, Surrogate

DENSE = 2000
PAPER_GAMMA, SCALED_GAMMA = 2.0, 0.1
CONTINUED = ("bnn", "vae", "gp")
PAPER_OPTIONS: dict[str, dict[str, Any]] = {
    "bnn": {"output": "mean-field", "layers": (8,), "steps": 1000, "rate": 0.03, "hmc": {"trajectory": "fixed"}}
}


@dataclass(frozen=True)
class NamedBelief:
    """What is believed of the candidates after a fit; the posterior is found where it is asked for, and only there.

    Attributes:
        fitted: The surrogate.
        Z: (N, D) coordinates of the candidates.
        evidence: What it was fitted to, before the candidates' own parts were counted as noise.
        nugget: The candidates' own parts.
        noise: Of one evaluation.
        seed: Of the own parts' draws.
        bonus: M-UCB's, where it was tuned.
        refusal: Of the last Markov chains that did not mix.
    """

    fitted: FittedSurrogate
    Z: FloatArray
    evidence: Evidence
    nugget: Nugget
    noise: Noise
    seed: int
    bonus: Bonus | None = None
    refusal: Refusal | None = None

    @property
    def diagnostics(self) -> dict[str, float]:
        """Of the fit, for the user to see."""
        return diagnostics(self.fitted, self.refusal)

    def at(self, rows: IntArray | slice) -> Posterior:
        """The posterior at the candidates ``rows``."""
        rng = stream(self.seed, "own", int(self.evidence.counts.sum()))
        return self.nugget.added(self.fitted.posterior(self.Z[rows]), self.evidence, rows, rng)

    @cached_property
    def posterior(self) -> Posterior:
        """At all candidates."""
        return self.at(slice(None))

    @property
    def mean(self) -> FloatArray:
        """(N,) posterior means."""
        return self.posterior.mean

    def draws(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Joint draws (K, N): the surrogate's own, or ``count`` independent normal ones where it makes none."""
        if self.posterior.draws is not None:
            return self.posterior.draws
        noise = rng.standard_normal((count, self.posterior.mean.size))
        return np.asarray(self.posterior.mean + self.posterior.std * noise, dtype=np.float64)

    def cells(
        self, state: SelectionState, rows: IntArray, count: int, widening: float, rng: np.random.Generator
    ) -> Cells:
        """Draws of what the candidates ``rows`` are expected to score on every item: a surrogate knows no items."""
        items, estimates = state.rotation.items, self.mean[rows]
        assert items is not None, "only a known number of items can be gone through"
        drawn = self.draws(count, rng)[:, rows]
        mean = np.repeat((estimates + widening * (drawn - estimates))[:, :, None], items, axis=2)
        variance = np.broadcast_to(self.noise.variances[rows][:, None], mean.shape)
        return Cells(np.clip(mean, 0.0, 1.0), variance, 1.0 if state.rotation.repeats == "never" else self.noise.shared)


@dataclass(frozen=True, slots=True)
class NamedStrategy:
    """Strategy over one surrogate.

    Attributes:
        Z: (N, D) coordinates of the candidates.
        config: Settings of the run.
        name: Name of the surrogate.
        warmed: Evaluations of the warm-up.
    """

    Z: FloatArray
    config: SelectorConfig
    name: str | Surrogate
    warmed: int

    def __post_init__(self) -> None:
        self._surrogate(), self._search()  # an unknown option is found before anything is paid for

    def updated(self, before: NamedBelief | None, state: SelectionState) -> NamedBelief:
        """Belief after ``state``; network and kriging fits continue from the one before."""
        noise, nugget = self._noise(before, state), self._nugget(before, state)
        evidence = Evidence(state.counts, self._means(state), noise.variances)
        rng = stream(self.config.seed, "fit", len(state))
        previous = before.fitted if before is not None and self.name in CONTINUED else None
        refusal = None if before is None else before.refusal
        fitted, refusal = fit(self._surrogate(), self.Z, nugget.widened(evidence), rng, previous, refusal)
        bonus = self._bonus(before, state, noise)
        return NamedBelief(fitted, self.Z, evidence, nugget, noise, self.config.seed, bonus, refusal)

    @property
    def _common(self) -> bool:
        return self.config.pairs == "common" and self.config.mode == "default"

    def _means(self, state: SelectionState) -> FloatArray:
        """(N,) mean scores, without the effects of the items where these are common."""
        if not self._common:
            return state.means
        adjusted = state.scores - shrunken_item_effects(state)
        sums = np.bincount(state.candidates, adjusted, minlength=state.n_candidates)
        return np.asarray(sums / np.maximum(state.counts, 1), dtype=np.float64)

    def _nugget(self, before: NamedBelief | None, state: SelectionState) -> Nugget:
        """The own parts, as the fit before shows them; the paper's surrogates have none."""
        if self.config.mode == "paper":
            return NONE
        if before is None:
            return first_nugget(score_scale(state))
        rows = np.flatnonzero(before.evidence.counts)
        fitted = np.zeros(state.n_candidates)
        fitted[rows] = before.fitted.posterior(self.Z[rows]).mean
        return before.nugget.learned(fitted, before.evidence)

    def _surrogate(self) -> Any:
        if not isinstance(self.name, str):
            return self.name
        given: dict[str, Any] = dict(self.config.surrogate_options)
        options: dict[str, Any] = PAPER_OPTIONS.get(self.name, {}) if self.config.mode == "paper" else {}
        for name, value in options.items():
            if isinstance(value, dict) and isinstance(given.get(name), Mapping):
                given[name] = value | dict(given[name])
        return make_surrogate(self.name, **options | given)

    def _search(self) -> Reinforce:
        search = Reinforce.paper() if self.config.mode == "paper" else Reinforce()
        options = dict(self.config.maximizer_options)
        allowed = [field.name for field in fields(search)]
        if unknown := sorted(set(options) - set(allowed)):
            raise ConfigError(f"maximizer reinforce has no option {unknown[0]!r}: choose from {', '.join(allowed)}")
        return replace(search, **cast(dict[str, Any], options))

    def _bonus(self, before: NamedBelief | None, state: SelectionState, noise: Noise) -> Bonus | None:
        """The tuned bonus of M-UCB; none in paper mode, or where the user gave β."""
        other = self.config.acquisition not in ("auto", "m-ucb")
        if other or self.config.mode == "paper" or self.config.beta is not None:
            return None
        known = None if before is None else before.bonus
        rng = stream(self.config.seed, "bonus", len(state))
        return tuned_bonus(self.Z, state, noise, self.config.budget - len(state), known, rng, self.config.tuning)

    def choose(
        self,
        state: SelectionState,
        belief: NamedBelief,
        waiting: IntArray,
        remaining: int,
        n: int,
        rng: np.random.Generator,
    ) -> IntArray:
        """``n`` candidates to evaluate next."""
        maximizer = self.config.maximizer
        acquisition = self._acquisition(state, belief)
        if np.isfinite(state.rotation.most):
            acquisition = Open(acquisition, state.rotation.most)
        rest = acquisition, state.counts, belief.noise.variances, len(state), n, rng, waiting
        if maximizer == "reinforce" or (maximizer == "auto" and state.n_candidates > DENSE):
            return sampled_batch(self._search(), belief.at, *rest)
        return batch_argmax(belief.posterior, *rest)

    def _acquisition(self, state: SelectionState, belief: NamedBelief) -> Acquisition:
        config, beta = self.config, self.config.beta
        if config.acquisition == "ucb":
            return UCB() if beta is None else UCB(beta)
        if config.acquisition == "ei":
            return ExpectedImprovement(best=float(belief.at(np.flatnonzero(state.counts)).mean.max()))
        if config.acquisition == "thompson":
            return Thompson(config.seed)
        if config.acquisition == "top-two":
            return TopTwoThompson(seed=config.seed)
        if belief.bonus is not None:
            return belief.bonus.acquisition
        beta, gamma = 1.0 if beta is None else beta, config.gamma
        if config.mode == "paper":
            return ModifiedUCB(LogBeta(beta), CountGamma(PAPER_GAMMA if gamma is None else gamma, offset=0.0))
        return ModifiedUCB.scaled(beta, SCALED_GAMMA if gamma is None else gamma, score_scale(state))

    def _noise(self, before: NamedBelief | None, state: SelectionState) -> Noise:
        if self.config.mode == "default":
            return estimate_noise(state, self._common)
        if before is not None:
            return before.noise
        who, scores = state.candidates[: self.warmed], state.scores[: self.warmed]
        counts = np.bincount(who, minlength=state.n_candidates)
        rows = np.flatnonzero(counts >= 2)
        if rows.size == 0:
            return estimate_noise(state, common=False)
        variances = np.array([scores[who == row].var(ddof=1) for row in rows])
        return Noise(variance_model(self.config.variance)(self.Z, rows, variances, counts[rows]), 0.0)
