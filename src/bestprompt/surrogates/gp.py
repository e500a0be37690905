"""Gaussian-process surrogates: the exact posterior of `eq.gp`, and the finite-rank kernel in weight space.

Notation (paper symbol → name):
    K(z, z')           kernel, a·exp(−‖z − z'‖²/ℓ²) by default         → ``KrigingModel``
    μ_GP, σ²_GP        posterior mean and variance [eq.gp]             → ``FittedGP.posterior``  (n,), (n,)
    φ(z) ∈ R^p         features with K(z, z') ≈ φ(z)ᵀφ(z')             → ``fourier_features``, ``nystroem_features``
    W ~ N(0, I_p)      weights, f(z; W) = φ(z)ᵀW                       → ``FittedWeights``

Ours besides the paper: a constant trend, hyperparameters by restricted likelihood, unequal noise σ_n²/r_n, an optional
idiosyncratic variance. ``GaussianProcess(constant_trend=False, hyperparameters=…)`` is `eq.gp` to the letter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bestprompt.kriging.inputs import observed
from bestprompt.kriging.kernels import Kernel, check_kernel, correlation, squared_distances, typical_distance
from bestprompt.kriging.stochastic import Hyperparameters, Kriging, KrigingModel
from bestprompt.surrogates.linear import FittedWeights, gaussian_weights
from bestprompt.surrogates.options import (
    check_choice,
    check_counts,
    check_draws,
    check_flags,
    check_not_negative,
    check_positive,
    check_settings,
)
from bestprompt.types import Evidence, FittedSurrogate, FloatArray, Posterior

# Joint draws need a factor of an (n, n) covariance; above this many rows only mean and std are returned.
LARGEST_JOINT_DRAW = 2048


@dataclass(frozen=True)
class FittedGP:
    """An exact GP posterior; ``noise_seed`` fixes its draws, so equal questions get equal answers.

    Draws are joint within one call of ``posterior`` and independent between calls on different rows.
    """

    kriging: Kriging
    n_draws: int
    noise_seed: int
    diagnostics: Mapping[str, float]

    def posterior(self, Z: FloatArray) -> Posterior:
        """Posterior at any rows ``Z`` (n, D); draws (K, n) up to ``LARGEST_JOINT_DRAW`` rows."""
        Z = np.asarray(Z, dtype=np.float64)
        if self.n_draws == 0 or len(Z) > LARGEST_JOINT_DRAW:
            mean, variance = self.kriging.predict(Z)
            return Posterior(mean, np.sqrt(variance))
        mean, covariance = self.kriging.predict(Z)[0], self.kriging.covariance(Z)
        std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        jitter = 1e-10 * max(float(self.kriging.hyperparameters.amplitude), float(std.max() ** 2))
        factor = _square_root(covariance, jitter)
        noise = np.random.default_rng(self.noise_seed).standard_normal((self.n_draws, factor.shape[1]))
        return Posterior(mean, std, mean + noise @ factor.T)


def _square_root(covariance: FloatArray, jitter: float) -> FloatArray:
    """(n, n) S with S Sᵀ = covariance; by eigenvalues where duplicated rows make Cholesky fail."""
    try:
        return np.asarray(np.linalg.cholesky(covariance + jitter * np.eye(len(covariance))))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def check_hyperparameters(h: Hyperparameters | None) -> None:
    """Refuses fixed hyperparameters without which there is no kernel; ``None``, which fits them, is fine."""
    if h is not None:
        check_settings("hyperparameters", h, Hyperparameters)
        check_positive(h, "amplitude", "length", within="hyperparameters")
        check_not_negative(h, "nugget", within="hyperparameters")


@dataclass(frozen=True, slots=True)
class GaussianProcess:
    """The exact GP.

    Attributes:
        kernel: ``"rbf"`` or ``"matern52"``.
        constant_trend: Estimate a constant mean rather than zero.
        nugget: Fit an idiosyncratic variance, so that evidence about a candidate can override its neighbours.
        hyperparameters: Fixed values; ``None`` fits them.
        n_draws: K; 0 for mean and std only.
    """

    kernel: Kernel = "rbf"
    constant_trend: bool = True
    nugget: bool = False
    hyperparameters: Hyperparameters | None = None
    n_draws: int = 100

    def __post_init__(self) -> None:
        check_kernel(self.kernel)
        check_flags(self, "constant_trend", "nugget")
        check_hyperparameters(self.hyperparameters)
        check_draws(self)

    def fit(
        self,
        Z: FloatArray,
        evidence: Evidence,
        rng: np.random.Generator,
        previous: FittedSurrogate | None = None,
        refit: bool = True,
    ) -> FittedGP:
        """See :class:`bestprompt.types.Surrogate`.

        Args:
            Z: (N, D) soft prompts.
            evidence: What is known of them.
            rng: Fixes the draws.
            previous: The last round's fit: its hyperparameters start the search and save most of its cost.
            refit: ``False`` keeps the hyperparameters of ``previous`` and only conditions on the new evidence.
        """
        data = observed(Z, evidence)
        before = previous if isinstance(previous, FittedGP) else None
        start = before.kriging.hyperparameters if before is not None else None
        fixed = self.hyperparameters if self.hyperparameters is not None or refit else start
        model = KrigingModel(self.kernel, self.constant_trend, self.nugget, fixed, restarts=2 if before is None else 1)
        kriging = model.fit(data, start, unit=typical_distance(Z))
        h = kriging.hyperparameters
        diagnostics = {
            "log_likelihood": kriging.log_likelihood,
            "trend": kriging.trend,
            "amplitude": h.amplitude,
            "length": h.length,
            "nugget": h.nugget,
        }
        return FittedGP(kriging, self.n_draws, int(rng.integers(2**63)), diagnostics)


def fourier_features(
    kernel: Kernel, h: Hyperparameters, rank: int, dimension: int, rng: np.random.Generator
) -> Callable[[FloatArray], FloatArray]:
    """Random Fourier features φ (p = ``rank``) with E φ(z)ᵀφ(z') = K(z, z').

    Frequencies come from the kernel's spectral density: normal for the RBF kernel, multivariate t with 5 degrees of
    freedom for Matérn 5/2; a sine and a cosine of each.
    """
    check_kernel(kernel)
    n = max(1, rank // 2)
    normal = rng.standard_normal((dimension, n))
    if kernel == "rbf":
        frequencies = normal * (np.sqrt(2.0) / h.length)  # exp(−d²/ℓ²) is normal with variance 2/ℓ² in frequency
    else:
        frequencies = normal * np.sqrt(5.0 / rng.chisquare(5.0, n)) / h.length
    size = np.sqrt(h.amplitude / n)

    def features(Z: FloatArray) -> FloatArray:
        angles = Z @ frequencies
        return np.asarray(size * np.concatenate([np.cos(angles), np.sin(angles)], axis=1))

    return features


def nystroem_features(kernel: Kernel, h: Hyperparameters, landmarks: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Nyström features φ(z) = K_LL^(−1/2) K(L, z) at p landmark rows (p, D); exact at the landmarks."""
    values, vectors = np.linalg.eigh(correlation(kernel, squared_distances(landmarks, landmarks), h.length)[0])
    kept = values > 1e-10 * values[-1]
    root = np.sqrt(h.amplitude) * vectors[:, kept] / np.sqrt(values[kept])

    def features(Z: FloatArray) -> FloatArray:
        return np.asarray(correlation(kernel, squared_distances(Z, landmarks), h.length)[0] @ root)

    return features


@dataclass(frozen=True, slots=True)
class FiniteRankGP:
    """GP with kernel φ(z)ᵀφ(z') of rank p in weight space: O(N p²) and joint draws at any number of rows.

    Attributes:
        rank: p.
        features: ``"nystroem"`` (landmarks among the rows; better at a given rank) or ``"fourier"``.
        kernel: ``"rbf"`` or ``"matern52"``.
        constant_trend: Add a constant feature, prior centred on the observed mean.
        hyperparameters: Fixed values; ``None`` takes the exact GP's fit on at most ``rank`` evaluated rows, the most
            often evaluated first.
        n_draws: K; 0 for mean and std only.
    """

    rank: int = 64
    features: Literal["nystroem", "fourier"] = "nystroem"
    kernel: Kernel = "rbf"
    constant_trend: bool = True
    hyperparameters: Hyperparameters | None = None
    n_draws: int = 100

    def __post_init__(self) -> None:
        check_counts(self, 1, "rank")
        check_choice("features", self.features, ("nystroem", "fourier"))
        check_kernel(self.kernel)
        check_flags(self, "constant_trend")
        check_hyperparameters(self.hyperparameters)
        check_draws(self)

    def fit(
        self, Z: FloatArray, evidence: Evidence, rng: np.random.Generator, previous: FittedSurrogate | None = None
    ) -> FittedWeights:
        """See :class:`bestprompt.types.Surrogate`; every fit is made anew."""
        Z = np.asarray(Z, dtype=np.float64)
        data = observed(Z, evidence)
        h = self.hyperparameters
        if h is None:
            model = KrigingModel(self.kernel, self.constant_trend)
            best_known = np.argsort(data.variances, kind="stable")[: max(self.rank, 32)]
            h = model.fit(data.take(best_known), unit=typical_distance(Z)).hyperparameters
        if self.features == "nystroem":
            landmarks = Z[rng.choice(len(Z), min(self.rank, len(Z)), replace=False)]
            smooth = nystroem_features(self.kernel, h, landmarks)
        else:
            smooth = fourier_features(self.kernel, h, self.rank, Z.shape[1], rng)

        def features(rows: FloatArray) -> FloatArray:
            phi = smooth(rows)
            return np.column_stack([np.ones(len(rows)), phi]) if self.constant_trend else phi

        phi = features(data.Z)
        prior_mean, prior_variance = np.zeros(phi.shape[1]), np.ones(phi.shape[1])
        if self.constant_trend:
            prior_mean[0], prior_variance[0] = data.centre, 10.0 * data.spread
        belief = gaussian_weights(phi, data.scores, data.variances, prior_mean, prior_variance)
        diagnostics = {"log_evidence": belief.log_evidence, "amplitude": h.amplitude, "length": h.length}
        return FittedWeights(features, belief, belief.draw(self.n_draws, rng), diagnostics)
