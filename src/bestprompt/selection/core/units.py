"""Coordinates whose units are not known: one spread for all, unless they look like principal components.

Notation (symbol → name, shape):
    s_d   standard deviation of coordinate d over the candidates   → ``spreads``  (D,)

Distances add up the coordinates, so one with a large spread speaks louder. Of principal components that is meant: they
come in falling order of spread, and the first ones are what candidates differ in. Coordinates that somebody measured in
some unit or other come in any order, and a large spread says nothing about how much they matter. So these are divided
by s_d, and coordinates are kept as they are where s_d ≥ s_e holds for nearly all pairs d < e.
"""

from __future__ import annotations

import numpy as np

from bestprompt.types import BoolArray, FloatArray

# Principal components of a whole set fall for all pairs, those of a part of it for most; any other order for half.
NEARLY_ALL = 0.8


def in_one_unit(Z: FloatArray) -> FloatArray:
    """(N, D) coordinates ``Z``, divided by their spreads where these do not fall."""
    spreads: FloatArray = Z.std(axis=0)
    if _fall(spreads):
        return Z
    return np.asarray(Z / np.where(spreads > 0.0, spreads, 1.0), dtype=np.float64)


def _fall(spreads: FloatArray) -> bool:
    """Whether of two ``spreads`` (D,) the earlier one is nearly always no less than the later."""
    first, second = np.triu_indices(spreads.size, 1)
    falling: BoolArray = spreads[first] >= spreads[second]
    return falling.size == 0 or bool(falling.mean() >= NEARLY_ALL)
