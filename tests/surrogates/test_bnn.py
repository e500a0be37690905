"""The network surrogate: its two ways of inference agree, and a round continues the last."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.errors import ConfigError
from bestprompt.kriging.padding import padded
from bestprompt.surrogates.base import make_surrogate
from bestprompt.surrogates.bnn import BayesianNeuralNetwork
from bestprompt.surrogates.hamiltonian import HMC
from bestprompt.surrogates.inference import WeightPrior
from bestprompt.surrogates.network import DenseNetwork
from bestprompt.types import Evidence

HMC_RECIPE = BayesianNeuralNetwork((6,), inference="hmc", hmc=HMC(n_chains=2, n_warmup=100, n_burn=5, n_leapfrog=8))


@pytest.fixture(scope="module")
def sampled(problem):
    """Fits by HMC from five seeds."""
    return [HMC_RECIPE.fit(problem.Z, problem.evidence, np.random.default_rng(seed)) for seed in range(5)]


@pytest.mark.parametrize(("output", "rate"), [("mean-field", 0.03), ("exact", 0.05)])
def test_vi_and_hmc_agree_on_a_small_network(problem, sampled, output, rate):
    """On average over five seeds: means to half a posterior std, or a whole one where all weights are independent.

    The draws of five fits (ESS above 40 each) know a mean to .07 std and a std to 5 %; the rest is for families that do
    not hold the posterior, whose std may be out by half.
    """
    recipe = BayesianNeuralNetwork((6,), output=output, steps=600, warm_steps=30, rate=rate)
    by_hmc = [fitted.posterior(problem.Z) for fitted in sampled]
    by_vi = [
        recipe.fit(problem.Z, problem.evidence, np.random.default_rng(seed)).posterior(problem.Z) for seed in range(5)
    ]
    mean, vi_mean = (np.mean([p.mean for p in ps], axis=0) for ps in (by_hmc, by_vi))
    std, vi_std = (np.mean([p.std for p in ps], axis=0) for ps in (by_hmc, by_vi))
    assert np.corrcoef(mean, vi_mean)[0, 1] > 0.98
    assert (np.abs(mean - vi_mean) / std).mean() < (1.0 if output == "mean-field" else 0.5)
    assert 0.75 < vi_std.mean() / std.mean() < 1.65


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


@pytest.mark.parametrize("name", ["bnn", "vae"])
def test_a_fit_to_equal_scores_is_not_continued_once_scores_differ(name, problem):
    options = {"layers": (6,)} if name == "bnn" else {"encoder_layers": (8,), "decoder_layers": (4,)}
    recipe, rng = make_surrogate(name, steps=600, warm_steps=30, **options), np.random.default_rng(0)
    counts = np.where(np.arange(48) < 3, 5, 0)
    early = recipe.fit(problem.Z, Evidence(counts, np.full(48, 0.5), problem.evidence.noise), rng)
    late = recipe.fit(problem.Z, problem.evidence, rng, previous=early)
    assert late.units.spread > 2 * early.units.spread
    assert np.corrcoef(late.posterior(problem.Z).mean, problem.truth)[0, 1] > 0.8
    assert recipe.fit(problem.Z, problem.evidence, rng, previous=late).units is late.units


def test_more_rows_than_a_batch_are_subsampled_without_bias(problem):
    from bestprompt.kriging.inputs import observed
    from bestprompt.surrogates.training import Units, batches, full_batch

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
