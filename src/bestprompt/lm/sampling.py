"""Choosing the next token from logits with a request's own random numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bestprompt.types import FloatArray


def sample(logits: NDArray[np.float32], temperature: float, top_p: float, rng: np.random.Generator) -> int:
    """One draw from softmax(logits / temperature), cut to the smallest set of likeliest tokens with mass ``top_p``.

    Inverse transform of a single uniform number, in float64, so that one draw is used per token whatever the settings.

    Args:
        logits: (V,)
        temperature: Above zero.
        top_p: In (0, 1].
        rng: The request's own stream.
    """
    scaled = logits.astype(np.float64) / temperature
    mass = np.exp(scaled - scaled.max())
    uniform = rng.random()
    if top_p >= 1.0:
        return _invert(np.cumsum(mass), uniform)
    order = np.argsort(-mass, kind="stable")
    cumulative = np.cumsum(mass[order])
    kept = int(np.searchsorted(cumulative, top_p * cumulative[-1])) + 1
    return int(order[_invert(cumulative[:kept], uniform)])


def _invert(cumulative: FloatArray, uniform: float) -> int:
    at = int(np.searchsorted(cumulative, uniform * cumulative[-1], side="right"))
    return min(at, len(cumulative) - 1)
