"""The prior beliefs that are averaged: how alike the scores of two candidates are, given their coordinates.

Notation (symbol → name, shape):
    K_l(z, z')   correlation of two candidates' levels           → ``Shapes.correlations``  (S, N, N)
    s²           variance of a candidate's level around the mean → ``Hypothesis.signal``
    ρ            share of s² explained by the coordinates        → ``Hypothesis.share``
    c²           variance of the overall level                   → ``mean_variance``

A hypothesis states cov(f_n, f_m) = s² (ρ K_l(z_n, z_m) + (1 − ρ) 1[n = m]) + c² for the latent levels f. The second
term is the nugget: what a prompt has of its own, so that evidence about it can override its neighbours. ρ = 0 ignores
the coordinates; where these say nothing, it wins by evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist, squareform

from bestprompt.types import FloatArray

LENGTHS = (0.35, 0.7, 1.4)
SIGNALS = (0.125, 0.225, 0.4, 0.72, 1.3)
TYPICAL_SIGNAL = 0.4
SIGNAL_RANGE = 0.8
SHARES = (0.6, 0.93)
STRUCTURED = 3.0


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One prior: ``shape`` is a row of ``Shapes.correlations`` or -1 for none, ``signal`` is s per unit of noise."""

    shape: int
    signal: float
    share: float

    @property
    def log_prior(self) -> float:
        """Log-normal in the signal; some structure is ``STRUCTURED`` times as likely as none."""
        odd = np.log(self.signal / TYPICAL_SIGNAL) / SIGNAL_RANGE
        none = np.log(len(SHARES) * (len(LENGTHS) + 1) / STRUCTURED) if self.shape < 0 else 0.0
        return float(none - 0.5 * odd**2)


@dataclass(frozen=True, slots=True)
class Shapes:
    """Correlation matrices of the candidates (S, N, N) and the hypotheses that use them."""

    correlations: FloatArray
    hypotheses: tuple[Hypothesis, ...]

    @property
    def n_candidates(self) -> int:
        """Number of candidates, N."""
        return int(self.correlations.shape[1])

    def prior(self, hypothesis: Hypothesis, unit: float, mean_variance: float) -> FloatArray:
        """(N, N) covariance of the candidates' levels when one call's noise is ``unit``."""
        variance = (hypothesis.signal * unit) ** 2
        covariance = np.full((self.n_candidates,) * 2, mean_variance)
        if hypothesis.shape >= 0:
            covariance += self.correlations[hypothesis.shape] * (variance * hypothesis.share)
        covariance[np.diag_indices(self.n_candidates)] += variance * (1.0 - hypothesis.share)
        return covariance


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
