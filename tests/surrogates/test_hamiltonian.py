"""Hamiltonian Monte Carlo against posteriors that are known, and what keeps its trajectories from resonating."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.diagnostics import effective_sample_size

from bestprompt.errors import ConfigError
from bestprompt.surrogates.convergence import mixing
from bestprompt.surrogates.hamiltonian import HMC, Chains, _length, adapt_chains, run_chains
from bestprompt.surrogates.inference import Batch
from bestprompt.surrogates.linear import gaussian_weights

SETTINGS = HMC(n_chains=4, n_warmup=300, n_burn=20)
SEEDS = range(5)
effective_sizes = jax.jit(effective_sample_size)


def known_posterior(seed, n_rows, columns):
    """Evidence about weights on ``columns``, one row of weight zero, and their exact posterior."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n_rows, len(columns))) @ columns
    scores = Z @ rng.normal(size=len(columns)) + 0.3 * rng.normal(size=n_rows)
    variances = rng.uniform(0.05, 0.5, size=n_rows)
    precision = 1 / variances
    precision[5], scores[5] = 0.0, 99.0
    used = precision > 0
    exact = gaussian_weights(Z[used], scores[used], variances[used], np.zeros(len(columns)), np.ones(len(columns)))
    return Batch(*(x.astype(np.float32) for x in (Z, scores, precision))), exact


def sampled(linear, batch, seed, n):
    """(n_chains, n, D) weights after every step, and how many steps diverged."""
    dimension = batch.Z.shape[1]
    start = jnp.asarray(np.random.default_rng(seed).normal(size=(4, dimension)).astype(np.float32))
    keys = [jax.random.key(2 * seed + i, impl="rbg") for i in range(2)]
    chains = adapt_chains(linear, SETTINGS, start, batch, 16, keys[0])
    _, left = run_chains(linear, SETTINGS, chains, batch, jnp.eye(dimension, dtype=jnp.float32), 16, keys[1], n // 4, 4)
    return np.asarray(left.outputs, np.float64), np.asarray(left.divergent).sum()


COLUMNS = {"independent": np.eye(4), "correlated": np.eye(4) + 0.6 * np.eye(4, k=1) - 0.4 * np.eye(4, k=2)}


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("columns", COLUMNS)
def test_means_variances_and_covariances_are_exact(linear, columns, seed):
    """Each to four Monte Carlo standard errors; of a (co)variance, by the effective size of the products themselves."""
    batch, exact = known_posterior(2, 40, COLUMNS[columns])
    draws, divergences = sampled(linear, batch, seed, 1000)
    assert divergences == 0
    covariance = exact.covariance()
    std, upper = np.sqrt(np.diag(covariance)), np.triu_indices(4)
    scaled = (draws - exact.mean) / std
    values = np.concatenate([scaled, scaled[..., upper[0]] * scaled[..., upper[1]]], axis=-1)
    truth = np.concatenate([np.zeros(4), (covariance / np.outer(std, std))[upper]])
    errors = values.std(axis=(0, 1)) / np.sqrt(np.asarray(effective_sizes(values)))
    assert (np.abs(values.mean(axis=(0, 1)) - truth) < 4 * errors).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("columns", COLUMNS)
def test_a_hundred_steps_have_mixed(linear, columns, seed):
    batch, _ = known_posterior(2, 40, COLUMNS[columns])
    draws, _ = sampled(linear, batch, seed, 1000)
    assert mixing(draws[:, :100].astype(np.float32)).is_enough


@pytest.mark.slow
@pytest.mark.parametrize(("trajectory", "mixes"), [("jittered", True), ("fixed", False)])
def test_trajectories_of_one_length_resonate_and_jittered_ones_do_not(linear, trajectory, mixes):
    """On the prior a leapfrog step turns position and momentum by θ, cos θ = 1 − ε²/2; L θ = 2π leads back."""
    step_size = np.full(4, 2 * np.sin(np.pi / 16), np.float32)
    start = jnp.asarray(np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32))
    chains = Chains(start, jnp.asarray(step_size), jnp.ones((4, 3), jnp.float32))
    batch = Batch(np.zeros((8, 3), np.float32), np.zeros(8, np.float32), np.zeros(8, np.float32))
    settings = HMC(trajectory=trajectory)
    key, watched = jax.random.key(0, impl="rbg"), jnp.eye(3, dtype=jnp.float32)
    _, left = run_chains(linear, settings, chains, batch, watched, 16, key, 25, 4)
    assert np.asarray(left.acceptance).mean() > 0.9
    assert mixing(np.asarray(left.outputs)).is_enough == mixes


@pytest.mark.parametrize("n_leapfrog", [1, 2, 5, 16])
def test_lengths_are_spread_evenly_around_the_one_that_is_set(n_leapfrog):
    lengths = np.asarray(jax.vmap(_length, (0, None))(jnp.arange(1023), jnp.asarray(n_leapfrog)))
    allowed = np.arange((n_leapfrog + 1) // 2, n_leapfrog + n_leapfrog // 2 + 1)
    values, counts = np.unique(lengths, return_counts=True)
    assert values.tolist() == allowed.tolist()
    assert np.ptp(counts) <= 2
    first = np.unique(lengths[:64])
    assert first.tolist() == allowed.tolist()  # a short stretch has them all


def test_unknown_trajectories_are_refused():
    with pytest.raises(ConfigError, match=r"hmc\.trajectory 'random' is unknown: choose jittered or fixed"):
        HMC(trajectory="random")
