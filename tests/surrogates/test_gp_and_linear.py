"""Closed forms: the GP against `eq.gp`, its finite-rank form against it, and linear regression against the textbook."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.errors import ConfigError
from bestprompt.kriging.kernels import correlation, squared_distances
from bestprompt.kriging.stochastic import Hyperparameters
from bestprompt.surrogates.gp import FiniteRankGP, GaussianProcess, fourier_features
from bestprompt.surrogates.linear import BayesianLinearRegression
from bestprompt.types import Evidence

H = Hyperparameters(amplitude=1.0, length=1.5)


def rbf(A, B):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(-1) / H.length**2)


def repeated(problem):
    """The data as the paper writes it: one row per evaluation, t rows in all, every score equal to its mean."""
    rows = np.repeat(np.arange(48), problem.evidence.counts)
    return problem.Z[rows], problem.evidence.means[rows], problem.evidence.noise[rows]


def test_exact_gp_is_eq_gp_over_all_single_evaluations(problem):
    fitted = GaussianProcess(constant_trend=False, hyperparameters=H).fit(
        problem.Z, problem.evidence, np.random.default_rng(0)
    )
    posterior = fitted.posterior(problem.Z)
    Z, y, noise = repeated(problem)
    gain = np.linalg.solve(rbf(Z, Z) + np.diag(noise), rbf(Z, problem.Z)).T
    assert posterior.mean == pytest.approx(gain @ y, abs=1e-9)
    assert posterior.std**2 == pytest.approx(1.0 - (gain * rbf(problem.Z, Z)).sum(1), abs=1e-9)


@pytest.fixture
def distance_from_eq_gp(problem):
    """How far the means and stds of a finite-rank GP are at most from those of the exact one."""
    exact = GaussianProcess(constant_trend=False, hyperparameters=H).fit(
        problem.Z, problem.evidence, np.random.default_rng(0)
    )
    target = exact.posterior(problem.Z)

    def distance(rank, features, seed=1):
        recipe = FiniteRankGP(rank, features, constant_trend=False, hyperparameters=H)
        near = recipe.fit(problem.Z, problem.evidence, np.random.default_rng(seed)).posterior(problem.Z)
        return np.abs(near.mean - target.mean).max() + np.abs(near.std - target.std).max()

    return distance


def test_finite_rank_is_eq_gp_when_every_row_is_a_landmark(distance_from_eq_gp):
    high = distance_from_eq_gp(48, "nystroem")
    assert high < 0.5 * distance_from_eq_gp(6, "nystroem")
    assert high < 1e-4


def test_random_features_approach_eq_gp_as_fast_as_averages_do(distance_from_eq_gp):
    """The kernel is an average over frequencies, so the error falls as rank^(−1/2).

    Distances vary by some 35 % between draws of the frequencies, so the mean of 16 by 9 %, the log of the ratio of two
    such means by .12, and that over log 16 by .045: four of these are .18.
    """
    low, high = (np.mean([distance_from_eq_gp(rank, "fourier", seed) for seed in range(16)]) for rank in (60, 960))
    assert np.log(low / high) / np.log(16) == pytest.approx(0.5, abs=0.18)


@pytest.mark.parametrize("kernel", ["rbf", "matern52"])
def test_fourier_features_reproduce_the_kernel(problem, kernel):
    h = Hyperparameters(amplitude=0.3, length=2.0)
    phi = fourier_features(kernel, h, 40_000, 3, np.random.default_rng(0))(problem.Z[:10])
    wanted = 0.3 * correlation(kernel, squared_distances(problem.Z[:10], problem.Z[:10]), 2.0)[0]
    assert phi @ phi.T == pytest.approx(wanted, abs=0.01)


def test_unknown_kernels_are_refused_wherever_they_are_used():
    for use in (
        lambda: correlation("matern32", np.ones((2, 2)), 1.0),
        lambda: fourier_features("matern32", H, 4, 3, np.random.default_rng(0)),
    ):
        with pytest.raises(ConfigError, match="kernel 'matern32' is unknown: choose rbf or matern52"):
            use()


def test_a_warm_start_ends_where_a_cold_one_does(problem):
    recipe, rng = GaussianProcess(nugget=True), np.random.default_rng(0)
    cold = recipe.fit(problem.Z, problem.evidence, rng)
    warm = recipe.fit(problem.Z, problem.evidence, rng, previous=cold)
    assert warm.posterior(problem.Z).mean == pytest.approx(cold.posterior(problem.Z).mean, abs=0.01)
    kept = recipe.fit(problem.Z, problem.evidence, rng, previous=cold, refit=False)
    assert kept.kriging.hyperparameters == cold.kriging.hyperparameters


def test_nugget_lets_a_candidate_differ_from_its_neighbours():
    """Two candidates nearly on top of each other, both well measured, far apart in score."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(30, 2))
    Z[1] = Z[0] + 1e-3
    means = rng.normal(0.5, 0.15, size=30)
    means[0], means[1] = 0.9, 0.3
    evidence = Evidence(np.full(30, 50), means, np.full(30, 0.05))
    with_nugget = GaussianProcess(nugget=True).fit(Z, evidence, rng).posterior(Z).mean
    assert with_nugget[0] - with_nugget[1] > 0.5


def test_linear_regression_without_additions_is_the_papers(problem):
    recipe = BayesianLinearRegression(intercept=False, slope_variance=1.0, standardise=False, n_draws=4000)
    fitted = recipe.fit(problem.Z, problem.evidence, np.random.default_rng(0))
    Z, y, noise = repeated(problem)
    covariance = np.linalg.inv(np.eye(3) + Z.T @ (Z / noise[:, None]))
    assert fitted.belief.mean == pytest.approx(covariance @ Z.T @ (y / noise))
    assert fitted.belief.covariance() == pytest.approx(covariance)
    assert np.cov(fitted.weights.T) == pytest.approx(covariance, abs=4 * covariance.max() / np.sqrt(4000))


def test_log_evidence_is_the_density_of_the_scores(problem):
    from scipy.stats import multivariate_normal

    from bestprompt.surrogates.linear import gaussian_weights

    used = problem.evidence.counts > 0
    phi, y = problem.Z[used], problem.evidence.means[used]
    variances = problem.evidence.noise[used] / problem.evidence.counts[used]
    prior_mean, prior_variance = np.array([0.1, 0.0, -0.2]), np.array([0.5, 1.0, 2.0])
    belief = gaussian_weights(phi, y, variances, prior_mean, prior_variance)
    joint = phi @ np.diag(prior_variance) @ phi.T + np.diag(variances)
    assert belief.log_evidence == pytest.approx(multivariate_normal(phi @ prior_mean, joint).logpdf(y))
