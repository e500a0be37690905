"""Isotropic correlation functions of the distance between soft prompts, with their slope in the log length scale.

Notation (paper symbol → name):
    ‖z − z'‖²            squared distance                   → ``squared``            (n, m)
    K_RBF(z, z')         exp(−‖z − z'‖² / ℓ²)   [eq.gp]     → ``correlation("rbf")`` (n, m)
    ℓ (paper: σ)         length scale                       → ``length``

The paper writes the RBF kernel without the usual factor ½; so do we.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from bestprompt.errors import ConfigError
from bestprompt.types import FloatArray

Kernel = Literal["rbf", "matern52"]
KERNELS: tuple[str, ...] = get_args(Kernel)


def check_kernel(kernel: str) -> None:
    """Refuses a name that is no kernel's."""
    if kernel not in KERNELS:
        raise ConfigError(f"kernel {kernel!r} is unknown: choose {' or '.join(KERNELS)}")


def squared_distances(A: FloatArray, B: FloatArray) -> FloatArray:
    """‖a_i − b_j‖² for the rows of ``A`` (n, D) and ``B`` (m, D), shape (n, m).

    Exact zeros on the diagonal if A is B.
    """
    centre = B.mean(axis=0)
    A0, B0 = A - centre, B - centre
    squared = (A0**2).sum(1)[:, None] + (B0**2).sum(1)[None, :] - 2.0 * A0 @ B0.T
    if A is B:
        np.fill_diagonal(squared, 0.0)
    return np.asarray(np.maximum(squared, 0.0))


def typical_distance(Z: FloatArray, largest: int = 300) -> float:
    """Median distance between distinct rows of ``Z`` (n, D), the natural unit of a length scale; 1 if all are equal.

    At most about 2·``largest`` rows, evenly spaced, are looked at.
    """
    step = max(1, len(Z) // largest)
    squared = squared_distances(sample := Z[::step], sample)[np.triu_indices(len(sample), 1)]
    positive = squared[squared > 1e-18]
    return float(np.sqrt(np.median(positive))) if positive.size else 1.0


def correlation(kernel: Kernel, squared: FloatArray, length: float) -> tuple[FloatArray, FloatArray]:
    """Correlation at ``squared`` distances and its derivative in log ℓ, both of the shape of ``squared``.

    rbf: exp(−d²/ℓ²). matern52: (1 + s + s²/3) e^(−s) with s = √5 d/ℓ.

    Raises:
        ConfigError: Unknown kernel.
    """
    check_kernel(kernel)
    if kernel == "rbf":
        scaled = squared / length**2
        value = np.exp(-scaled)
        return value, 2.0 * scaled * value
    s = np.sqrt(5.0 * squared) / length
    decay = np.exp(-s)
    return (1.0 + s + s**2 / 3.0) * decay, s**2 * (1.0 + s) / 3.0 * decay


def same_point(A: FloatArray, B: FloatArray) -> FloatArray:
    """1 where row i of ``A`` (n, D) equals row j of ``B`` (m, D) exactly, else 0; shape (n, m)."""
    where: dict[bytes, list[int]] = {}
    for j, row in enumerate(np.ascontiguousarray(B)):
        where.setdefault(row.tobytes(), []).append(j)
    same = np.zeros((len(A), len(B)))
    for i, row in enumerate(np.ascontiguousarray(A)):
        same[i, where.get(row.tobytes(), [])] = 1.0
    return same
