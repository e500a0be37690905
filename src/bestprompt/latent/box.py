"""Codes ↔ latent vectors: a fixed redundant frame that spreads a short code over the paper's box [-1, 1]^D~.

Notation (paper symbol → name, shape):
    X in [-1, 1]^D~  latent vector                          → row of ``X``    (n, D~)
    s                code of the network, rms one           → row of ``code`` (n, d), d < D~
    F                fixed D~ × d matrix with FᵀF = (D~/d) I → ``frame_matrix``

    X = tanh(τ F s),   s = (d/D~) Fᵀ atanh(X) / τ

Every coordinate of X has a standard deviation of about τ. With τ well below one, a step as long as the spread of the
prompts rarely leaves the box. Because the frame is redundant, coordinate-wise independent noise on X reaches the
code with its variance divided by D~/d: the decoder averages it out.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from bestprompt.rng import stream
from bestprompt.types import FloatArray

LATENT_DIM = 3584
SPREAD = 0.08
_EDGE = 1.0 - 1e-6


@lru_cache(maxsize=4)
def frame_matrix(code: int, latent: int = LATENT_DIM) -> FloatArray:
    """(D~, d) matrix with orthogonal columns of squared length D~/d, the same on every machine."""
    gaussian = stream(0, "frame", code, latent).standard_normal((latent, code))
    orthonormal, triangle = np.linalg.qr(gaussian)
    # QR fixes columns up to sign; fixing the signs makes the matrix independent of the linear-algebra library.
    return np.asarray(orthonormal * np.sign(np.diag(triangle)) * np.sqrt(latent / code), dtype=np.float64)


def to_latent(code: FloatArray) -> FloatArray:
    """(n, d) → (n, D~) inside the box."""
    return np.asarray(np.tanh(SPREAD * code @ frame_matrix(code.shape[1]).T))


def to_code(X: FloatArray, code: int) -> FloatArray:
    """(n, D~) → (n, d); the exact inverse on the image of ``to_latent``, the least-squares code elsewhere."""
    matrix = frame_matrix(code, X.shape[1])
    return np.asarray(np.arctanh(np.clip(X, -_EDGE, _EDGE)) @ matrix * (code / X.shape[1] / SPREAD))
