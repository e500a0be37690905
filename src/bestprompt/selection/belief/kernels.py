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
from functools import cached_property

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


@dataclass(frozen=True)
class Shapes:
    """Correlation matrices of the candidates (S, N, N) and the hypotheses that use them."""

    correlations: FloatArray
    hypotheses: tuple[Hypothesis, ...]

    @property
    def n_candidates(self) -> int:
        """Number of candidates, N."""
        return int(self.correlations.shape[1])

    @cached_property
    def parts(self) -> FloatArray:
        """(2 + S, N, N) what every prior covariance is a sum of: the overall level, the own part, the correlations."""
        n = self.n_candidates
        return np.concatenate([np.ones((1, n, n)), np.eye(n)[None], self.correlations])

    @cached_property
    def log_priors(self) -> FloatArray:
        """(G,) log prior: log-normal in the signal; some structure is ``STRUCTURED`` times as likely as none."""
        odd = np.log([h.signal / TYPICAL_SIGNAL for h in self.hypotheses]) / SIGNAL_RANGE
        none = np.log(max(len(SHARES) * len(self.correlations), 1) / STRUCTURED)
        return np.asarray(np.where([h.shape < 0 for h in self.hypotheses], none, 0.0) - 0.5 * odd**2)

    def amounts(self, unit: float, mean_variance: float) -> FloatArray:
        """(G, 2 + S) how much of each part is in each hypothesis' covariance when one call's noise is ``unit``."""
        variances = (np.array([h.signal for h in self.hypotheses]) * unit) ** 2
        shares, shapes = (np.array([getattr(h, name) for h in self.hypotheses]) for name in ("share", "shape"))
        found = np.zeros((variances.size, 2 + len(self.correlations)))
        found[:, 0], found[:, 1] = mean_variance, variances * (1.0 - shares)
        shaped = np.flatnonzero(shapes >= 0)
        found[shaped, 2 + shapes[shaped]] = (variances * shares)[shaped]
        return found

    def prior(self, amounts: FloatArray) -> FloatArray:
        """(N, N) covariance of the candidates' levels that has these ``amounts`` (2 + S,) of the parts."""
        return summed(amounts, self.parts)


def summed(amounts: FloatArray, parts: FloatArray) -> FloatArray:
    """(a, b) sum of ``parts`` (P, a, b) by these ``amounts`` (P,), most of which are 0."""
    first, *others = np.flatnonzero(amounts)
    total = parts[first] * amounts[first]
    for p in others:
        total += parts[p] * amounts[p]
    return np.asarray(total, dtype=np.float64)


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
