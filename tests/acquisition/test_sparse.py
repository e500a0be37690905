"""The sparse θ against the dense algorithm it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from bestprompt.acquisition.sparse import SparseTheta


def dense_step(theta, rows, advantages, rate):
    """Alg. 2, one step, with N numbers written down."""
    gradient = np.zeros_like(theta)
    for row, advantage in zip(rows, advantages, strict=True):
        gradient -= advantage / theta.sum()
        gradient[row] += advantage / theta[row]
    return np.clip(theta + rate * gradient / len(rows), 0.0, 1.0)


@pytest.mark.parametrize("n", [1, 2, 7, 40, 1000])
@pytest.mark.parametrize("sign", [1.0, -1.0, 0.0])
def test_equals_dense_reinforce_step_by_step(n, sign):
    rng = np.random.default_rng(n)
    alpha = rng.normal(size=n) + 3.0 * sign  # all-positive values push every coordinate down, all-negative ones up
    sparse, everything = SparseTheta(n, rng), np.arange(n)
    dense = sparse.value(everything)
    assert np.sort(dense) == pytest.approx((np.arange(n) + 0.5) / n)
    for _ in range(60):
        rows = sparse.sample(4, rng)
        assert (dense[rows] > 0).all()
        after = dense_step(dense, rows, alpha[rows], 0.4)
        sparse.ascend(rows, alpha[rows], 0.4)
        if after.sum() > 1e-12:
            dense = after
        assert sparse.value(everything) == pytest.approx(dense, abs=1e-9)
        assert sparse.total() == pytest.approx(dense.sum(), abs=1e-8)


@pytest.mark.parametrize(("n", "steps"), [(6, 0), (6, 3), (30, 2), (30, 25), (200, 5)])
def test_draws_follow_theta(n, steps):
    rng = np.random.default_rng(steps)
    theta = SparseTheta(n, rng)
    for _ in range(steps):
        rows = theta.sample(3, rng)
        theta.ascend(rows, rng.normal(size=3) + 0.5, 0.3)
    values = theta.value(np.arange(n))
    counts = np.bincount(theta.sample(20_000, rng), minlength=n)
    assert counts[values == 0].sum() == 0
    likely = values > 0
    expected = 20_000 * values[likely] / values.sum()
    assert chisquare(counts[likely], expected * counts[likely].sum() / expected.sum()).pvalue > 1e-4


def test_a_million_candidates_cost_no_more_memory_than_what_was_touched():
    rng = np.random.default_rng(0)
    theta = SparseTheta(1_000_000, rng)
    for _ in range(20):
        theta.ascend(theta.sample(8, rng), rng.normal(size=8), 0.3)
    assert len(theta._values) <= 160
    assert theta.total() == pytest.approx(500_000, rel=1e-3)
