"""When chains count as mixed: independent draws do, nearly always; drift, disagreement and slow chains do not."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.surrogates.convergence import LARGEST_RHAT, largest_rhat, mixing, rhat_by_chance

WATCHED = 32


def independent(seed, n_chains=4, n_steps=100):
    return np.random.default_rng(seed).standard_normal((n_chains, n_steps, WATCHED), dtype=np.float32)


def autocorrelated(seed, correlation, n_chains=4, n_steps=100):
    """Stationary first-order chains: their effective share is (1 − ρ)/(1 + ρ)."""
    noise, result = independent(seed, n_chains, n_steps), np.zeros((n_chains, n_steps, WATCHED), np.float32)
    result[:, 0] = noise[:, 0]
    for t in range(1, n_steps):
        result[:, t] = correlation * result[:, t - 1] + np.sqrt(1 - correlation**2) * noise[:, t]
    return result


@pytest.mark.slow
@pytest.mark.parametrize("n_chains", [2, 4])
def test_independent_draws_have_mixed(n_chains):
    """Both limits together may fail one sample in five hundred: more than three of 100 has a probability below 1e-5."""
    found = [mixing(independent(seed, n_chains)) for seed in range(100)]
    assert sum(not m.is_enough for m in found) <= 3


@pytest.mark.parametrize(("n_chains", "n_steps"), [(4, 100), (2, 100), (4, 24)])
def test_the_limit_of_rhat_is_the_quantile_of_independent_draws(n_chains, n_steps):
    """n (R̂² − 1) + 1 of one candidate is a ratio of variances: simulated, its F quantile is exceeded as often."""
    m, n, share = 2 * n_chains, n_steps // 2, 0.02
    halves = np.random.default_rng(0).standard_normal((4000, m, n))
    ratio = n * halves.mean(2).var(1, ddof=1) / halves.var(2, ddof=1).mean(1)
    above = np.mean(np.sqrt(1 + (ratio - 1) / n) > rhat_by_chance(n_chains, n_steps, share))
    assert abs(above - share) < 4 * np.sqrt(share * (1 - share) / 4000)


def test_the_limit_of_rhat_is_never_below_the_usual_one():
    assert largest_rhat(4, 4000, WATCHED) == LARGEST_RHAT
    assert LARGEST_RHAT < largest_rhat(2, 100, WATCHED) < largest_rhat(1, 100, WATCHED) < 1.3


def test_slow_chains_have_not_mixed():
    """ρ = .97 has an effective share of .015, an eighth of the least."""
    assert not any(mixing(autocorrelated(seed, 0.97)).is_enough for seed in range(10))


def test_chains_that_disagree_have_not_mixed():
    apart = independent(0)
    apart[0] += 1.0
    assert mixing(apart).rhat > mixing(apart).largest_rhat
    wide = independent(0)
    wide[0] *= 4.0
    assert not mixing(wide).is_enough


def test_chains_that_drift_have_not_mixed():
    drifting = independent(0) + np.linspace(0, 3, 100, dtype=np.float32)[:, None]
    assert not mixing(drifting).is_enough


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_have_not_mixed(value):
    lost = independent(0)
    lost[1, 50:] = value
    assert not mixing(lost).is_enough


def test_a_chain_that_stands_still_has_not_mixed():
    still = independent(0)
    still[2] = still[2, :1]
    found = mixing(still)
    assert found.ess == 0
    assert not found.is_enough
    assert "at least 50 is needed" in str(found)
