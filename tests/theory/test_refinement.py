"""Theorem 3: the cumulative uncertainty of projection stochastic kriging grows no faster than D* log I."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.kriging.features import MapShape, Start, warm_map
from bestprompt.kriging.inputs import Observed
from bestprompt.kriging.projection import FittedProjection, Principal
from bestprompt.refinement import cumulative_uncertainty

NOISE = 0.05


def model_of(dimension):
    """PSK with the projection of the warm start, given 30 vectors."""
    rng = np.random.default_rng(0)
    X = np.tanh(rng.standard_normal((30, 6)) @ rng.standard_normal((6, 200)) / 6)
    principal = Principal.of(X, 6)
    network = warm_map(principal.rows, MapShape(8, 32, dimension), Start(1.5, 1.0, 0.0), rng)
    blank = FittedProjection(principal, network, dimension, 0.5, 0.2, np.eye(dimension), np.zeros(dimension), 0, 0.0)
    return blank.conditioned(Observed(X, np.arange(30), rng.uniform(0.2, 0.8, 30), np.full(30, NOISE))), X


def trace(dimension, length):
    """U_1 … U_I when each of the I vectors is the most uncertain of a hundred random ones, and sup ‖Ã‖²."""
    model, X = model_of(dimension)
    rng = np.random.default_rng(dimension)
    stds, largest = [], 0.0
    for _ in range(length):
        pool = X[rng.integers(len(X), size=100)] + 0.3 * rng.standard_normal((100, X.shape[1])) * X.std(0)
        _, std = model.predict(pool)
        pick = int(std.argmax())
        stds.append(std[pick])
        largest = max(largest, float((model.features(pool) ** 2).sum(1).max()))
        model = model.updated(pool[[pick]], np.array([0.5]), np.array([NOISE]))
    return cumulative_uncertainty(stds), largest


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [4, 16])
def test_cumulative_uncertainty_stays_below_the_bound_of_the_proof(dimension):
    """U_I ≤ 2 A_M / log(1 + A_M/σ²) · ½ D* log(1 + I A_M / (D* σ²)), the constants of eq.un1 and eq.un2."""
    steps = np.arange(1, 301)
    uncertainty, largest = trace(dimension, 300)
    information = 0.5 * dimension * np.log1p(steps * largest / (dimension * NOISE))
    assert np.all(uncertainty <= 2.0 * largest / np.log1p(largest / NOISE) * information)


def test_cumulative_uncertainty_grows_like_a_logarithm():
    """Each doubling of I adds at most about D* σ² log 2, and the mean uncertainty falls to zero."""
    uncertainty, _ = trace(8, 400)
    doublings = np.diff(uncertainty[[49, 99, 199, 399]])
    assert doublings.max() < 1.1 * 8 * NOISE * np.log(2.0)
    assert uncertainty[399] / 400 < 0.4 * uncertainty[9] / 10


def test_more_dimensions_cost_more_uncertainty():
    assert trace(16, 200)[0][-1] > 1.2 * trace(4, 200)[0][-1]
