"""Variational inference against the exact posterior of a linear model, and the priors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bestprompt.errors import ConfigError
from bestprompt.surrogates.inference import (
    Batch,
    MeanField,
    NegativeELBO,
    WeightPrior,
    descend,
    draw_mean_field,
    start_descent,
)
from bestprompt.surrogates.linear import gaussian_weights


@pytest.fixture(scope="module")
def known():
    """Eight rows, one of weight zero, correlated columns, and the exact posterior of the weights."""
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(8, 3)) @ np.array([[1.0, 0.6, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 0.7]])
    scores = Z @ np.array([0.8, -0.5, 0.3]) + 0.3 * rng.normal(size=8)
    variances = rng.uniform(0.05, 0.5, size=8)
    precision = 1 / variances
    precision[5], scores[5] = 0.0, 99.0
    used = precision > 0
    exact = gaussian_weights(Z[used], scores[used], variances[used], np.zeros(3), np.ones(3))
    return Batch(*(x.astype(np.float32) for x in (Z, scores, precision))), exact


@pytest.fixture(scope="module")
def variational(known, linear):
    batch, _ = known
    rng, objective = np.random.default_rng(0), NegativeELBO(linear, n_pairs=32)
    state = start_descent(MeanField(np.zeros(3), np.zeros(3)))
    repeated = Batch(*(np.broadcast_to(x, (250, *x.shape)) for x in batch))
    for rate in (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003):
        state, losses = descend(
            objective, state, repeated, objective.noise(rng, state.params, 250), np.full(250, rate, np.float32)
        )
    return state.params, np.asarray(losses)


def test_mean_field_has_the_exact_mean_and_the_known_variance(known, variational):
    """The best independent normals for a normal target: same mean, variance 1 / diagonal of the precision."""
    _, exact = known
    params, _ = variational
    std = np.sqrt(np.diag(exact.covariance()))
    # 64 draws per step, averaged by Adam over some 1/rate steps, leave an error of a few thousandths of a std in m; the
    # slope in log s is a product of two such terms and several times as noisy.
    assert np.abs((np.asarray(params.mean) - exact.mean) / std).max() < 0.01
    precision = exact.factor @ exact.factor.T
    assert np.exp(np.asarray(params.log_std)) == pytest.approx(1 / np.sqrt(np.diag(precision)), rel=0.02)


def test_elbo_is_below_the_log_evidence_by_the_divergence(known, variational):
    """ELBO = log evidence − KL(q ‖ posterior), with both known for the linear model."""
    batch, exact = known
    _, losses = variational
    used = batch.precision > 0
    constant = 0.5 * np.log(batch.precision[used] / (2 * np.pi)).sum() + 0.5 * 3  # what the loss leaves out
    precision = exact.factor @ exact.factor.T
    divergence = 0.5 * (np.log(np.diag(precision)).sum() - np.linalg.slogdet(precision)[1])
    assert constant - losses.mean() == pytest.approx(exact.log_evidence - divergence, abs=0.1)


def test_draws_of_the_mean_field(variational):
    params, _ = variational
    draws = draw_mean_field(params, np.random.default_rng(0), 20_000)
    assert draws.mean(0) == pytest.approx(np.asarray(params.mean), abs=0.01)
    assert draws.std(0) == pytest.approx(np.exp(np.asarray(params.log_std)), rel=0.03)


@pytest.mark.parametrize("family", ["normal", "laplace"])
def test_expected_log_prior_is_the_expectation_of_the_log_prior(family):
    prior, rng = WeightPrior(family, 0.7), np.random.default_rng(0)
    mean, log_std = np.array([0.4, -1.0, 0.0]), np.array([-1.0, 0.2, 0.5])
    draws = mean + np.exp(log_std) * rng.normal(size=(200_000, 3))
    simulated = np.mean(np.asarray(jax.vmap(prior.log_density)(jnp.asarray(draws))))
    assert float(prior.expected_log_density(mean, log_std)) == pytest.approx(simulated, rel=0.01)


def test_unknown_priors_are_refused():
    with pytest.raises(ConfigError, match="choose normal or laplace"):
        WeightPrior("cauchy")
    with pytest.raises(ConfigError, match=r"prior\.scale 0\.0 .* a number above 0"):
        WeightPrior("normal", 0.0)
