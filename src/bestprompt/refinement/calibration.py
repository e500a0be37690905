"""How far predictions at new prompts were off so far in a run, and what that says of the next.

Notation (symbol → name, shape (k,) over the refined prompts that were evaluated):
    μ̂_i, s_i    prediction and its uncertainty before the first evaluation     → ``Prediction.mean``, ``.std``
    v̄_i, ν_i²   mean score seen since and the variance of its noise            → ``Observed.scores``, ``.variances``
    e_i         v̄_i − μ̂_i                                                     → ``errors``
    b           what predictions are off by on average, b ~ N(0, b_0²)         → ``Correction.bias``
    c           how much wider errors are than stated                          → ``Correction.inflation``

    b̂ = Σ w_i e_i / (Σ w_i + b_0⁻²),   c² = (κ + Σ w_i (e_i − b̂)²) / (κ + k),   w_i = 1 / (s_i² + ν_i²)

A prompt is proposed because its prediction is high, so predictions are too high on average: the best of many guesses is
a lucky guess. An own addition of the default mode; the paper takes predictions as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bestprompt.kriging.inputs import Observed
from bestprompt.types import FloatArray

BIAS_SHARE = 0.5  # b_0 in units of the true scores' spread
INFLATION_WEIGHT = 3.0  # κ, the errors that "as stated" counts for
MOST_INFLATION = 3.0


@dataclass(frozen=True, slots=True)
class Prediction:
    """What was predicted of a candidate that refinement added, before any correction."""

    candidate: int
    mean: float
    std: float


@dataclass(frozen=True, slots=True)
class Correction:
    """Predictions become ``mean + bias`` and ``inflation · std``."""

    bias: float = 0.0
    inflation: float = 1.0

    def __call__(self, mean: FloatArray, std: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The corrected ``mean`` and ``std`` (n,)."""
        return mean + self.bias, self.inflation * std


def corrected(past: Sequence[Prediction], data: Observed, spread: float) -> Correction:
    """What the errors of ``past`` predictions ask for, given all observations ``data``.

    Args:
        past: Predictions; those of candidates that were not evaluated since say nothing.
        data: Mean scores of the evaluated candidates, numbered by ``rows``.
        spread: Standard deviation of true scores in the set.
    """
    places = {int(row): place for place, row in enumerate(data.rows)}
    known = [(p, places[p.candidate]) for p in past if p.candidate in places]
    if not known:
        return Correction()
    errors = np.array([data.scores[place] - p.mean for p, place in known])
    weights = 1.0 / np.array([p.std**2 + data.variances[place] for p, place in known])
    bias = float(weights @ errors / (weights.sum() + (BIAS_SHARE * spread) ** -2))
    width = (INFLATION_WEIGHT + float(weights @ (errors - bias) ** 2)) / (INFLATION_WEIGHT + len(known))
    return Correction(bias, float(np.clip(np.sqrt(width), 1.0, MOST_INFLATION)))
