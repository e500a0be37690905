"""The network surrogate: its two ways of inference agree, and a round continues the last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bestprompt.errors import ConfigError
from bestprompt.kriging.inputs import observed
from bestprompt.kriging.padding import padded
from bestprompt.surrogates.base import make_surrogate
from bestprompt.surrogates.bnn import BayesianNeuralNetwork, predict_draws
from bestprompt.surrogates.hamiltonian import HMC
from bestprompt.surrogates.inference import WeightPrior
from bestprompt.surrogates.linear import gaussian_weights
from bestprompt.surrogates.network import DenseNetwork
from bestprompt.surrogates.training import Units, batches, full_batch
from bestprompt.types import Evidence

HMC_RECIPE = BayesianNeuralNetwork((6,), inference="hmc", hmc=HMC(n_chains=2, n_warmup=100, n_burn=5, n_leapfrog=8))


@pytest.fixture(scope="module")
def sampled(problem):
    """Fits by HMC from five seeds."""
    return [HMC_RECIPE.fit(problem.Z, problem.evidence, np.random.default_rng(seed)) for seed in range(5)]


def five_fits(recipe, problem, evidence):
    """Fits from five seeds, all their draws at the candidates, and how many independent ones these are worth."""
    fits = [recipe.fit(problem.Z, evidence, np.random.default_rng(seed)) for seed in range(5)]
    worth = sum(min(fit.diagnostics.get("ess", recipe.n_draws), recipe.n_draws) for fit in fits)
    return fits[0], np.concatenate([fit.posterior(problem.Z).draws for fit in fits]), worth


def assert_moments(draws, worth, mean, std, kurtosis=3.0):
    """To four standard errors: std/sqrt(n) of a mean, sqrt((κ − 1)/(4n)) of a std in relative terms."""
    assert (np.abs(draws.mean(axis=0) - mean) < 4 * std / np.sqrt(worth)).all()
    assert (np.abs(draws.std(axis=0) / std - 1) < 4 * np.sqrt((kurtosis - 1) / (4 * worth))).all()


BY_VI = BayesianNeuralNetwork(output="mean-field", steps=600, warm_steps=30, rate=0.03)
both_ways = pytest.mark.parametrize("recipe", [BY_VI, HMC_RECIPE], ids=["vi", "hmc"])


@pytest.mark.slow
@both_ways
def test_without_a_hidden_layer_the_posterior_is_known(recipe, problem):
    """A linear model: normal with precision A; the best independent normals have the same mean, variances 1/A_ii."""
    fitted, draws, worth = five_fits(replace(recipe, layers=()), problem, problem.evidence)
    units = fitted.units
    batch = full_batch(units, 30, observed(problem.Z, problem.evidence))

    def columns(rows):
        return np.column_stack([np.asarray(rows, float) / np.sqrt(3), np.ones(len(rows))])

    scores, variances = batch.scores.astype(float), 1 / batch.precision.astype(float)
    exact = gaussian_weights(columns(batch.Z), scores, variances, np.zeros(4), np.ones(4))
    at = columns(units.rows(problem.Z))
    precision = exact.factor @ exact.factor.T
    covariance = exact.covariance() if recipe.inference == "hmc" else np.diag(1 / np.diag(precision))
    std = np.sqrt((at @ covariance * at).sum(axis=1))
    assert_moments((draws - units.trend) / units.spread, worth, at @ exact.mean, std)


@pytest.mark.slow
@both_ways
def test_scores_that_say_nothing_leave_the_prior(recipe, problem):
    """Six hidden units, a noise of a thousand: both ways arrive at W ~ N(0, 1), which independent normals can be."""
    silent = replace(problem.evidence, noise=np.full(48, 1e6))
    fitted, draws, worth = five_fits(replace(recipe, layers=(6,), standardise=False), problem, silent)
    weights = fitted.model.network.normal_weights(np.random.default_rng(9), 20_000)
    prior = np.asarray(predict_draws(fitted.model, weights, padded(problem.Z)))[:, :48].astype(float)
    std = prior.std(axis=0)
    assert_moments(draws, worth, np.zeros(48), std, np.mean((prior / std) ** 4, axis=0))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"output": "exact", "rate": 0.05}], ids=["mean-field", "exact"])
def test_vi_and_hmc_agree_on_a_small_network(make_problem, options):
    """Neither family holds the posterior, but over five problems its mean is nearer than the truth is to HMC's."""
    recipe, apart, unknown = replace(BY_VI, layers=(6,), **options), [], []
    for seed in range(5):
        problem = make_problem(seed)
        by_hmc, by_vi = (
            way.fit(problem.Z, problem.evidence, np.random.default_rng(seed)).posterior(problem.Z).mean
            for way in (HMC_RECIPE, recipe)
        )
        apart.append((by_vi - by_hmc) ** 2)
        unknown.append((problem.truth - by_hmc) ** 2)
    assert np.sum(apart) < np.sum(unknown)


@pytest.mark.slow
def test_chains_that_have_mixed_go_on_as_they_are(problem, sampled):
    for seed, fitted in enumerate(sampled):
        assert fitted.diagnostics["acceptance"] > 0.5
        again = HMC_RECIPE.fit(problem.Z, problem.evidence, np.random.default_rng(seed + 5), fitted)
        step_sizes = [np.asarray(fit.state.chains.step_size) for fit in (fitted, again)]
        assert (step_sizes[0] == step_sizes[1]).all()  # the same evidence, accepted well: no reason to adapt again


def test_a_warm_round_does_not_undo_the_cold_one(problem):
    rng, recipe = np.random.default_rng(0), BayesianNeuralNetwork((6,), steps=600, warm_steps=30)
    cold = recipe.fit(problem.Z, problem.evidence, rng)
    warm = cold
    for _ in range(5):
        warm = recipe.fit(problem.Z, problem.evidence, rng, previous=warm)
    assert warm.diagnostics["negative_elbo"] < cold.diagnostics["negative_elbo"] + 3
    assert warm.posterior(problem.Z).mean == pytest.approx(cold.posterior(problem.Z).mean, abs=0.1)


@pytest.mark.parametrize("name", ["bnn", pytest.param("vae", marks=pytest.mark.slow)])
def test_a_fit_to_equal_scores_is_not_continued_once_scores_differ(name, problem):
    options = {"layers": (6,)} if name == "bnn" else {"decoder_layers": (6,)}
    recipe, rng = make_surrogate(name, steps=600, warm_steps=30, **options), np.random.default_rng(0)
    counts = np.where(np.arange(48) < 3, 5, 0)
    early = recipe.fit(problem.Z, Evidence(counts, np.full(48, 0.5), problem.evidence.noise), rng)
    late = recipe.fit(problem.Z, problem.evidence, rng, previous=early)
    assert late.units.spread > 2 * early.units.spread
    assert np.corrcoef(late.posterior(problem.Z).mean, problem.truth)[0, 1] > 0.8
    assert recipe.fit(problem.Z, problem.evidence, rng, previous=late).units is late.units


def test_more_rows_than_a_batch_are_subsampled_without_bias(problem):
    data = observed(problem.Z, problem.evidence)
    units = Units.of(problem.Z, data, True)
    everything, rng = full_batch(units, 30, data), np.random.default_rng(0)
    some = batches(units, data, 4000, 8, rng)
    assert some.Z.shape == (4000, 8, 3)
    totals = (some.precision * some.scores).sum(1)
    whole = (everything.precision * everything.scores).sum()
    # A sum over 8 of 30 rows drawn without replacement, times 30/8: mean the whole, variance 30²(1 − 8/30)/8 · S²,
    # known to a standard error of 1/sqrt(4000) and sqrt(2/4000).
    terms = (everything.precision * everything.scores)[:30]
    variance = 30**2 * (1 - 8 / 30) / 8 * terms.var(ddof=1)
    assert abs(totals.mean() - whole) < 4 * np.sqrt(variance / 4000)
    assert totals.var() == pytest.approx(variance, rel=4 * np.sqrt(2 / 4000))
    all_rows = batches(units, data, 2, 40, rng)
    assert all_rows.precision[0, 30:].sum() == 0


def test_scaled_prior_keeps_unit_scale_whatever_the_width():
    rng, Z = np.random.default_rng(0), np.random.default_rng(1).normal(size=(20, 50)).astype(np.float32)
    for widths in ((50, 8, 1), (50, 128, 1)):
        outputs = [
            np.asarray(DenseNetwork(widths).forward(DenseNetwork(widths).normal_weights(rng), Z)) for _ in range(60)
        ]
        assert 0.7 < np.std(outputs) < 1.8


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="choose vi or hmc"):
        BayesianNeuralNetwork(inference="laplace")
    with pytest.raises(ConfigError, match="choose one of tanh"):
        DenseNetwork((2, 1), "sigmoidal")
    assert BayesianNeuralNetwork(prior=WeightPrior("laplace", 0.5)).prior.family == "laplace"
    assert padded(np.ones((65, 2))).shape == (128, 2)
