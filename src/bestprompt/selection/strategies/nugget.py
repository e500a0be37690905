"""What a candidate has of its own, beside what a surrogate sees in its coordinates.

Notation (symbol → name, shape):
    v_n = f(z_n) + u_n    mean score: the surrogate's part and the candidate's own, u_n ~ N(0, τ²)
    τ²                    variance of the own part                       → ``variance``
    v̄_n, σ_n²/r_n         observed mean and its variance                 → ``Evidence.means``, ``noise / counts``  (N,)
    w_n                   τ² / (τ² + σ_n²/r_n), 0 without evaluations    → ``weights``  (N,)

The surrogate is fitted to means of variance σ_n²/r_n + τ². Given f, the own part is normal around w_n (v̄_n − f(z_n))
with variance τ² (1 − w_n), so evidence about a candidate overrides its neighbours as it accumulates, and two
candidates at the same place may differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bestprompt.types import Evidence, FloatArray, IntArray, Posterior

FIRST_SHARE = 0.05
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Nugget:
    """Own parts of variance ``variance``; 0 leaves a surrogate as it is."""

    variance: float

    def widened(self, evidence: Evidence) -> Evidence:
        """The evidence as the surrogate is to see it: noise per evaluation such that its mean has σ²/r + τ²."""
        return replace(evidence, noise=evidence.noise + evidence.counts * self.variance)

    def weights(self, evidence: Evidence, rows: IntArray | slice) -> FloatArray:
        """(n,) w of the candidates ``rows``."""
        own = self.variance * evidence.counts[rows]
        return np.asarray(own / (own + evidence.noise[rows]), dtype=np.float64)

    def added(
        self, posterior: Posterior, evidence: Evidence, rows: IntArray | slice, rng: np.random.Generator
    ) -> Posterior:
        """The posterior of v at ``rows`` from that of f there."""
        if self.variance == 0.0:
            return posterior
        w = self.weights(evidence, rows)
        own = self.variance * (1.0 - w)
        seen = w * evidence.means[rows]
        std = np.sqrt(((1.0 - w) * posterior.std) ** 2 + own)
        draws = posterior.draws
        if draws is not None:
            draws = seen + (1.0 - w) * draws + np.sqrt(own) * rng.standard_normal(draws.shape)
        return Posterior(seen + (1.0 - w) * posterior.mean, std, draws)

    def learned(self, fitted: FloatArray, evidence: Evidence) -> Nugget:
        """τ² from how far the means of the evaluated candidates lie from ``fitted`` (N,), the surrogate's means there.

        A few steps of expectation–maximisation from the present τ², which has the weight of two candidates.
        """
        rows = np.flatnonzero(evidence.counts)
        off = (evidence.means - fitted)[rows]
        nugget = self
        for _ in range(ROUNDS):
            w = nugget.weights(evidence, rows)
            squares = (w * off) ** 2 + nugget.variance * (1.0 - w)
            nugget = Nugget(float((squares.sum() + 2.0 * self.variance) / (rows.size + 2.0)))
        return nugget


def first_nugget(scale: float) -> Nugget:
    """Before anything is known: a small share of the variance of the scores, whose typical distance is ``scale``."""
    return Nugget(FIRST_SHARE * scale**2)


NONE = Nugget(0.0)
