"""Strategies on one named surrogate: the paper's mode, and the default mode with a surrogate of the user's choice.

Paper mode, verbatim: noise variances g* by kriging of the warm-up variances, M-UCB with β_t = sqrt(2 ln t) and
γ(m) = 2/sqrt(m), and the highest observed mean is selected; surrogates are those of the paper's experiment E1
(:mod:`bestprompt.surrogates.published`): the network's weights are independent standard normals, mean-field throughout
(Alg. 4), or drawn by standard HMC (Alg. 3) where that is asked for. With a default-mode surrogate the bonus is in units
of the scores' spread and tuned on the kriging twin (:mod:`bonus`), noise is estimated from all scores, effects of
common items are taken out, candidates have a part of their own (:mod:`nugget`), and the highest posterior mean is
selected. Batches count their own proposals (the paper evaluates one at a time), and above ``DENSE`` candidates, or
where asked for, the acquisition is maximised by PR-M-UCB (Alg. 2), which looks only where it samples. Other
acquisitions may take M-UCB's place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bestprompt.acquisition.base import Occasion, make_acquisition
from bestprompt.acquisition.batches import BatchMaximizer, Field, make_maximizer
from bestprompt.acquisition.functions import Open
from bestprompt.errors import ConfigError
from bestprompt.kriging.variance import variance_model
from bestprompt.rng import stream
from bestprompt.selection.belief.noise import estimate_noise, score_scale, shrunken_item_effects
from bestprompt.selection.core.config import SelectorConfig
from bestprompt.selection.core.state import Belief, SelectionState, in_turn
from bestprompt.selection.core.views import Cells, Noise, View
from bestprompt.selection.strategies.bonus import Bonus, published_bonus, tuned_bonus
from bestprompt.selection.strategies.nugget import NONE, Nugget, first_nugget
from bestprompt.selection.strategies.stand_in import Refusal, diagnostics, fit
from bestprompt.surrogates.base import make_surrogate
from bestprompt.surrogates.published import published_options
from bestprompt.types import (
    Acquisition,
    Evidence,
    FittedSurrogate,
    FloatArray,
    IntArray,
    Posterior,
    Proposal,
    Surrogate,
)

DENSE = 2000
# Candidates whose covariances a decision looks at: the rest have no prospect.
LOOKED_AT = 500
# Paper mode's surrogates before all of them were those of the paper's experiment E1: runs recorded then keep them.
FIRST_EDITION: Mapping[str, Mapping[str, object]] = {
    "bnn": {"output": "mean-field", "layers": (8,), "steps": 1000, "rate": 0.03, "hmc": {"trajectory": "fixed"}}
}
# PR-M-UCB as paper mode had it when a step was not scaled by the spread of α: runs recorded then go on with it.
FIRST_EDITION_SEARCH: Mapping[str, object] = {"rate": 0.1, "baseline": None, "standardise": False}


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

    def view(
        self,
        state: SelectionState,
        remaining: int,
        draws: Callable[[], FloatArray],
        rows: IntArray | None = None,
    ) -> View:
        """What a decision looks at; covariances are those of the draws."""
        drawn = draws()
        if rows is None:
            rows = np.argsort(-(self.mean + 2.0 * drawn.std(axis=0)), kind="stable")[:LOOKED_AT]
        covariance = np.atleast_2d(np.cov(drawn[:, rows].T))
        return View(self.mean[rows], covariance, self.noise.variances[rows], remaining, state.left[rows])

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
        surrogate: What is fitted.
        maximizer: What finds the next evaluations.
        warmed: Evaluations of the warm-up.
    """

    Z: FloatArray
    config: SelectorConfig
    surrogate: Surrogate
    maximizer: BatchMaximizer
    warmed: int

    @classmethod
    def of(cls, Z: FloatArray, config: SelectorConfig, surrogate: str | Surrogate, warmed: int) -> NamedStrategy:
        """The strategy of a ``surrogate`` given by name or as an object; what cannot work is found here."""
        maximizer = config.maximizer
        if maximizer == "auto":
            maximizer = "reinforce" if Z.shape[0] > DENSE else "argmax"
        paper = config.mode == "paper"
        search = dict(config.maximizer_options)
        if paper and config.edition == "first" and maximizer == "reinforce":
            search = {**FIRST_EDITION_SEARCH, **search}
        return cls(
            Z,
            config,
            surrogate_of(surrogate, Z, config),
            make_maximizer(maximizer, search, paper),
            warmed,
        )

    @property
    def starts_blind(self) -> bool:
        """No: a surrogate is fitted to something."""
        return False

    def updated(self, before: Belief | None, state: SelectionState) -> NamedBelief:
        """Belief after ``state``; fits may continue from the one before.

        Raises:
            ConfigError: Nothing was observed.
        """
        if len(state) == 0:
            raise ConfigError("there is nothing to recommend before the first observation")
        own = before if isinstance(before, NamedBelief) else None  # another strategy's is no beginning
        noise, nugget = self._noise(own, state), self._nugget(own, state)
        evidence = Evidence(state.counts, self._means(state), noise.variances)
        rng = stream(self.config.seed, "fit", len(state))
        previous, refusal = (None, None) if own is None else (own.fitted, own.refusal)
        fitted, refusal = fit(self.surrogate, self.Z, nugget.widened(evidence), rng, previous, refusal)
        bonus = self._bonus(own, state, noise, fitted)
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

    def _bonus(
        self, before: NamedBelief | None, state: SelectionState, noise: Noise, fitted: FittedSurrogate
    ) -> Bonus | None:
        """The tuned bonus of M-UCB; none where the user gave β, or in paper mode unless it is tuned over ranges."""
        paper = self.config.mode == "paper"
        other = self.config.acquisition not in ("auto", "m-ucb")
        if other or self.config.beta is not None or (paper and self.config.tuning != "ranges"):
            return None
        known = None if before is None else before.bonus
        rng = stream(self.config.seed, "bonus", len(state))
        if paper:
            left = self.config.budget - len(state)
            return known or published_bonus(
                self.Z, state, noise, left, lambda rows: fitted.posterior(self.Z[rows]), rng
            )
        return tuned_bonus(self.Z, state, noise, self.config.budget - len(state), known, rng, self.config.tuning)

    def choose(
        self, state: SelectionState, belief: Belief, waiting: IntArray, remaining: int, n: int, rng: np.random.Generator
    ) -> IntArray:
        """``n`` candidates to evaluate next."""
        own = belief if isinstance(belief, NamedBelief) else self.updated(None, state)
        acquisition = self._acquisition(state, own)
        if np.isfinite(state.rotation.most):
            acquisition = Open(acquisition, state.rotation.most)
        variances, step = own.noise.variances, len(state)
        field = Field(lambda: own.posterior, own.at, acquisition, state.counts, variances, step, waiting)
        return self.maximizer.batch(field, n, rng)

    def questions(
        self, state: SelectionState, belief: Belief, chosen: IntArray, pending: Sequence[Proposal]
    ) -> list[Proposal]:
        """The next items in turn for the ``chosen`` candidates, besides what is ``pending``: it knows no items."""
        return in_turn(state, chosen, pending)

    def _acquisition(self, state: SelectionState, belief: NamedBelief) -> Acquisition:
        config = self.config
        occasion = Occasion(
            seed=config.seed,
            paper=config.mode == "paper",
            beta=config.beta,
            gamma=config.gamma,
            scale=score_scale(state),
            best=lambda: float(belief.at(np.flatnonzero(state.counts)).mean.max()),
            tuned=None if belief.bonus is None else belief.bonus.acquisition,
        )
        return make_acquisition("m-ucb" if config.acquisition == "auto" else config.acquisition, occasion)

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


def surrogate_of(part: str | Surrogate, Z: FloatArray, config: SelectorConfig) -> Surrogate:
    """The surrogate of that name with the user's options, in paper mode besides those of the paper.

    An object is used as it is.
    """
    if not isinstance(part, str):
        return part
    options, paper_options = dict(config.surrogate_options), {}
    if config.draws is not None:
        options.setdefault("n_draws", config.draws)
    if config.mode == "paper":
        first = config.edition == "first"
        paper_options = dict(FIRST_EDITION.get(part, {})) if first else published_options(part, Z)
    for name, value in paper_options.items():
        given = options.get(name)
        if isinstance(value, Mapping) and isinstance(given, Mapping):
            options[name] = {**value, **given}
    return make_surrogate(part, **paper_options | options)
