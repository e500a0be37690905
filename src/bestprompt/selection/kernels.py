"""The prior beliefs that are averaged: how alike the scores of two candidates are, given their coordinates.

Notation (symbol → name, shape):
    K_l(z, z')   correlation of two candidates' scores           → ``Shapes.correlations``  (S, N, N)
    s²           variance of a candidate's score around the mean → ``Hypothesis.signal``
    ρ            share of s² explained by the coordinates        → ``Hypothesis.share``
    c²           variance of the overall mean                    → ``MEAN_VARIANCE``

A hypothesis states cov(v_n, v_m) = s² (ρ K_l(z_n, z_m) + (1 − ρ) 1[n = m]) + c². The second term is the nugget: what a
prompt has of its own, so that evidence about it can override its neighbours. ρ = 0 ignores the coordinates; where these
say nothing, it wins by evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist, squareform

from bestprompt.types import FloatArray, IntArray

MEAN_VARIANCE = 0.25
LENGTHS = (0.35, 0.7, 1.4)
SIGNALS = (0.12, 0.25, 0.5, 0.9)
SHARES = (0.6, 0.93)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One prior: ``shape`` is a row of ``Shapes.correlations`` or -1 for none, ``signal`` is s in the scores' units."""

    shape: int
    signal: float
    share: float

    @property
    def log_prior(self) -> float:
        """That nearly all of a score is the prompt's doing is a less likely story than the others."""
        return -1.5 if self.signal == max(SIGNALS) else 0.0


@dataclass(frozen=True, slots=True)
class Shapes:
    """Correlation matrices of the candidates (S, N, N) and the hypotheses that use them."""

    correlations: FloatArray
    hypotheses: tuple[Hypothesis, ...]

    @property
    def n_candidates(self) -> int:
        """Number of candidates, N."""
        return int(self.correlations.shape[1])

    def prior(self, hypothesis: Hypothesis, scale: float, rows: IntArray | None = None) -> FloatArray:
        """(N, N) covariance of the candidates' scores, or of ``rows`` only, when scores vary on the scale ``scale``."""
        variance = (hypothesis.signal * scale) ** 2
        size = self.n_candidates if rows is None else rows.size
        if hypothesis.shape < 0:
            covariance = np.full((size, size), MEAN_VARIANCE)
        else:
            correlation = self.correlations[hypothesis.shape]
            part = correlation if rows is None else correlation[np.ix_(rows, rows)]
            covariance = part * (variance * hypothesis.share) + MEAN_VARIANCE
        covariance[np.diag_indices(size)] += variance * (1.0 - hypothesis.share)
        return np.asarray(covariance, dtype=np.float64)


def candidate_shapes(Z: FloatArray, structured: bool = True) -> Shapes:
    """Correlations of N candidates at ``Z`` (N, D): radial ones at several lengths, a linear one, and none.

    Lengths are multiples of the median distance between distinct candidates, so the units of ``Z`` do not matter.
    """
    n = Z.shape[0]
    plain = [Hypothesis(-1, s, 0.0) for s in SIGNALS]
    distances = pdist(Z) if n > 1 else np.zeros(1)
    apart = distances[distances > 0.0]
    if not structured or apart.size == 0:
        return Shapes(np.zeros((0, n, n)), tuple(plain))
    scaled = squareform(distances) / np.median(apart)
    correlations = [np.exp(-0.5 * (scaled / length) ** 2) for length in LENGTHS]
    centred = Z - Z.mean(axis=0)
    linear = centred @ centred.T
    correlations.append(linear / np.mean(np.diag(linear)))
    shaped = [Hypothesis(k, s, rho) for k in range(len(correlations)) for s in SIGNALS for rho in SHARES]
    return Shapes(np.stack(correlations), (*plain, *shaped))
