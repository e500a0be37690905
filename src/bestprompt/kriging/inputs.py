"""What a fit may rely on: finite soft prompts and scores, at least one evaluated candidate, positive noise.

Notation (paper symbol → name):
    z_n         soft prompt                                     → rows of ``Z``     (N, D)
    v̄_n         mean observed score of an evaluated candidate   → ``scores``        (m,)
    σ_n²/r_n    variance of that mean                           → ``variances``     (m,)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bestprompt.errors import SurrogateError
from bestprompt.types import Evidence, FloatArray, IntArray

# A noise variance below this share of the scores' own variance says nothing but "exact", and only harms conditioning.
RELATIVE_FLOOR = 1e-6
ABSOLUTE_FLOOR = 1e-8


@dataclass(frozen=True, slots=True)
class Observed:
    """The m evaluated candidates out of N.

    Attributes:
        Z: (m, D) their soft prompts.
        rows: (m,) their row numbers in the full set.
        scores: (m,) mean observed scores v̄_n.
        variances: (m,) σ_n²/r_n, strictly positive.
    """

    Z: FloatArray
    rows: IntArray
    scores: FloatArray
    variances: FloatArray

    def take(self, index: IntArray) -> Observed:
        """Only these of the m evaluated candidates."""
        return Observed(self.Z[index], self.rows[index], self.scores[index], self.variances[index])

    @property
    def centre(self) -> float:
        """Mean score, each candidate weighted by its precision damped so that no single one rules."""
        weights = 1.0 / (self.variances + self.variances.mean() + self.scores.var())
        return float(np.average(self.scores, weights=weights))

    @property
    def spread(self) -> float:
        """Variance of the true scores across candidates by moments: Var(v̄) less the noise in it, kept positive."""
        total, noise = float(self.scores.var()), float(self.variances.mean())
        return max(total - noise, 0.1 * total, 0.01 * noise, ABSOLUTE_FLOOR)


def observed(Z: FloatArray, evidence: Evidence) -> Observed:
    """The evaluated rows of ``evidence``, checked; zero noise is raised to a floor.

    Args:
        Z: (N, D) soft prompts.
        evidence: Counts, means and noise, each (N,); means and noise are read only where the count is positive.

    Raises:
        SurrogateError: A wrong shape, a value that is not finite, a negative count or noise, or nothing evaluated.
    """
    Z = np.asarray(Z, dtype=np.float64)
    if Z.ndim != 2 or not (len(Z) == len(evidence.counts) == len(evidence.means) == len(evidence.noise)):
        raise SurrogateError(f"soft prompts of shape {Z.shape} do not match evidence of length {len(evidence.counts)}")
    if not np.isfinite(Z).all():
        raise SurrogateError(f"soft prompt {int(np.argmin(np.isfinite(Z).all(1)))} holds a value that is not finite")
    counts = np.asarray(evidence.counts)
    if (counts < 0).any():
        raise SurrogateError("a candidate has a negative number of evaluations")
    rows = np.flatnonzero(counts > 0)
    if rows.size == 0:
        raise SurrogateError("nothing has been evaluated yet: evaluate at least one candidate before fitting")
    scores, noise = np.asarray(evidence.means, float)[rows], np.asarray(evidence.noise, float)[rows]
    for name, values in (("mean score", scores), ("noise variance", noise)):
        if not np.isfinite(values).all():
            raise SurrogateError(f"the {name} of candidate {int(rows[~np.isfinite(values)][0])} is not finite")
    if (noise < 0).any():
        raise SurrogateError(f"the noise variance of candidate {int(rows[noise < 0][0])} is negative")
    floored = np.maximum(noise, ABSOLUTE_FLOOR + RELATIVE_FLOOR * float(scores.var()))
    return Observed(Z[rows], rows.astype(np.int64), scores, floored / counts[rows])
