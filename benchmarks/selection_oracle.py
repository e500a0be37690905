"""The yardstick: our own belief and duels, given what nobody can know: the family's true prior and noise.

Notation (symbol → name, shape):
    m, K    mean and covariance of the logits, as the family draws them    → ``Known.mean`` (N,), ``Known.covariance``
    φ, τ²   dispersion of an answer and variance of the item effects     → ``Known.dispersion``

Everything else is ours: linearisation, item effects integrated out, duels, choice by posterior mean. The regret of ours
over that of the oracle says what the estimation of hypotheses and noise costs. It is no bound: the duels are heuristic,
and a prior of known moments need not be normal (ties, ridge).

Where coordinates that count are hidden among others that do not (ill-informative), the oracle is told which they are.
The blind oracle is not, as that of the ridge is not told its direction: its moments are averaged over the choices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bestprompt.selection.belief.belief import AveragedBelief, condition_on_round, expected
from bestprompt.selection.belief.information import conditioned, observed_information
from bestprompt.selection.belief.kernels import candidate_shapes
from bestprompt.selection.belief.link import LOGIT_UNIT, Link
from bestprompt.selection.belief.noise import Dispersion
from bestprompt.selection.core.state import Belief, SelectionState
from bestprompt.selection.strategies.averaged import AveragedStrategy
from selection_families import Problem

GROWTH = 1.1  # observations are linearised anew each time their number has grown by this factor
STEPS = 2


@dataclass(frozen=True, slots=True)
class Known(AveragedStrategy):
    """The strategy of somebody who knows the family."""

    mean: np.ndarray
    covariance: np.ndarray
    dispersion: Dispersion
    binary: bool

    def updated(self, before: Belief | None, state: SelectionState) -> AveragedBelief:
        """Belief after ``state``."""
        belief = before if isinstance(before, AveragedBelief) else None
        if belief is not None and len(state) < max(belief.fitted * GROWTH, belief.fitted + 3):
            return condition_on_round(belief, state)
        if belief is None:
            belief = self._believed(self.mean, self.covariance, np.zeros(0), np.zeros(0), 0)
        for _ in range(STEPS if len(state) else 0):
            eta, variance = expected(belief, state, state.candidates, state.items)
            weights, responses = belief.link.linearised(eta, variance, state.scores)
            precisions = weights / self.dispersion.residual
            centred = responses - self.mean[state.candidates]
            seen = observed_information(state, precisions, centred, self.dispersion.item)
            level, spread = conditioned(self.covariance, seen)
            belief = self._believed(level + self.mean, spread, precisions, responses, len(state))
        return belief

    def _believed(
        self, level: np.ndarray, spread: np.ndarray, precisions: np.ndarray, responses: np.ndarray, seen: int
    ) -> AveragedBelief:
        link = Link(True, self.binary, 0.0, LOGIT_UNIT)
        return AveragedBelief(level, spread, np.zeros(1), link, self.dispersion, precisions, responses, seen)


def oracle_strategy(problem: Problem, blind: bool = False) -> Known:
    """The strategy of somebody who knows the family of ``problem``; ``blind`` to which coordinates count."""
    prior = problem.blind_prior if blind else problem.prior
    assert prior is not None, "a stored table has no known prior, and in most families all coordinates count"
    mean, covariance = prior()
    dispersion = Dispersion(1.0 / (1.0 + problem.grade), problem.item_sd**2)
    shapes, common = candidate_shapes(problem.Z, False), problem.has_items
    return Known(shapes, common, mean, covariance, dispersion, binary=not problem.grade)
