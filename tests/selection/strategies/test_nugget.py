"""What candidates have of their own, against brute-force Gaussian conditioning."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.selection.strategies.nugget import NONE, Nugget, first_nugget
from bestprompt.types import Evidence, Posterior

ALL = slice(None)


def test_own_parts_added_to_a_surrogate_are_joint_conditioning():
    """f correlated over three candidates, two of them evaluated: the posterior of f + u must be the exact one."""
    prior = np.array([[1.0, 0.8, 0.5], [0.8, 1.0, 0.6], [0.5, 0.6, 1.0]])
    evidence = Evidence(np.array([4, 1, 0]), np.array([0.9, -0.3, 0.0]), np.array([0.4, 0.4, 0.4]))
    nugget, seen = Nugget(0.3), np.array([0, 1])
    widened = nugget.widened(evidence)
    np.testing.assert_allclose((widened.noise / np.maximum(widened.counts, 1))[seen], [0.4 / 4 + 0.3, 0.4 + 0.3])

    def conditioned(covariance, noise):
        gain = np.linalg.solve(covariance[np.ix_(seen, seen)] + np.diag(noise), covariance[seen]).T
        return gain @ evidence.means[seen], covariance - gain @ covariance[seen]

    mean, covariance = conditioned(prior, (widened.noise / np.maximum(widened.counts, 1))[seen])
    draws = np.random.default_rng(0).multivariate_normal(mean, covariance, size=200_000)
    of_f = Posterior(mean, np.sqrt(np.diag(covariance)), draws)
    found = nugget.added(of_f, evidence, ALL, np.random.default_rng(1))
    exact_mean, exact = conditioned(prior + 0.3 * np.eye(3), (evidence.noise / np.maximum(evidence.counts, 1))[seen])
    np.testing.assert_allclose(found.mean, exact_mean, atol=1e-12)
    np.testing.assert_allclose(found.std, np.sqrt(np.diag(exact)), atol=1e-12)
    np.testing.assert_allclose(found.draws.mean(axis=0), exact_mean, atol=0.01)
    np.testing.assert_allclose(np.cov(found.draws.T), exact, atol=0.01)
    part = nugget.added(Posterior(mean[[1]], of_f.std[[1]]), evidence, np.array([1]), np.random.default_rng(1))
    assert part.mean[0] == pytest.approx(found.mean[1])
    assert part.draws is None


def test_without_own_parts_a_surrogate_stays_as_it_is():
    posterior = Posterior(np.zeros(2), np.ones(2))
    evidence = Evidence(np.array([3, 0]), np.array([1.0, 0.0]), np.array([0.1, 0.1]))
    assert NONE.added(posterior, evidence, ALL, np.random.default_rng(0)) is posterior
    np.testing.assert_array_equal(NONE.widened(evidence).noise, evidence.noise)


@pytest.mark.parametrize("true", [0.0, 0.01, 0.1])
def test_the_variance_of_own_parts_is_learned_as_rounds_go_by(true):
    rng, n = np.random.default_rng(2), 400
    counts, noise = rng.integers(1, 20, size=n), np.full(n, 0.2)
    surface = rng.standard_normal(n)
    means = surface + np.sqrt(true + noise / counts) * rng.standard_normal(n)
    evidence, nugget = Evidence(counts, means, noise), first_nugget(0.5)
    for _ in range(100):
        nugget = nugget.learned(surface, evidence)
    assert nugget.variance == pytest.approx(true, abs=0.25 * true + 0.003)
