"""Strategies on one named surrogate: the paper's mode, and the default mode with a surrogate of the user's choice.

Paper mode, verbatim: noise variances g* by kriging of the warm-up variances, M-UCB with β_t = sqrt(2 ln t) and
γ(m) = 2/sqrt(m), and the highest observed mean is selected; the network's weights are independent normals throughout
(Alg. 4). With a default-mode surrogate the bonus is in units of the scores' spread and tuned on the kriging twin
(:mod:`bonus`), noise is estimated from all scores, and the highest posterior mean is selected. Batches count their own
proposals (the paper evaluates one at a time), and above ``DENSE`` candidates, or where asked for, the acquisition is
maximised by PR-M-UCB (Alg. 2), which looks only where it samples. Other acquisitions may take M-UCB's place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bestprompt.acquisition.functions import (
    UCB,
    CountGamma,
    ExpectedImprovement,
    LogBeta,
    ModifiedUCB,
    Thompson,
    TopTwoThompson,
)
from bestprompt.acquisition.maximize import Reinforce, batch_argmax
from bestprompt.kriging.variance import variance_model
from bestprompt.rng import stream
from bestprompt.selection.bonus import Bonus, tuned_bonus
from bestprompt.selection.config import SelectorConfig
from bestprompt.selection.noise import Noise, estimate_noise, score_scale
from bestprompt.selection.state import SelectionState
from bestprompt.surrogates.base import make_surrogate
from bestprompt.types import Acquisition, Evidence, FittedSurrogate, FloatArray, IntArray, Posterior

DENSE = 2000
CONTINUED = ("bnn", "vae", "gp")
PAPER_OPTIONS: dict[str, dict[str, Any]] = {
    "bnn": {"output": "mean-field", "layers": (8,), "steps": 1000, "rate": 0.03}
}


@dataclass(frozen=True, slots=True)
class NamedBelief:
    """A fitted surrogate, its posterior at all candidates, the noise it was told, and the bonus where it was tuned."""

    fitted: FittedSurrogate
    posterior: Posterior
    noise: Noise
    bonus: Bonus | None = None

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
    name: str
    warmed: int

    def __post_init__(self) -> None:
        self._surrogate()  # an unknown option is found before anything is paid for

    def updated(self, before: NamedBelief | None, state: SelectionState) -> NamedBelief:
        """Belief after ``state``; network and kriging fits continue from the one before."""
        noise = self._noise(before, state)
        evidence = Evidence(state.counts, state.means, noise.variances)
        surrogate = self._surrogate()
        rng = stream(self.config.seed, "fit", len(state))
        if before is not None and self.name in CONTINUED:
            fitted = surrogate.fit(self.Z, evidence, rng, previous=before.fitted)
        else:
            fitted = surrogate.fit(self.Z, evidence, rng)
        return NamedBelief(fitted, fitted.posterior(self.Z), noise, self._bonus(before, state, noise))

    def _surrogate(self) -> Any:
        options: dict[str, Any] = PAPER_OPTIONS.get(self.name, {}) if self.config.mode == "paper" else {}
        return make_surrogate(self.name, **options | dict(self.config.surrogate_options))

    def _bonus(self, before: NamedBelief | None, state: SelectionState, noise: Noise) -> Bonus | None:
        """The tuned bonus of M-UCB; none in paper mode, or where the user gave β."""
        other = self.config.acquisition not in ("auto", "m-ucb")
        if other or self.config.mode == "paper" or self.config.beta is not None:
            return None
        known = None if before is None else before.bonus
        rng = stream(self.config.seed, "bonus", len(state))
        return tuned_bonus(self.Z, state, noise, self.config.budget - len(state), known, rng)

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
        acquisition, counts = self._acquisition(state, belief), state.counts + waiting
        maximizer = self.config.maximizer
        if maximizer == "reinforce" or (maximizer == "auto" and state.n_candidates > DENSE):
            step = len(state) + int(waiting.sum())

            def worth(rows: IntArray) -> FloatArray:
                return acquisition(belief.fitted.posterior(self.Z[rows]), counts[rows], step)

            search = Reinforce.paper() if self.config.mode == "paper" else Reinforce()
            return search(worth, state.n_candidates, n, rng)
        return batch_argmax(
            belief.posterior, acquisition, state.counts, belief.noise.variances, len(state), n, rng, waiting
        )

    def _acquisition(self, state: SelectionState, belief: NamedBelief) -> Acquisition:
        config, beta = self.config, self.config.beta
        if config.acquisition == "ucb":
            return UCB() if beta is None else UCB(beta)
        if config.acquisition == "ei":
            return ExpectedImprovement(best=float(belief.mean.max()))
        if config.acquisition == "thompson":
            return Thompson(config.seed)
        if config.acquisition == "top-two":
            return TopTwoThompson(seed=config.seed)
        if belief.bonus is not None:
            return belief.bonus.acquisition
        beta = 1.0 if beta is None else beta
        if config.mode == "paper":
            return ModifiedUCB(LogBeta(beta), CountGamma(config.gamma, offset=0.0))
        return ModifiedUCB.scaled(beta, 0.1, score_scale(state))

    def _noise(self, before: NamedBelief | None, state: SelectionState) -> Noise:
        if self.config.mode == "default":
            return estimate_noise(state, common=False)
        if before is not None:
            return before.noise
        who, scores = state.candidates[: self.warmed], state.scores[: self.warmed]
        counts = np.bincount(who, minlength=state.n_candidates)
        rows = np.flatnonzero(counts >= 2)
        if rows.size == 0:
            return estimate_noise(state, common=False)
        variances = np.array([scores[who == row].var(ddof=1) for row in rows])
        return Noise(variance_model(self.config.variance)(self.Z, rows, variances, counts[rows]), 0.0)
