"""What decisions and verdicts look at of a belief: plain values, whoever formed it.

Notation (symbol → name, shape):
    μ, C    mean and covariance of the belief                      → ``View.mean`` (N,), ``View.covariance`` (N, N)
    σ_n²    variance of one evaluation of candidate n, items aside → ``Noise.variances``, ``View.noise``  (N,)
    τ²      variance of the item effects                           → ``Noise.item``
    ι       share of σ² that two answers of n on one item have in common → ``Noise.shared``, ``Cells.shared``
    p_nm    expected score of candidate n on item m                → ``Cells.mean``  (K, F, M)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bestprompt.types import FloatArray, IntArray

SHARED_GUESS = 0.5


@dataclass(frozen=True, slots=True)
class Noise:
    """Variances of one evaluation: (N,) per candidate without the item's part, the item's part, and ι of the former."""

    variances: FloatArray
    item: float
    shared: float = SHARED_GUESS


@dataclass(frozen=True, slots=True)
class View:
    """All a decision may look at."""

    mean: FloatArray
    covariance: FloatArray
    noise: FloatArray
    remaining: int
    left: FloatArray

    @property
    def leader(self) -> int:
        """The candidate with the highest mean."""
        return int(np.argmax(self.mean))

    def among(self, rows: IntArray) -> View:
        """The same with the candidates ``rows`` alone."""
        return View(
            self.mean[rows], self.covariance[np.ix_(rows, rows)], self.noise[rows], self.remaining, self.left[rows]
        )


@dataclass(frozen=True, slots=True)
class Cells:
    """Draws of what answers are expected: ``mean`` (K, F, M) p_nm, ``variance`` (K, F, M) σ², and ι."""

    mean: FloatArray
    variance: FloatArray
    shared: float
