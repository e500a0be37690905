"""Fitting the averaged belief to all observations: linearised, noise estimated, hypotheses weighed by their evidence.

Notation (symbol → name, shape):
    g          a hypothesis about the candidates (``kernels``)       → rows of ``evidence``
    log p_g    its log evidence and prior, up to a constant          → ``_Fit.evidence``  (G,)
    w_g        its probability, ∝ p_g among the likeliest            → ``weights``
    m_g, C_g   mean and covariance of f under it                     → ``_Fit.belief``
    ω_t, y_t   observation t, linearised (``link``)                  → ``_Fit.precisions``, ``_Fit.responses``  (t,)
    K_g        its prior covariance, a sum over the parts J_p that all hypotheses share  → ``Shapes.parts``  (P, N, N)
    Λ = LLᵀ, η what the observations say (``information``)           → ``Information.root``, ``.vector``

The belief is the average over the likeliest ``KEPT`` hypotheses, none with less than ``LEAST_WEIGHT`` of the best one's
probability. One that falls ``HOPELESS`` behind in log evidence is not weighed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import solve_triangular

from bestprompt.selection.belief.belief import AveragedBelief, expected
from bestprompt.selection.belief.information import Information, observed_information
from bestprompt.selection.belief.kernels import Shapes, summed
from bestprompt.selection.belief.link import Link, link_of
from bestprompt.selection.belief.noise import PRIOR_SCALE, Dispersion, estimate_dispersion, shared_part
from bestprompt.selection.core.state import SelectionState
from bestprompt.selection.core.views import SHARED_GUESS
from bestprompt.types import FloatArray, IntArray

GROWTH = 1.3
KEPT = 8
LEAST_WEIGHT = 0.02
HOPELESS = 9.0
FIRST_GUESSES = 3
AT_ONCE = 4 * 10**6  # numbers held when hypotheses are weighed together


@dataclass(frozen=True, slots=True)
class _Fit:
    """One pass of ``fit_belief``: observations linearised around a guess of η."""

    shapes: Shapes
    state: SelectionState
    link: Link
    dispersion: Dispersion
    precisions: FloatArray
    responses: FloatArray
    information: Information
    _looks: dict[int, tuple[FloatArray, FloatArray]] = field(default_factory=dict)

    @classmethod
    def around(cls, shapes: Shapes, state: SelectionState, common: bool, belief: AveragedBelief | None) -> _Fit:
        """Observations linearised around ``belief``, or around the prior's centre."""
        link = link_of(state)
        if belief is None or belief.link.bounded != link.bounded:
            eta, variance = np.full(len(state), link.centre), np.full(len(state), link.unit**2 / 4.0)
        else:
            eta, variance = expected(belief, state, state.candidates, state.items)
        weights, responses = link.linearised(eta, variance, state.scores)
        items, known = state.items if common else None, 1.0 if link.binary else None
        guess = PRIOR_SCALE**2 * (4.0 if link.bounded else 1.0)
        shared, repetitions = _shared(state, belief, weights, responses - eta), state.repetitions
        weights = weights / (1.0 + shared * (repetitions - 1.0))
        dispersion = estimate_dispersion(responses, weights, state.candidates, items, known, guess)
        dispersion = replace(dispersion, shared=shared)
        precisions = weights / dispersion.residual
        information = observed_information(state, precisions, responses - link.centre, dispersion.item)
        return cls(shapes, state, link, dispersion, precisions, responses, information)

    def evidence(self, hypotheses: IntArray) -> FloatArray:
        """The log evidence and prior of each hypothesis, up to a constant shared by all.

        With A = LᵀKL and u = L⁻¹η it is −½ log|I + A| − ½ uᵀ(I + A)⁻¹u; both terms are read off one Cholesky factor,
        that of I + A bordered by u.
        """
        size, found = self.information.evaluated.size, []
        for piece, factors in self._factors(hypotheses):
            log_determinants = np.log(np.diagonal(factors, axis1=1, axis2=2)[:, :size]).sum(axis=1)
            fits = (factors[:, size, :size] ** 2).sum(axis=1)
            found.append(self.shapes.log_priors[piece] - log_determinants - 0.5 * fits)
        return np.concatenate(found)

    def _amounts(self, hypotheses: IntArray) -> FloatArray:
        """(G, P) how much of each part of ``Shapes.parts`` these hypotheses have."""
        return self.shapes.amounts(self.link.unit, self.link.mean_variance)[hypotheses]

    def _look(self, part: int) -> tuple[FloatArray, FloatArray]:
        """LᵀJ_p (M, N) and LᵀJ_pL (M, M): the dearest step of a fit, and evidence and belief both need them."""
        if part not in self._looks:
            seen = self.information
            reach = seen.project(self.shapes.parts[part][seen.evaluated])
            self._looks[part] = reach, seen.project(reach[:, seen.evaluated].T)
        return self._looks[part]

    def _factors(self, hypotheses: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Hypotheses in pieces of G, and with each the factors (G, M + 1, M + 1) of I + LᵀKL bordered by u."""
        size, u, amounts = self.information.evaluated.size, self.information.whitened(), self._amounts(hypotheses)
        had = np.flatnonzero(amounts.any(axis=0))
        parts = np.stack([self._look(p)[1] for p in had.tolist()])
        pieces = -(-hypotheses.size * (size + 1) ** 2 // AT_ONCE)
        for piece, share in zip(*(np.array_split(x, pieces) for x in (hypotheses, amounts[:, had])), strict=True):
            bordered = np.empty((piece.size, size + 1, size + 1))
            bordered[:, :size, :size] = np.tensordot(share, parts, axes=1)
            bordered[:, np.arange(size), np.arange(size)] += 1.0
            bordered[:, :size, size] = bordered[:, size, :size] = u
            bordered[:, size, size] = u @ u + 1.0
            yield piece, np.linalg.cholesky(bordered)

    def belief(self, kept: IntArray, log_weights: FloatArray, evidence: FloatArray) -> AveragedBelief:
        """Average over the ``kept`` hypotheses.

        With R the factor of I + LᵀKL, r the row that borders it and H = R⁻¹LᵀK, the mean is Hᵀr and the covariance
        K − HᵀH.
        """
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        size, amounts = self.information.evaluated.size, self._amounts(kept)
        spread = self.shapes.prior(weights @ amounts)
        had = np.flatnonzero(amounts.any(axis=0))
        reach = np.stack([self._look(p)[0] for p in had.tolist()])
        means: list[FloatArray] = []
        for _, factors in self._factors(kept):
            for factor in factors:
                row = len(means)
                look = summed(amounts[row, had], reach)
                half = solve_triangular(factor[:size, :size], look, lower=True, check_finite=False)
                means.append(factor[size, :size] @ half)
                spread -= weights[row] * (half.T @ half)
        level = weights @ np.stack(means)
        offsets = np.sqrt(weights)[:, None] * (np.stack(means) - level)
        return AveragedBelief(
            level + self.link.centre,
            spread + offsets.T @ offsets,
            evidence,
            self.link,
            self.dispersion,
            self.precisions,
            self.responses,
            len(self.state),
        )


def fit_belief(
    shapes: Shapes, state: SelectionState, common: bool, before: AveragedBelief | None = None
) -> AveragedBelief:
    """Belief after all observations: linearised, noise estimated, hypotheses weighed, the likeliest averaged.

    Observations are linearised around what was believed ``before``; without it, around an unstructured belief found in
    a few steps. Hypotheses that were hopeless before are not weighed again.
    """
    middle = np.array([sum(h.shape < 0 for h in shapes.hypotheses) // 2])
    nothing = np.zeros(len(shapes.hypotheses))
    fresh = before is None
    for _ in range(FIRST_GUESSES if fresh else 0):
        before = _Fit.around(shapes, state, common, before).belief(middle, np.zeros(1), nothing)
    assert before is not None
    if len(state) == 0:
        return before
    fit = _Fit.around(shapes, state, common, before)
    open_ones = np.flatnonzero(before.evidence >= before.evidence.max() - HOPELESS)
    evidence = np.full(nothing.size, -np.inf)
    evidence[open_ones] = fit.evidence(open_ones)
    kept = _likeliest(evidence)
    belief = fit.belief(kept, evidence[kept], evidence)
    return _Fit.around(shapes, state, common, belief).belief(kept, evidence[kept], evidence) if fresh else belief


def needs_fit(belief: AveragedBelief, state: SelectionState) -> bool:
    """Whether linearisation, noise and hypotheses should be found anew."""
    if len(state) >= max(belief.fitted * GROWTH, belief.fitted + 3):
        return True
    if state.repetitions[belief.seen :].max(initial=1) > 1:
        return True  # what earlier answers on the same item weigh has changed
    now = link_of(state)
    return (now.bounded, now.binary) != (belief.link.bounded, belief.link.binary)


def _shared(state: SelectionState, belief: AveragedBelief | None, weights: FloatArray, off: FloatArray) -> float:
    """ι, by how far answers are ``off`` (t,) what was believed; as guessed where nothing is known or repeated."""
    if belief is None or state.repetitions.max(initial=1) == 1:
        return SHARED_GUESS if belief is None else belief.dispersion.shared
    cells = state.candidates * (int(state.items.max()) + 1) + state.items
    return shared_part(off * np.sqrt(weights / belief.dispersion.residual), cells)


def _likeliest(evidence: FloatArray) -> IntArray:
    order = np.argsort(-evidence, kind="stable")[:KEPT]
    return np.asarray(order[evidence[order] >= evidence[order[0]] + np.log(LEAST_WEIGHT)], dtype=np.int64)
