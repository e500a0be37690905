"""What an uncertain quantity is expected to exceed a bar by: the one formula behind EI and the duels.

Notation (paper symbol → name):
    μ, σ    mean and standard deviation of v       → ``spread`` is σ
    v*      score to beat                          → ``gap`` is v* − μ
    EI      E[(v − v*)⁺] = σ φ(z) − gap Φ(−z), z = gap/σ   [eq.ei]   → ``expected_excess``
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from bestprompt.types import FloatArray


def expected_excess(gap: FloatArray, spread: FloatArray) -> FloatArray:
    """E[(X − gap)⁺] for X ~ N(0, spread²), elementwise; max(−gap, 0) where there is no spread."""
    safe = np.maximum(spread, 1e-12)
    z = gap / safe
    value = safe * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) - gap * ndtr(-z)
    return np.asarray(np.where(spread > 1e-12, np.maximum(value, 0.0), np.maximum(-gap, 0.0)))
