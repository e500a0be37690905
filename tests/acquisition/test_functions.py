"""Acquisition functions: the formulas, their limits and their randomness."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.acquisition.functions import (
    UCB,
    CountGamma,
    ExpectedImprovement,
    LogBeta,
    ModifiedUCB,
    Thompson,
    TopTwoThompson,
)
from bestprompt.errors import ConfigError
from bestprompt.types import Posterior

POSTERIOR = Posterior(np.array([0.5, 0.6, 0.2]), np.array([0.1, 0.01, 0.4]))
COUNTS = np.array([1, 9, 4])


def test_paper_m_ucb_is_the_formula():
    expected = POSTERIOR.mean + np.sqrt(2 * np.log(50)) * (POSTERIOR.std + 2 / np.sqrt(COUNTS))
    assert ModifiedUCB.paper()(POSTERIOR, COUNTS, 50) == pytest.approx(expected)


def test_paper_m_ucb_puts_the_unevaluated_first_in_the_order_of_their_bounds():
    values = ModifiedUCB.paper()(POSTERIOR, np.array([0, 0, 1]), 10)
    assert np.isfinite(values).all()
    assert values[0] > values[1] > values[2] + 1000


def test_default_bonus_is_finite_everywhere_and_scales_with_the_spread():
    small, large = (ModifiedUCB.scaled(0.5, 0.2, spread) for spread in (0.1, 1.0))
    zero = np.zeros(3, int)
    assert large.gamma(zero) == pytest.approx(10 * small.gamma(zero))
    assert small.gamma(np.array([3])) == pytest.approx(0.02 / 2)
    assert np.isfinite(ModifiedUCB()(POSTERIOR, zero, 1)).all()


def test_beta_grows_without_bound_and_gamma_falls_to_zero():
    steps = [LogBeta()(t) for t in (1, 2, 100, 10**9)]
    assert steps == sorted(steps)
    assert steps[0] == 0.0
    gammas = CountGamma(2.0)(np.array([0, 1, 10, 10**8]))
    assert (np.diff(gammas) < 0).all()
    assert gammas[-1] < 1e-3


@pytest.mark.filterwarnings("error")
def test_no_count_bonus_is_zero_even_where_nothing_was_evaluated():
    counts = np.array([0, 1, 9])
    assert CountGamma(0.0, offset=0.0)(counts).tolist() == [0.0, 0.0, 0.0]
    assert CountGamma(2.0, offset=0.0)(counts) == pytest.approx([1e4, 2.0, 2 / 3])


def test_ucb():
    assert UCB(2.0)(POSTERIOR, COUNTS, 5) == pytest.approx([0.7, 0.62, 1.0])


def test_expected_improvement_is_the_expectation():
    draws = POSTERIOR.mean + POSTERIOR.std * np.random.default_rng(0).normal(size=(400_000, 3))
    simulated = np.maximum(draws - 0.6, 0).mean(0)
    assert ExpectedImprovement()(POSTERIOR, COUNTS, 1) == pytest.approx(simulated, rel=0.03)
    assert ExpectedImprovement(best=0.55)(POSTERIOR, COUNTS, 1)[1] == pytest.approx(0.05, abs=1e-3)


def test_expected_improvement_of_the_certain():
    sure = Posterior(np.array([0.3, 0.9]), np.zeros(2))
    assert ExpectedImprovement(best=0.5)(sure, COUNTS[:2], 1) == pytest.approx([0.0, 0.4])


def shares(acquisition, posterior, n=3000):
    picks = [int(acquisition(posterior, COUNTS, step).argmax()) for step in range(n)]
    return np.bincount(picks, minlength=posterior.mean.size) / n


@pytest.fixture(scope="module")
def drawn():
    rng = np.random.default_rng(0)
    draws = np.array([0.5, 0.45, 0.0]) + 0.1 * rng.normal(size=(2000, 3))
    return Posterior(draws.mean(0), draws.std(0), draws)


def test_thompson_picks_with_the_probability_of_being_best(drawn):
    best = np.bincount(drawn.draws.argmax(1), minlength=3) / 2000
    assert shares(Thompson(), drawn) == pytest.approx(best, abs=0.03)


def test_top_two_thompson_picks_as_its_formula_says(drawn):
    p = np.bincount(drawn.draws.argmax(1), minlength=3) / 2000
    odds = p / (1 - p)
    expected = p * (0.5 + 0.5 * (odds.sum() - odds))
    assert shares(TopTwoThompson(0.5), drawn) == pytest.approx(expected, abs=0.03)


def test_top_two_thompson_without_a_disagreeing_draw_takes_the_runner_up():
    sure = Posterior(np.array([0.9, 0.5, 0.1]), np.zeros(3), np.tile([0.9, 0.5, 0.1], (10, 1)))
    assert shares(TopTwoThompson(0.5), sure, 400)[1] == pytest.approx(0.5, abs=0.1)


def test_random_acquisitions_depend_on_seed_and_step_only(drawn):
    for kind in (Thompson, TopTwoThompson):
        assert (kind(seed=1)(drawn, COUNTS, 7) == kind(seed=1)(drawn, COUNTS, 7)).all()
        assert any((kind(seed=1)(drawn, COUNTS, s) != kind(seed=2)(drawn, COUNTS, s)).any() for s in range(5))
    with pytest.raises(ConfigError, match="joint posterior draws"):
        Thompson()(POSTERIOR, COUNTS, 1)
