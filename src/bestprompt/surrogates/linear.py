"""Gaussian posterior over weights in closed form, and Bayesian linear regression on top of it.

Notation (paper symbol → name):
    φ(z)          features                                     → ``features(Z)``   (n, p)
    W             weights, prior N(μ_0, diag λ)                → ``GaussianWeights.mean``, ``.factor``
    σ_n²/r_n      variance of a mean score                     → ``Observed.variances``
    f(z; W)       φ(z)ᵀW                                       → ``FittedWeights.posterior``
    Ŵ_1 … Ŵ_K     posterior draws (K = 100)                    → ``FittedWeights.weights``  (K, p)

With Ω = diag(r_n/σ_n²): posterior precision A = diag(1/λ) + ΦᵀΩΦ, mean μ_0 + A⁻¹ΦᵀΩ(v̄ − Φμ_0).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize_scalar

from bestprompt.errors import SurrogateError
from bestprompt.kriging.inputs import observed
from bestprompt.surrogates.options import check_draws, check_flags, check_positive
from bestprompt.types import Evidence, FittedSurrogate, FloatArray, Posterior


@dataclass(frozen=True, slots=True)
class GaussianWeights:
    """N(mean, A⁻¹) over p weights, A = L Lᵀ.

    Attributes:
        mean: (p,)
        factor: (p, p) lower Cholesky factor L of the posterior precision A.
        log_evidence: log density of the scores under the prior.
    """

    mean: FloatArray
    factor: FloatArray
    log_evidence: float

    def draw(self, k: int, rng: np.random.Generator) -> FloatArray:
        """(k, p) independent draws."""
        noise = rng.standard_normal((len(self.mean), k))
        return np.asarray(self.mean + solve_triangular(self.factor, noise, lower=True, trans="T").T)

    def covariance(self) -> FloatArray:
        """(p, p) A⁻¹."""
        return np.asarray(cho_solve((self.factor, True), np.eye(len(self.mean))))


def gaussian_weights(
    features: FloatArray, scores: FloatArray, variances: FloatArray, prior_mean: FloatArray, prior_variance: FloatArray
) -> GaussianWeights:
    """Posterior of W for scores (m,) at ``features`` (m, p) with noise ``variances`` (m,), prior N(mean, diag)."""
    weighted = features / variances[:, None]
    precision = features.T @ weighted + np.diag(1.0 / prior_variance)
    residual = scores - features @ prior_mean
    projected = weighted.T @ residual
    try:
        factor = np.linalg.cholesky(precision)
    except np.linalg.LinAlgError as error:
        raise SurrogateError("the posterior precision of the weights is not positive definite") from error
    shift = cho_solve((factor, True), projected)
    # Matrix determinant lemma and Woodbury: everything in p × p.
    log_evidence = -0.5 * (
        residual @ (residual / variances)
        - projected @ shift
        + 2.0 * np.log(np.diag(factor)).sum()
        + np.log(prior_variance).sum()
        + np.log(2.0 * np.pi * variances).sum()
    )
    return GaussianWeights(np.asarray(prior_mean + shift), np.asarray(factor), float(log_evidence))


@dataclass(frozen=True)
class FittedWeights:
    """A surrogate linear in Gaussian weights: exact mean and std, the same K weight draws at all rows ever asked."""

    features: Callable[[FloatArray], FloatArray]
    belief: GaussianWeights
    weights: FloatArray
    diagnostics: Mapping[str, float]

    def posterior(self, Z: FloatArray) -> Posterior:
        """Posterior at any rows ``Z`` (n, D); draws (K, n)."""
        phi = self.features(np.asarray(Z, dtype=np.float64))
        spread = solve_triangular(self.belief.factor, phi.T, lower=True)
        draws = self.weights @ phi.T if len(self.weights) else None
        return Posterior(phi @ self.belief.mean, np.sqrt((spread**2).sum(axis=0)), draws)


@dataclass(frozen=True, slots=True)
class BayesianLinearRegression:
    """v(z) = w_0 + wᵀz with Gaussian weights, in closed form.

    Defaults differ from the paper, which has no intercept and leaves μ_0, Σ_0 to the user: scores in [0, 1] are not
    centred, so an intercept is kept, with prior mean at the observed centre; z is centred and scaled to unit mean
    square norm (all coordinates by one number, as the PCA's own scaling carries information); slopes are independent
    N(0, s²), s² by marginal likelihood. ``BayesianLinearRegression(intercept=False, slope_variance=1.0,
    standardise=False)`` is the paper's model to the letter.

    Attributes:
        intercept: Whether w_0 exists.
        slope_variance: s²; ``None`` fits it.
        standardise: Centre and scale z.
        n_draws: K; 0 for mean and std only.
    """

    intercept: bool = True
    slope_variance: float | None = None
    standardise: bool = True
    n_draws: int = 100

    def __post_init__(self) -> None:
        check_flags(self, "intercept", "standardise")
        if self.slope_variance is not None:
            check_positive(self, "slope_variance")
        check_draws(self)

    def fit(
        self, Z: FloatArray, evidence: Evidence, rng: np.random.Generator, previous: FittedSurrogate | None = None
    ) -> FittedWeights:
        """See :class:`bestprompt.types.Surrogate`; a closed form needs no ``previous``."""
        data = observed(Z, evidence)
        centre = np.mean(Z, axis=0) if self.standardise else np.zeros(np.shape(Z)[1])
        scale = float(np.sqrt(((Z - centre) ** 2).sum(1).mean())) or 1.0 if self.standardise else 1.0

        def features(rows: FloatArray) -> FloatArray:
            scaled = (rows - centre) / scale
            return np.column_stack([np.ones(len(rows)), scaled]) if self.intercept else np.asarray(scaled)

        phi = features(data.Z)
        prior_mean = np.zeros(phi.shape[1])
        if self.intercept:
            prior_mean[0] = data.centre

        def belief_given(slope_variance: float) -> GaussianWeights:
            prior_variance = np.full(phi.shape[1], slope_variance)
            if self.intercept:
                prior_variance[0] = 10.0 * data.spread
            return gaussian_weights(phi, data.scores, data.variances, prior_mean, prior_variance)

        slope_variance = self.slope_variance
        if slope_variance is None:
            # Weak log-normal prior around the spread keeps s² finite when the likelihood is flat (few or equal scores).
            unit = np.log(data.spread)
            search = minimize_scalar(
                lambda log_s: -belief_given(np.exp(log_s)).log_evidence + 0.5 * ((log_s - unit) / 2.0) ** 2,
                bounds=(unit - 10.0, unit + 10.0),
                method="bounded",
                options={"xatol": 1e-2},
            )
            slope_variance = float(np.exp(search.x))
        belief = belief_given(slope_variance)
        return FittedWeights(
            features,
            belief,
            belief.draw(self.n_draws, rng),
            {"log_evidence": belief.log_evidence, "slope_variance": slope_variance},
        )
