"""Expected improvement, its logarithm, the value of calls, and the ascent."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erfcx

from bestprompt.refinement.improvement import (
    cumulative_uncertainty,
    expected_improvement,
    log_expected_improvement,
    value_per_call,
)


def reference(z):
    """log(φ + zΦ) in double precision."""
    if z > -30:
        inside = 1.0 + z * np.sqrt(np.pi / 2) * erfcx(-z / np.sqrt(2))
        return -0.5 * z * z - 0.5 * np.log(2 * np.pi) + np.log(inside)
    return -0.5 * z * z - 0.5 * np.log(2 * np.pi) + np.log(z**-2 - 3 * z**-4 + 15 * z**-6 - 105 * z**-8)


def test_expected_improvement_is_the_mean_of_the_positive_part():
    draws = 0.4 + 0.2 * np.random.default_rng(0).standard_normal(400_000)
    expected = np.maximum(draws - 0.5, 0.0).mean()
    assert expected_improvement(np.array([0.4]), np.array([0.2]), 0.5)[0] == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("z", [-200.0, -35.0, -20.5, -19.5, -8.0, -3.0, -0.5, -1e-3, 0.0, 1e-3, 0.5, 3.0, 8.0])
def test_log_improvement_is_right_where_improvement_underflows(z):
    value = float(log_expected_improvement(jnp.float32(0.3 + 0.1 * z), jnp.float32(0.1), jnp.float32(0.3)))
    exact = (np.float32(0.3 + 0.1 * z) - np.float32(0.3)) / np.float32(0.1)
    expected = np.log(0.1) + reference(float(exact))
    assert value == pytest.approx(expected, rel=3e-4, abs=3e-4)


def test_log_improvement_has_a_finite_positive_slope_everywhere():
    slope = jax.jit(jax.vmap(jax.grad(lambda m: log_expected_improvement(m, jnp.float32(0.05), jnp.float32(0.8)))))
    values = slope(jnp.linspace(-10.0, 5.0, 301, dtype=jnp.float32))
    assert bool(jnp.isfinite(values).all())
    assert bool((values > 0).all())


def test_value_per_call_prefers_certain_gains_and_never_exceeds_the_improvement():
    sure = value_per_call(0.6, 0.05, 0.2, 0.5, 50)
    assert sure > value_per_call(0.45, 0.05, 0.2, 0.5, 50) > 0.0
    improvement = expected_improvement(np.array([0.45]), np.array([0.2]), 0.5)[0]
    assert value_per_call(0.45, 0.2, 0.2, 0.5, 50) < improvement
    assert value_per_call(0.45, 0.2, 1e-9, 0.5, 50) == pytest.approx(improvement, rel=1e-3)


def test_cumulative_uncertainty_adds_variances():
    np.testing.assert_allclose(cumulative_uncertainty([0.3, 0.4]), [0.09, 0.25])
