"""Noise variance of every candidate from the sample variances of a few (paper: the predictive model g*).

Notation (paper symbol → name):
    σ̂_n²     sample variance of R warm-up scores         → ``variances``      (m,)
    R        scores behind each of them                  → ``replications``   (m,)
    g*(z_n)  approximated variance of one evaluation     → result of a model  (N,)

Deviations from the paper, because σ̂² from R = 5 binary scores is often exactly zero (infinite weight) and a regression
of raw variances can go negative: sample variances are first shrunk toward their pooled value (an inverse-gamma prior
worth ``prior_replications`` degrees of freedom), regressed on the log scale, and kept near the pooled variance. The
pooled variance is itself shrunk toward a guess, because all prompts of a warm-up may answer alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bestprompt.choices import VarianceName
from bestprompt.errors import ConfigError, SurrogateError
from bestprompt.kriging.inputs import ABSOLUTE_FLOOR, Observed
from bestprompt.kriging.stochastic import KrigingModel
from bestprompt.types import FloatArray, IntArray

# What is expected of the pooled variance before any score: that of scores in [0, 1] (standard deviation .3), with the
# weight of so many degrees of freedom.
PRIOR_VARIANCE = 0.09
PRIOR_DEGREES = 2.0
# The guess is never further than this factor from the scatter that was seen: scores may be on another scale.
PRIOR_REACH = 4.0


class VarianceModel(Protocol):
    """g*: predicts the noise variance of every candidate."""

    def __call__(self, Z: FloatArray, rows: IntArray, variances: FloatArray, replications: IntArray) -> FloatArray:
        """(N,) variance of one evaluation at the rows of ``Z`` (N, D), from sample variances (m,) at ``rows`` (m,)."""
        ...


def pooled_variance(variances: FloatArray, replications: IntArray) -> float:
    """(Σ (R_n − 1) σ̂_n² + d σ₀²) / (Σ (R_n − 1) + d); rows with a single replication carry no weight.

    Without a guess σ₀², worth d degrees of freedom, equal answers would mean no noise at all and infinite weight. How
    large noise can be depends on the scale of the scores, of which variances tell something only where they are
    positive. So σ₀² is the variance expected of scores in [0, 1], unless the candidates whose answers differed say
    otherwise: then it is moved to within a factor ``PRIOR_REACH`` of their variance. Where all answers are equal the
    scale is unknown, and scores are taken to be in [0, 1], as every scorer promises.
    """
    degrees = np.maximum(np.asarray(replications, float) - 1.0, 0.0)
    usable = degrees > 0
    if not usable.any():
        raise SurrogateError("noise variances need at least one candidate with two evaluations")
    weights, seen = degrees[usable], np.asarray(variances, float)[usable]
    if not np.isfinite(seen).all():
        raise SurrogateError("a warm-up sample variance is not finite")
    prior, scattered = PRIOR_VARIANCE, seen > ABSOLUTE_FLOOR  # equal answers may differ by rounding
    if scattered.any():
        typical = float(np.average(seen[scattered], weights=weights[scattered]))
        prior = float(np.clip(prior, typical / PRIOR_REACH, typical * PRIOR_REACH))
    return float((weights @ seen + PRIOR_DEGREES * prior) / (weights.sum() + PRIOR_DEGREES))


def shrunken(variances: FloatArray, replications: IntArray, prior_replications: float = 4.0) -> FloatArray:
    """(m,) posterior-mean style estimates ((R_n − 1) σ̂_n² + d₀ σ̄²) / (R_n − 1 + d₀), σ̄² the pooled variance."""
    degrees = np.maximum(np.asarray(replications, float) - 1.0, 0.0)
    raw = np.where(degrees > 0, variances, 0.0)
    pooled = pooled_variance(variances, replications)
    return np.asarray((degrees * raw + prior_replications * pooled) / (degrees + prior_replications))


@dataclass(frozen=True, slots=True)
class PooledVariance:
    """One variance for all candidates."""

    def __call__(self, Z: FloatArray, rows: IntArray, variances: FloatArray, replications: IntArray) -> FloatArray:
        """See :class:`VarianceModel`."""
        return np.full(len(Z), pooled_variance(variances, replications))


Regression = Callable[[FloatArray, IntArray, FloatArray, FloatArray], FloatArray]


def krige(Z: FloatArray, rows: IntArray, targets: FloatArray, noise: FloatArray) -> FloatArray:
    """Kriging predictor (N,) at ``Z`` (N, D) of ``targets`` (m,) seen at ``rows`` with variances ``noise`` (m,)."""
    return KrigingModel().fit(Observed(Z[rows], rows, targets, noise)).predict(Z)[0]


def ridge(Z: FloatArray, rows: IntArray, targets: FloatArray, noise: FloatArray) -> FloatArray:
    """Linear regression (N,) on (1, z) with a unit normal prior on the slopes of z scaled to unit mean square norm."""
    centre = Z[rows].mean(axis=0)
    scale = float(np.sqrt(((Z[rows] - centre) ** 2).sum(1).mean())) or 1.0
    features = (Z - centre) / scale
    seen, intercept = features[rows], float(np.average(targets, weights=1.0 / noise))
    gram = (seen.T / noise) @ seen + np.eye(features.shape[1])
    return np.asarray(intercept + features @ np.linalg.solve(gram, seen.T @ ((targets - intercept) / noise)))


@dataclass(frozen=True, slots=True)
class LogVariance:
    """Regression of shrunken log variances, floored and capped around the pooled variance.

    Attributes:
        regress: Kriging (the paper's g*, here on the log scale) or linear regression.
        prior_replications: d₀, degrees of freedom the pooled variance is worth.
        floor_share: g* stays within [share, 1/share] of the pooled variance.
    """

    regress: Regression = krige
    prior_replications: float = 4.0
    floor_share: float = 0.05

    def __call__(self, Z: FloatArray, rows: IntArray, variances: FloatArray, replications: IntArray) -> FloatArray:
        """See :class:`VarianceModel`."""
        pooled = pooled_variance(variances, replications)
        used = np.asarray(replications) > 1
        degrees = np.asarray(replications, float)[used] - 1.0
        estimates = shrunken(variances, replications, self.prior_replications)[used]
        # Delta method: the estimate's relative variance is 2d/(d + d₀)², and a log loses half of that on average.
        noise = 2.0 * degrees / (degrees + self.prior_replications) ** 2
        logs = self.regress(np.asarray(Z, float), np.asarray(rows)[used], np.log(estimates) + noise / 2, noise)
        return np.asarray(np.exp(np.clip(logs, np.log(self.floor_share * pooled), np.log(pooled / self.floor_share))))


def variance_model(name: VarianceName = "kriging") -> VarianceModel:
    """The variance model of that name: ``kriging`` (default), ``linear`` or ``pooled``."""
    models: dict[str, VarianceModel] = {
        "kriging": LogVariance(krige),
        "linear": LogVariance(ridge),
        "pooled": PooledVariance(),
    }
    if name not in models:
        raise ConfigError(f"variance model {name!r} is unknown: choose one of {', '.join(models)}")
    return models[name]
