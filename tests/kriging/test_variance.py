"""The noise models: always positive, never absurd, and better than nothing where there is something to find."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.errors import ConfigError, SurrogateError
from bestprompt.kriging.variance import pooled_variance, shrunken, variance_model

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
    variances = scores.var(axis=1, ddof=1)
    assert (variances == 0).any()
    predicted = variance_model(name)(Z, rows, variances, np.full(10, 5))
    pooled = pooled_variance(variances, np.full(10, 5))
    assert predicted.shape == (40,)
    assert (predicted >= 0.05 * pooled).all()
    assert (predicted <= 20 * pooled).all()


@pytest.mark.parametrize("name", ["kriging", "linear"])
def test_regression_finds_noise_that_grows_along_a_coordinate(name):
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(200, 2))
    std, rows = np.exp(0.8 * Z[:, 0]), np.arange(60)
    predicted = variance_model(name)(Z, rows, *warm_up(rng, std, rows))
    pooled = variance_model("pooled")(Z, rows, *warm_up(rng, std, rows))
    error, plain = (np.mean((np.log(v) - 2 * np.log(std)) ** 2) for v in (predicted, pooled))
    assert error < 0.7 * plain


@pytest.mark.parametrize("name", NAMES)
def test_equal_noise_is_recovered_without_bias(name):
    rng = np.random.default_rng(2)
    Z, rows = rng.normal(size=(80, 3)), np.arange(60)
    predicted = variance_model(name)(Z, rows, *warm_up(rng, np.full(80, 0.3), rows))
    assert predicted.mean() == pytest.approx(0.09, rel=0.25)


@pytest.mark.parametrize("name", NAMES)
def test_all_variances_zero(name):
    predicted = variance_model(name)(np.eye(4), np.arange(3), np.zeros(3), np.full(3, 5))
    assert (predicted > 0).all()
    assert (predicted < 1e-6).all()


def test_shrinkage_is_towards_the_pooled_value_and_fades_with_replications():
    few, many = shrunken(np.array([0.0, 0.4]), np.array([5, 5])), shrunken(np.array([0.0, 0.4]), np.array([500, 500]))
    assert few == pytest.approx([0.1, 0.3])
    assert many == pytest.approx([0.0, 0.4], abs=0.01)


def test_single_replications_carry_no_information():
    assert pooled_variance(np.array([0.2, np.nan]), np.array([5, 1])) == 0.2
    with pytest.raises(SurrogateError, match="two evaluations"):
        pooled_variance(np.array([np.nan]), np.array([1]))
    with pytest.raises(SurrogateError, match="not finite"):
        pooled_variance(np.array([np.nan]), np.array([3]))
    with pytest.raises(ConfigError, match="choose one of kriging"):
        variance_model("spline")
