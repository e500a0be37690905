"""Arrays of few shapes, so that few programs are compiled: rows are filled up to a power of two."""

from __future__ import annotations

import numpy as np

from bestprompt.types import FloatArray


def row_shape(n: int, smallest: int = 64) -> int:
    """``smallest`` times the power of two that makes it hold ``n`` rows."""
    return smallest << (-(-max(n, 1) // smallest) - 1).bit_length()


def padded(values: FloatArray, size: int | None = None, fill: float = 0.0) -> np.ndarray:
    """``values`` (n, …) in single precision, rows of ``fill`` appended up to ``size`` or :func:`row_shape` rows."""
    rows = row_shape(len(values)) if size is None else size
    result = np.full((rows, *values.shape[1:]), fill, np.float32)
    result[: len(values)] = values
    return result
