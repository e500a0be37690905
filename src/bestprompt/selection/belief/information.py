"""What linearised observations say about the latent levels, item effects integrated out, and conditioning on it.

Notation (symbol → name, shape):
    Λ, η       precision and precision times mean that observations give  → ``Information.root`` (L Lᵀ = Λ), ``.vector``
    K          prior covariance of the levels                             → ``prior`` (N, N)
    ω_t, y_t   observation t, linearised (``link``)                       → ``precisions``, ``responses``  (t,)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from bestprompt.selection.core.state import SelectionState
from bestprompt.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Information:
    """What the observations say about the M evaluated candidates.

    Attributes:
        root: L with L Lᵀ = Λ: (M, M), or (M,) where Λ is diagonal (no item effects).
        vector: (M,) η.
        evaluated: (M,) which candidates they are.
    """

    root: FloatArray
    vector: FloatArray
    evaluated: IntArray

    def project(self, x: FloatArray) -> FloatArray:
        """Lᵀ x for x of shape (M,) or (M, k)."""
        if self.root.ndim == 2:
            return np.asarray(self.root.T @ x, dtype=np.float64)
        return np.asarray(self.root * x if x.ndim == 1 else self.root[:, None] * x, dtype=np.float64)

    def whitened(self) -> FloatArray:
        """(M,) L⁻¹ η."""
        if self.root.ndim == 2:
            return np.asarray(solve_triangular(self.root, self.vector, lower=True, check_finite=False))
        return np.asarray(self.vector / self.root)


def observed_information(
    state: SelectionState, precisions: FloatArray, responses: FloatArray, item: float
) -> Information:
    """Λ and η of linearised observations, ``responses`` counted from the prior mean, item effects integrated out."""
    n, who = state.n_candidates, state.candidates
    values = precisions * responses
    diagonal = np.bincount(who, precisions, minlength=n)
    vector = np.bincount(who, values, minlength=n).astype(np.float64)
    evaluated = np.flatnonzero(state.counts)
    if item <= 0.0 or len(state) == 0:
        return Information(np.sqrt(diagonal[evaluated]), vector[evaluated], evaluated)
    which = state.items
    items = int(which.max()) + 1
    table = np.zeros((items, n))
    np.add.at(table, (which, who), precisions)
    gain = 1.0 / (1.0 / item + table.sum(axis=1))
    vector -= table.T @ (gain * np.bincount(which, values, minlength=items))
    table = table[:, evaluated]
    matrix = np.diag(diagonal[evaluated]) - (table * gain[:, None]).T @ table
    root = cholesky(matrix, lower=True, check_finite=False)
    return Information(np.asarray(root), vector[evaluated], evaluated)


def _capacitance(inside: FloatArray, information: Information) -> FloatArray:
    """Cholesky factor of I + LᵀKL: at least 1 in every direction, so never ill-conditioned."""
    inner = information.project(information.project(inside).T)
    inner[np.diag_indices(inner.shape[0])] += 1.0
    return np.asarray(cholesky(inner, lower=True, overwrite_a=True, check_finite=False), dtype=np.float64)


def conditioned(prior: FloatArray, information: Information) -> tuple[FloatArray, FloatArray]:
    """Mean (N,) and covariance (N, N) of f − centre given the observations: C = K − KL (I + LᵀKL)⁻¹ LᵀK."""
    rows = information.evaluated
    if rows.size == 0:
        return np.zeros(prior.shape[0]), prior
    factor = _capacitance(prior[np.ix_(rows, rows)], information)
    half = solve_triangular(factor, information.project(prior[rows]), lower=True, check_finite=False)
    covariance = prior - half.T @ half
    return covariance[:, rows] @ information.vector, covariance
