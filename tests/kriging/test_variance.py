"""The noise models: always positive, never absurd, and better than nothing where there is something to find."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.errors import ConfigError, SurrogateError
from bestprompt.kriging.variance import pooled_variance, shrunken, variance_model
from bestprompt.selection import SelectorConfig, select

NAMES = ["kriging", "linear", "pooled"]


def warm_up(rng, std, rows, replications=5):
    scores = rng.normal(size=(len(rows), replications)) * std[rows][:, None]
    return scores.var(axis=1, ddof=1), np.full(len(rows), replications)


@pytest.mark.parametrize("name", NAMES)
def test_binary_scores_with_zero_sample_variances_stay_positive(name):
    """Slip 5: five equal binary scores have variance zero, which must not become infinite weight."""
    rng = np.random.default_rng(0)
    Z, rows = rng.normal(size=(40, 3)), np.arange(10)
    scores = (rng.random((10, 5)) < 0.85).astype(float)
    scores[0] = 1.0
    variances = scores.var(axis=1, ddof=1)
    predicted = variance_model(name)(Z, rows, variances, np.full(10, 5))
    pooled = pooled_variance(variances, np.full(10, 5))
    assert predicted.shape == (40,)
    assert (predicted >= 0.05 * pooled).all()
    assert (predicted <= 20 * pooled).all()


@pytest.mark.parametrize("name", ["kriging", "linear"])
def test_regression_finds_noise_that_grows_along_a_coordinate(name):
    """Over twelve samples: less than .7 of the error of one variance for all, by three standard errors."""
    margins = []
    for seed in range(12):
        rng = np.random.default_rng([1, seed])
        Z = rng.normal(size=(200, 2))
        std, rows = np.exp(0.8 * Z[:, 0]), np.arange(60)
        seen = warm_up(rng, std, rows)
        models = (variance_model(name), variance_model("pooled"))
        error, plain = (np.mean((np.log(model(Z, rows, *seen)) - 2 * np.log(std)) ** 2) for model in models)
        margins.append(0.7 * plain - error)
    assert np.mean(margins) > 3 * np.std(margins, ddof=1) / np.sqrt(len(margins))


@pytest.mark.parametrize("name", NAMES)
def test_equal_noise_is_recovered_without_bias(name):
    rng = np.random.default_rng(2)
    Z, rows = rng.normal(size=(80, 3)), np.arange(60)
    predicted = variance_model(name)(Z, rows, *warm_up(rng, np.full(80, 0.3), rows, replications=20))
    # The pooled variance of 60 samples of 20 has a relative error of sqrt(2 / (60 · 19)); five times that.
    assert predicted.mean() == pytest.approx(0.09, rel=5 * np.sqrt(2 / (60 * 19)))


@pytest.mark.parametrize("name", NAMES)
def test_equal_answers_mean_little_noise_not_none(name):
    """Two prompts answered alike five times say little about the noise, fifty say more; none says there is none."""

    def predicted(prompts, rounding=0.0):
        return variance_model(name)(np.eye(60), np.arange(prompts), np.full(prompts, rounding), np.full(prompts, 5))

    few, some, many = predicted(2), predicted(10), predicted(50)
    assert (few > 0.008).all()
    assert (few < 0.05).all()
    assert (some < 0.5 * few).all()
    assert (many < 0.5 * some).all()
    assert (many > 1e-4).all()
    # The sample variance of five times 0.1 is not zero in floating point.
    assert predicted(2, rounding=1e-33) == pytest.approx(few)


def test_paper_mode_doubts_a_score_even_when_every_prompt_answers_alike():
    Z = np.random.default_rng(0).normal(size=(20, 3))
    config = SelectorConfig(budget=40, mode="paper", surrogate="blr")
    found = select(Z, lambda candidate, replication: 1.0, 40, config=config, batch=10)
    # The leverages of a regression on D coordinates add up to D, whatever Z: the mean of σ̂²(z_n) is about σ̂² D / T.
    guess = pooled_variance(np.zeros(20), np.full(20, 2))
    assert np.mean(found.deviations**2) == pytest.approx(guess * 3 / 40, rel=0.5)
    assert guess > 0


@pytest.mark.parametrize("scale", [1e-3, 0.03, 1.0, 100.0])
def test_scatter_that_was_seen_outweighs_the_guess_on_any_scale(scale):
    """Scores need not lie in [0, 1]: the guess never makes the estimate worse than its own sampling error."""
    variances, replications = np.array([0.05, 0.08, 0.04, 0.07]) * scale**2, np.full(4, 5)
    assert pooled_variance(variances, replications) == pytest.approx(0.06 * scale**2, rel=0.35)
    many = np.tile(variances, 20), np.tile(replications, 20)
    assert pooled_variance(*many) == pytest.approx(0.06 * scale**2, rel=0.02)


def test_shrinkage_is_towards_the_pooled_value_and_fades_with_replications():
    variances = np.array([0.0, 0.4])
    few, many = shrunken(variances, np.array([5, 5])), shrunken(variances, np.array([500, 500]))
    # σ̄² = (4 · 0 + 4 · .4 + 2 · .1) / 10: the guess is .09, moved to a quarter of the only scatter seen.
    assert few == pytest.approx([0.09, 0.29])
    assert many == pytest.approx([0.0, 0.4], abs=0.01)


def test_single_replications_carry_no_information():
    assert pooled_variance(np.array([0.2, np.nan]), np.array([5, 1])) == pooled_variance(np.array([0.2]), np.array([5]))
    with pytest.raises(SurrogateError, match="two evaluations"):
        pooled_variance(np.array([np.nan]), np.array([1]))
    with pytest.raises(SurrogateError, match="not finite"):
        pooled_variance(np.array([np.nan]), np.array([3]))
    with pytest.raises(ConfigError, match="choose one of kriging"):
        variance_model("spline")
