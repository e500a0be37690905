"""Stochastic kriging (Ankenman, Nelson and Staum): a Gaussian process seen through known, unequal noise.

Notation (paper symbol → name):
    v(z) = b + M(z) + δ(z)   trend, smooth part, optional idiosyncratic part
    b                        constant trend (generalised least squares)     → ``trend``
    a, ℓ, τ²                 variance of M, its length scale, variance of δ → ``Hyperparameters``
    Σ_ε                      diag(σ_n² / r_n)                               → ``Observed.variances``  (m,)
    Σ                        a C(ℓ) + τ² 1[z = z'] + Σ_ε                    → ``covariance``          (m, m)
    μ_SK, σ²_SK              predictor and its mean squared error           → ``Kriging.predict``     (n,), (n,)

With k = Cov(v(z), v̄) and η = 1 − 1ᵀΣ⁻¹k,
    μ_SK(z)  = b̂ + kᵀΣ⁻¹(v̄ − b̂ 1),   b̂ = 1ᵀΣ⁻¹v̄ / 1ᵀΣ⁻¹1
    σ²_SK(z) = Var v(z) − kᵀΣ⁻¹k + η² / 1ᵀΣ⁻¹1
and without trend (b = 0) these are `eq.gp`. Hyperparameters maximise the restricted likelihood, the trend integrated
out, times weak log-normal priors in natural units (median distance, spread of the scores): with a handful of warm-up
points the likelihood alone has no maximum. That prior, and the optional δ, are ours; the paper leaves the fit open.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize

from bestprompt.errors import SurrogateError
from bestprompt.kriging.inputs import Observed
from bestprompt.kriging.kernels import Kernel, correlation, same_point, squared_distances, typical_distance
from bestprompt.types import FloatArray


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """Variance of the smooth part, its length scale, and the variance of the idiosyncratic part."""

    amplitude: float
    length: float
    nugget: float = 0.0


@dataclass(frozen=True, slots=True)
class KrigingModel:
    """The recipe of a kriging fit.

    Attributes:
        kernel: Correlation function.
        constant_trend: Estimate a constant trend; otherwise the mean is zero, as in the paper's GP example.
        nugget: Fit an idiosyncratic variance τ², so that evidence about a candidate can override its neighbours.
        fixed: Use these hyperparameters as they are.
        prior_sd: Standard deviations of the log-normal priors of amplitude, length and nugget.
        nugget_share: Prior median of τ² as a share of the scores' spread.
        restarts: Starting points of the likelihood search (a previous fit's values count as one).
    """

    kernel: Kernel = "rbf"
    constant_trend: bool = True
    nugget: bool = False
    fixed: Hyperparameters | None = None
    prior_sd: tuple[float, float, float] = (1.5, 0.7, 1.5)
    nugget_share: float = 0.1
    restarts: int = 2

    def fit(self, data: Observed, start: Hyperparameters | None = None, unit: float | None = None) -> Kriging:
        """Fit hyperparameters and condition on ``data``.

        Args:
            data: The evaluated candidates.
            start: Where to start the search, e.g. the hyperparameters of the last round.
            unit: Natural unit of the length scale; the median distance within ``data`` if not given.
        """
        if self.fixed is not None:
            return Kriging(self, data, self.fixed)
        squared = squared_distances(data.Z, data.Z)
        same = same_point(data.Z, data.Z) if self.nugget else None
        length = typical_distance(data.Z) if unit is None else unit
        centre = np.log([data.spread, length, self.nugget_share * data.spread])[: 3 if self.nugget else 2]
        sd = np.asarray(self.prior_sd)[: len(centre)]

        def loss(log_parameters: FloatArray) -> tuple[float, FloatArray]:
            value, slope = self._log_likelihood(log_parameters, data, squared, same)
            pull = (log_parameters - centre) / sd
            return -value + 0.5 * float(pull @ pull), -slope + pull / sd

        offsets = [0.0, -1.0, 1.0][: max(1, self.restarts - (start is not None))]
        starts = [centre + np.array([0.0, o, 0.0])[: len(centre)] for o in offsets]
        if start is not None:
            floor = 1e-3 * self.nugget_share * data.spread
            starts.insert(0, np.log([start.amplitude, start.length, max(start.nugget, floor)])[: len(centre)])
        bounds = list(zip(centre - 5.0 * sd, centre + 5.0 * sd, strict=True))
        fits = [
            minimize(loss, np.clip(s, *np.transpose(bounds)), jac=True, method="L-BFGS-B", bounds=bounds, tol=1e-4)
            for s in starts[: max(1, self.restarts)]
        ]
        best = min(fits, key=lambda fit: float(fit.fun))
        if not np.isfinite(best.fun):
            raise SurrogateError("the kriging likelihood is not finite", {"loss": float(best.fun)})
        return Kriging(self, data, Hyperparameters(*(float(x) for x in np.exp(best.x))))

    def _log_likelihood(
        self, log_parameters: FloatArray, data: Observed, squared: FloatArray, same: FloatArray | None
    ) -> tuple[float, FloatArray]:
        """Restricted log-likelihood (up to a constant) and its gradient in the log hyperparameters.

        L = −½ (log|Σ| + log 1ᵀΣ⁻¹1 + v̄ᵀP v̄),  ∂L = ½ (v̄ᵀP ∂Σ P v̄ − tr P ∂Σ),  P = Σ⁻¹ − Σ⁻¹11ᵀΣ⁻¹ / 1ᵀΣ⁻¹1.
        """
        amplitude, length, *nugget = np.exp(log_parameters)
        value, slope = correlation(self.kernel, squared, length)
        parts = [amplitude * value, amplitude * slope]
        covariance = parts[0] + np.diag(data.variances)
        if same is not None:
            parts.append(nugget[0] * same)
            covariance = covariance + parts[2]
        factor = cho_factor(covariance, lower=True)
        P = cho_solve(factor, np.eye(len(covariance)))
        log_determinant = 2.0 * np.log(np.diag(factor[0])).sum()
        if self.constant_trend:
            row = P.sum(axis=0)
            total = row.sum()
            P = P - np.outer(row, row) / total
            log_determinant += np.log(total)
        centred = data.scores - data.centre if self.constant_trend else data.scores
        residual = P @ centred
        gradient = [0.5 * (residual @ part @ residual - (P * part).sum()) for part in parts]
        return float(-0.5 * (log_determinant + centred @ residual)), np.asarray(gradient)


@dataclass(frozen=True)
class Kriging:
    """A kriging model conditioned on the evaluated candidates; holds no state besides its three fields."""

    model: KrigingModel
    data: Observed
    hyperparameters: Hyperparameters

    def _between(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """(n, m) prior covariance of v at the rows of ``A`` and ``B``."""
        h = self.hyperparameters
        prior = h.amplitude * correlation(self.model.kernel, squared_distances(A, B), h.length)[0]
        return prior + h.nugget * same_point(A, B) if h.nugget > 0 else prior

    @cached_property
    def _factor(self) -> FloatArray:
        """(m, m) lower Cholesky factor of Σ."""
        covariance = self._between(self.data.Z, self.data.Z) + np.diag(self.data.variances)
        try:
            return np.asarray(np.linalg.cholesky(covariance))
        except np.linalg.LinAlgError as error:
            raise SurrogateError("the kriging covariance is not positive definite: the noise is too small") from error

    @cached_property
    def _whitened(self) -> tuple[FloatArray, FloatArray]:
        """L⁻¹1 and L⁻¹(v̄ − b̂1), each (m,)."""
        ones = solve_triangular(self._factor, np.ones(len(self.data.scores)), lower=True)
        residual = solve_triangular(self._factor, self.data.scores - self.trend, lower=True)
        return ones, residual

    @cached_property
    def trend(self) -> float:
        """b̂, the generalised least squares estimate of the constant trend, or 0."""
        if not self.model.constant_trend:
            return 0.0
        weights = cho_solve((self._factor, True), np.ones(len(self.data.scores)))
        return float(weights @ self.data.scores / weights.sum())

    @cached_property
    def log_likelihood(self) -> float:
        """The log density of N(v̄; b̂ 1, Σ), the fitted trend taken as known."""
        _, residual = self._whitened
        return float(
            -0.5 * (residual @ residual + len(residual) * np.log(2 * np.pi)) - np.log(np.diag(self._factor)).sum()
        )

    def _condition(self, Z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Predictor (n,), L⁻¹k (m, n) and the trend's share η/√(1ᵀΣ⁻¹1) (n,)."""
        ones, residual = self._whitened
        gain = solve_triangular(self._factor, self._between(self.data.Z, Z), lower=True)
        share = (1.0 - ones @ gain) / np.sqrt(ones @ ones) if self.model.constant_trend else np.zeros(len(Z))
        return self.trend + residual @ gain, gain, share

    def predict(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """μ_SK and σ²_SK at the rows of ``Z`` (n, D); each (n,)."""
        mean, gain, share = self._condition(Z)
        prior = self.hyperparameters.amplitude + self.hyperparameters.nugget
        return mean, np.maximum(prior - (gain**2).sum(axis=0) + share**2, 0.0)

    def covariance(self, Z: FloatArray) -> FloatArray:
        """(n, n) posterior covariance at the rows of ``Z`` (n, D); its diagonal is σ²_SK."""
        _, gain, share = self._condition(Z)
        return np.asarray(self._between(Z, Z) - gain.T @ gain + np.outer(share, share))
