"""The yardstick: our own belief and duels, given what nobody can know: the family's true prior and noise.

Notation (symbol → name, shape):
    m, K    mean and covariance of the logits, as the family draws them    → ``Known.mean`` (N,), ``Known.covariance``
    φ, τ²   dispersion of an answer and variance of the item effects     → ``Known.dispersion``

Everything else is ours: linearisation, item effects integrated out, duels, choice by posterior mean. The regret of ours
over that of the oracle says what the estimation of hypotheses and noise costs. It is no bound: the duels are heuristic,
and a prior of known moments need not be normal (ties, ridge).

Where coordinates that count are hidden among others that do not (ill-informative), the oracle is told which they are.
The blind oracle is not, as that of the ridge is not told its direction: its moments are averaged over the choices.

The connoisseur knows every family and not which of them it faces, as long as several look alike: it averages over their
true priors by evidence. Whoever does not know the families has more to find out than it has. The apprentice knows the
same but for how good the candidates are as a whole and how far they are apart, which it has to find out as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from bestprompt.selection.belief.belief import AveragedBelief, condition_on_round, expected
from bestprompt.selection.belief.information import conditioned, observed_information
from bestprompt.selection.belief.kernels import candidate_shapes
from bestprompt.selection.belief.link import LOGIT_MEAN_VARIANCE, LOGIT_UNIT, Link
from bestprompt.selection.belief.noise import Dispersion
from bestprompt.selection.core.state import Belief, SelectionState
from bestprompt.selection.strategies.averaged import AveragedStrategy
from selection_families import Problem, look_alikes, prior_of

GROWTH = 1.1  # observations are linearised anew each time their number has grown by this factor
STEPS = 2
WIDTHS = (0.5, 0.71, 1.0, 1.41, 2.0)  # how many times as far apart as they are the apprentice thinks candidates may be


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


@dataclass(frozen=True, slots=True)
class KnownFamilies(AveragedStrategy):
    """The strategy of somebody who knows the families and has to find out which one it is.

    Attributes:
        members: What is known of each of G families.
    """

    members: tuple[Known, ...]

    def updated(self, before: Belief | None, state: SelectionState) -> AveragedBelief:
        """Belief after ``state``."""
        belief = before if isinstance(before, AveragedBelief) else None
        if belief is not None and len(state) < max(belief.fitted * GROWTH, belief.fitted + 3):
            return condition_on_round(belief, state)
        weights = np.full(len(self.members), 1.0 / len(self.members))
        if belief is None:
            priors = [(member.mean, member.covariance) for member in self.members]
            belief = self._average(weights, priors, np.zeros(0), np.zeros(0), 0)
        for _ in range(STEPS if len(state) else 0):
            eta, variance = expected(belief, state, state.candidates, state.items)
            slopes, responses = belief.link.linearised(eta, variance, state.scores)
            residual = self.members[0].dispersion.residual
            evidence = np.array([_log_evidence(member, state, slopes / residual, responses) for member in self.members])
            weights = np.exp(evidence - evidence.max())
            weights /= weights.sum()
            beliefs = [_posterior(member, state, slopes / residual, responses) for member in self.members]
            belief = self._average(weights, beliefs, slopes / residual, responses, len(state))
        return belief

    def _average(
        self,
        weights: np.ndarray,
        beliefs: list[tuple[np.ndarray, np.ndarray]],
        precisions: np.ndarray,
        responses: np.ndarray,
        seen: int,
    ) -> AveragedBelief:
        level = sum(w * m for w, (m, _) in zip(weights, beliefs, strict=True))
        spread = sum(w * (C + np.outer(m - level, m - level)) for w, (m, C) in zip(weights, beliefs, strict=True))
        item = float(weights @ np.array([member.dispersion.item for member in self.members]))
        dispersion = Dispersion(self.members[0].dispersion.residual, item)
        link = Link(True, self.members[0].binary, 0.0, LOGIT_UNIT)
        return AveragedBelief(level, spread, np.log(weights), link, dispersion, precisions, responses, seen)


def _posterior(
    member: Known, state: SelectionState, precisions: np.ndarray, responses: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    centred = responses - member.mean[state.candidates]
    seen = observed_information(state, precisions, centred, member.dispersion.item)
    level, spread = conditioned(member.covariance, seen)
    return level + member.mean, spread


def _log_evidence(member: Known, state: SelectionState, precisions: np.ndarray, responses: np.ndarray) -> float:
    """Logarithm of N(y; m, K + τ² [same item] + diag(1/ω)) of all observations, up to what all families share.

    With Λ = LLᵀ and η what they say of the levels, item effects integrated out (``information``), u = L⁻¹η, A = LᵀKL:
    −½ (log|I + A| + uᵀ(I + A)⁻¹u − uᵀu + Σ_t ω_t (y_t − m_t)² + Σ_r (log(1 + τ² ω_r) − τ² u_r²/(1 + τ² ω_r))), with
    ω_r and u_r the sums of ω_t and ω_t (y_t − m_t) over item r. N × N instead of T × T.
    """
    centred, item = responses - member.mean[state.candidates], member.dispersion.item
    seen = observed_information(state, precisions, centred, item)
    weights, sums = (np.bincount(state.items, x) for x in (precisions, precisions * centred))
    of_items = np.log1p(item * weights) - item * sums**2 / (1.0 + item * weights)
    inner = seen.project(seen.project(member.covariance[np.ix_(seen.evaluated, seen.evaluated)]).T)
    inner[np.diag_indices(len(inner))] += 1.0
    factor, white = cholesky(inner, lower=True), seen.whitened()
    bent = solve_triangular(factor, white, lower=True)
    fit = bent @ bent - white @ white + precisions @ centred**2 + of_items.sum()
    return float(-np.log(np.diag(factor)).sum() - 0.5 * fit)


def connoisseur_strategy(problem: Problem, apprentice: bool = False) -> KnownFamilies:
    """The strategy of somebody who knows all families that look like that of ``problem``, or of the ``apprentice``."""
    shapes, common = candidate_shapes(problem.Z, False), problem.has_items
    members = []
    for family in look_alikes(problem.family):
        mean, covariance, item_sd = prior_of(family, problem)
        dispersion = Dispersion(1.0 / (1.0 + problem.grade), item_sd**2)
        moments = [(mean, covariance)]
        if apprentice:
            shape = mean - mean.mean()
            moments = [(w * shape, w**2 * covariance + LOGIT_MEAN_VARIANCE) for w in WIDTHS]
        members += [Known(shapes, common, *known, dispersion, binary=not problem.grade) for known in moments]
    return KnownFamilies(shapes, common, tuple(members))


def oracle_strategy(problem: Problem, blind: bool = False) -> Known:
    """The strategy of somebody who knows the family of ``problem``; ``blind`` to which coordinates count."""
    prior = problem.blind_prior if blind else problem.prior
    assert prior is not None, "a stored table has no known prior, and in most families all coordinates count"
    mean, covariance = prior()
    dispersion = Dispersion(1.0 / (1.0 + problem.grade), problem.item_sd**2)
    shapes, common = candidate_shapes(problem.Z, False), problem.has_items
    return Known(shapes, common, mean, covariance, dispersion, binary=not problem.grade)
