"""The stochastic-kriging twin: a synthetic scorer fitted to the warm-up, on which acquisitions can be tried for free.

Notation (paper symbol → name):
    μ_SK(z_n), σ²_SK(z_n)   predictor and its mean squared error      → ``Twin.mean``, ``Twin.variance``  (N,)
    g*(z_n)                 variance of one evaluation                → ``Twin.noise``                    (N,)
    F                       Cov_SK(v) ≈ F Fᵀ over all candidates      → ``Twin.factor``                   (N, p)
    ṽ(z_n)                  N(μ_SK, σ²_SK + g*)                       → ``tuner.simulate`` draws these
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bestprompt.kriging.inputs import observed
from bestprompt.kriging.kernels import typical_distance
from bestprompt.kriging.stochastic import KrigingModel
from bestprompt.types import Evidence, FloatArray, Posterior


@dataclass(frozen=True, slots=True)
class Twin:
    """A Gaussian belief about all N candidates in low-rank form, and the noise of their evaluations."""

    mean: FloatArray
    factor: FloatArray
    noise: FloatArray

    @property
    def variance(self) -> FloatArray:
        """(N,) σ²_SK, of the low-rank form."""
        return np.asarray((self.factor**2).sum(axis=1))

    @property
    def spread(self) -> float:
        """Standard deviation of true scores over candidates: the unit of the count bonus."""
        return float(np.sqrt(self.mean.var() + self.variance.mean()))


def kriging_twin(Z: FloatArray, evidence: Evidence, model: KrigingModel | None = None, rank: int = 64) -> Twin:
    """Stochastic kriging of ``evidence`` at ``Z`` (N, D), its covariance cut to the ``rank`` largest eigenvalues.

    The part cut off is given back as a common factor on each row, so that σ²_SK stays right.
    """
    Z = np.asarray(Z, dtype=np.float64)
    kriging = (model or KrigingModel()).fit(observed(Z, evidence), unit=typical_distance(Z))
    mean, variance = kriging.predict(Z)
    values, vectors = np.linalg.eigh(kriging.covariance(Z))
    top = np.argsort(values)[::-1][: min(rank, len(Z))]
    factor = vectors[:, top] * np.sqrt(np.maximum(values[top], 0.0))
    kept = (factor**2).sum(axis=1)
    return Twin(mean, factor * np.sqrt(variance / np.maximum(kept, 1e-300))[:, None], np.asarray(evidence.noise))


def twin_of(posterior: Posterior, noise: FloatArray) -> Twin:
    """The twin of any surrogate's posterior with draws (K, N).

    Its mean, and the draws' covariance (rank at most K − 1).
    """
    if posterior.draws is None:
        raise ValueError("a twin needs the posterior's draws")
    anomalies = posterior.draws - posterior.draws.mean(axis=0)
    return Twin(posterior.mean, anomalies.T / np.sqrt(len(anomalies) - 1.0), np.asarray(noise))
