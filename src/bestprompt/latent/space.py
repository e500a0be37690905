"""Principal component analysis: latent vectors ↔ soft prompts (paper, appendix "Principal Component Analysis").

Notation (paper symbol → name):
    X_n in [-1, 1]^D~   latent vector            → row of ``X``   (N, D~)
    z_n in R^D          soft prompt              → row of ``Z``   (N, D)
    A                   projection, D × D~       → ``components`` (D, D~), orthonormal rows
    z_n = A X_n; the rows are centred first, which shifts all z_n by the same vector and changes nothing downstream.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.decomposition import PCA

from bestprompt.choices import DEFAULT_DIM
from bestprompt.types import FloatArray

_RELATIVE_RANK_TOLERANCE = 1e-10


@dataclass(frozen=True)
class SoftSpace:
    """A fitted linear map between R^D~ and R^D.

    Attributes:
        mean: (D~,) centre of the rows it was fitted on.
        components: (D, D~) orthonormal rows.
        explained: (D,) share of the total variance along each component.
    """

    mean: FloatArray
    components: FloatArray
    explained: FloatArray

    @classmethod
    def fit(cls, X: FloatArray | csr_array, dim: int = DEFAULT_DIM) -> SoftSpace:
        """Fit on the rows of ``X`` (N, D~), not standardised, with D = min(``dim``, the rank that exists).

        Rows that are all equal leave rank zero; one zero coordinate is kept so that ``Z`` always has a column.
        Of sparse rows only the leading components are looked for, by Lanczos iterations from a fixed start.
        """
        if X.shape[0] < 2 or not (X.max(axis=0) - X.min(axis=0)).sum():
            return cls(np.asarray(X.mean(axis=0)), np.eye(1, X.shape[1]), np.zeros(1))
        if issparse(X):
            pca = PCA(n_components=min(dim, min(X.shape) - 1), svd_solver="arpack", random_state=0).fit(X)
        else:
            pca = PCA(n_components=min(dim, *X.shape), svd_solver="full").fit(X)
        variances = pca.explained_variance_
        rank = max(1, int(np.sum(variances > _RELATIVE_RANK_TOLERANCE * variances[0])))
        return cls(pca.mean_, pca.components_[:rank], pca.explained_variance_ratio_[:rank])

    def to_soft(self, X: FloatArray | csr_array) -> FloatArray:
        """(n, D~) → (n, D)."""
        if issparse(X):
            return np.asarray(X @ self.components.T - self.mean @ self.components.T)
        return (X - self.mean) @ self.components.T

    def to_latent(self, Z: FloatArray) -> FloatArray:
        """(n, D) → (n, D~): the points of the principal subspace with coordinates ``Z``; exact at full rank D."""
        return Z @ self.components + self.mean
