"""Duels, values of further calls, and forecasts."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.acquisition.improvement import expected_excess
from bestprompt.errors import ConfigError
from bestprompt.selection import calls_needed, forecast
from bestprompt.selection.conclusion.reach import reach
from bestprompt.selection.core.views import View
from bestprompt.selection.strategies.rank import (
    CLEAR,
    GREEDY,
    Round,
    gains_clearly,
    next_candidates,
    prospect,
    value_of_more_calls,
    value_of_next_call,
)


def view(mean, sd, noise=0.2, remaining=100, left=np.inf) -> View:
    mean = np.asarray(mean, dtype=float)
    covariance = np.diag(np.broadcast_to(np.square(sd), mean.shape)).astype(float)
    return View(mean, covariance, np.full(mean.size, noise), remaining, np.full(mean.size, left) + np.zeros(mean.size))


def duel(field: View, rng: np.random.Generator) -> int:
    return Round(field, 0).duel(rng)


def test_expected_excess_is_the_integral():
    draws = np.random.default_rng(0).standard_normal(400_000)
    for gap, spread in ((0.3, 1.0), (-0.5, 0.2), (1.0, 0.5)):
        simulated = np.maximum(spread * draws - gap, 0)
        error = simulated.std() / np.sqrt(draws.size)
        found = expected_excess(np.array([gap]), np.array([spread]))[0]
        assert found == pytest.approx(simulated.mean(), abs=5 * error)
    assert expected_excess(np.array([0.5, -0.5]), np.zeros(2)).tolist() == [0.0, 0.5]


def test_a_duel_is_between_the_leader_and_who_may_beat_it():
    field = view([0.8, 0.75, 0.1, 0.1], [0.05, 0.05, 0.05, 0.05])
    rng = np.random.default_rng(0)
    assert {duel(field, rng) for _ in range(50)} <= {0, 1}
    # The less known of the two says more about their difference.
    assert duel(view([0.8, 0.75], [0.01, 0.2]), rng) == 1
    assert duel(view([0.8, 0.75], [0.2, 0.01]), rng) == 0


def test_few_noisy_calls_make_the_duel_greedy_and_many_spread_it():
    field = [0.5, 0.5, 0.4, 0.3]
    assert Round(view(field, 0.1, noise=0.25, remaining=1), 0).power() == GREEDY
    assert Round(view(field, 0.1, noise=0.01, remaining=1000), 0).power() == 1.0


def test_a_batch_does_not_spend_all_on_one_candidate():
    chosen = next_candidates(view(np.linspace(0.4, 0.6, 10), 0.2, noise=0.02), 10, np.random.default_rng(0))
    assert len(set(chosen.tolist())) >= 5


def test_an_imagined_answer_shrinks_only_what_it_speaks_for():
    after = Round(view([0.5, 0.5], [0.2, 0.3], noise=0.04), 1)
    after.imagine(0)
    np.testing.assert_allclose(after.variance, [0.02, 0.09])
    assert after.remaining == 99


def test_imagined_answers_equal_conditioning_the_whole_covariance():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((12, 12))
    before = View(rng.random(12), root @ root.T, rng.uniform(0.5, 2.0, 12), 50, np.full(12, np.inf))
    asked = [3, 7, 3, before.leader, 0]
    after, covariance = Round(before, len(asked)), before.covariance
    for c in asked:
        after.imagine(c)
        covariance = covariance - np.outer(covariance[c], covariance[c]) / (covariance[c, c] + before.noise[c])
    np.testing.assert_allclose(after.variance, np.diag(covariance), atol=1e-12)
    np.testing.assert_allclose(after.shared, covariance[:, before.leader], atol=1e-12)
    np.testing.assert_allclose(np.stack([after.covariances(c) for c in range(12)]), covariance, atol=1e-12)


def test_the_rest_of_a_round_is_chosen_as_if_its_beginning_were_under_way():
    field = view(np.linspace(0.4, 0.6, 10), 0.2, noise=0.02)
    chosen = next_candidates(field, 6, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    rng.random(2)  # each duel draws its challenger with one number
    np.testing.assert_array_equal(next_candidates(field, 4, rng, waiting=chosen[:2]), chosen[2:])


def test_challengers_are_drawn_by_their_chances_of_gaining():
    field = view([0.6, 0.5, 0.5, 0.3], [1e-6, 0.2, 0.1, 0.1], noise=1e-4, remaining=10**6)
    gain = expected_excess(0.6 - field.mean, prospect(field, 0, 10**6 / 4))[1:]
    rng = np.random.default_rng(0)
    drawn = np.bincount([duel(field, rng) for _ in range(20_000)], minlength=4)[1:]
    chances = gain / gain.sum()
    errors = np.sqrt(chances * (1 - chances) / drawn.sum())
    assert (np.abs(drawn / drawn.sum() - chances) <= 5 * errors).all()


def test_prospects_grow_with_the_calls_towards_all_that_is_unknown():
    field = view([0.8, 0.7], [0.0, 0.1], noise=0.2)
    few, many = prospect(field, 0, 1.0), prospect(field, 0, 1e9)
    assert few[0] == many[0] == 0.0
    assert few[1] == pytest.approx(0.01 / np.sqrt(0.01 + 0.2))
    assert many[1] == pytest.approx(0.1)


def test_more_calls_are_worth_less_the_more_is_settled():
    rng = np.random.default_rng
    open_field = view([0.5, 0.5, 0.5], 0.2)
    settled = view([0.9, 0.1, 0.1], 0.02)
    assert value_of_more_calls(open_field, 100, rng(0)) > 0.08
    assert value_of_more_calls(settled, 100, rng(0)) < 1e-9
    assert value_of_more_calls(open_field, 1000, rng(0)) > value_of_more_calls(open_field, 10, rng(0))
    assert value_of_next_call(open_field) > value_of_next_call(settled)


def test_perfect_knowledge_is_worth_the_expected_maximum():
    worth = value_of_more_calls(view([0.0, 0.0], 1.0, noise=0.1), 10**9, np.random.default_rng(1))
    assert worth == pytest.approx(1.0 / np.sqrt(np.pi), abs=0.03)


def test_a_clear_gain_is_one_that_the_draws_would_find():
    two = view([0.0, 0.0], 1.0, noise=0.1)
    exact = 1.0 / np.sqrt(np.pi)  # the expected maximum of two standard normals
    assert gains_clearly(two, 10**9, 0.999 * exact / CLEAR)
    assert not gains_clearly(two, 10**9, 1.001 * exact / CLEAR)
    assert not gains_clearly(two, 0, 0.0)
    rng, clear = np.random.default_rng(2), 0
    for _ in range(300):
        n, least = int(rng.integers(2, 30)), float(10.0 ** rng.uniform(-4, -1))
        field = view(rng.uniform(0.3, 0.7, n), rng.uniform(0.001, 0.1, n), noise=0.2)
        if gains_clearly(field, 50, least):
            clear += 1
            assert value_of_more_calls(field, 50, rng) > least
    assert 50 < clear < 250


# ----------------------------------------------------------------------------------------------------------- forecast
def test_forecast_and_its_inverse_agree():
    for budget, n in ((300, 50), (1000, 200), (40, 2)):
        seen = forecast(budget, n, noise=0.4)
        assert calls_needed(seen.difference, n, noise=0.4) == pytest.approx(budget, abs=2)


def test_forecast_improves_with_calls_and_with_common_items():
    assert forecast(1200, 50).difference == pytest.approx(0.5 * forecast(300, 50).difference)
    alone, common = forecast(300, 50, item_share=0.0), forecast(300, 50, item_share=0.75)
    assert common.difference == pytest.approx(0.5 * alone.difference)
    assert "300 calls" in forecast(300, 50).sentence


def test_two_candidates_are_put_in_order_as_often_as_forecast():
    seen = forecast(100, 2, noise=0.4, item_share=0.0, probability=0.9)
    rng, each = np.random.default_rng(0), round(seen.replications)
    means = 0.4 * rng.standard_normal((20_000, 2, each)).mean(axis=2) + [seen.difference, 0.0]
    assert np.mean(means[:, 0] > means[:, 1]) == pytest.approx(0.9, abs=5 * np.sqrt(0.9 * 0.1 / len(means)))


def test_where_no_question_is_asked_twice_pairs_limit_what_a_budget_can_show():
    seen = forecast(200, 3, items=20, repeats="never")
    assert (seen.useful, seen.replications) == (60, 20)
    assert "140 calls will be left" in seen.sentence
    assert forecast(2000, 3, items=20, repeats="never").difference == seen.difference
    assert forecast(30, 3, items=20, repeats="never").useful == 30
    assert f"20 pairs cannot show differences below {round(100 * seen.difference)} points" in seen.sentence


def test_items_needed_put_two_candidates_in_order_as_often_as_said():
    rng, gap, spread = np.random.default_rng(0), 0.07, 0.5
    needed = reach(20, spread, gap).needed
    assert needed is not None
    differences = rng.normal(gap, spread / np.sqrt(needed), size=20_000)
    assert np.mean(differences > 0) == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 20_000) + 0.002)  # whole items
    assert reach(20, spread, 1e-6).needed is None
    assert reach(needed, spread, gap).sentence.endswith("enough to tell the two best apart.")


def test_candidates_that_nothing_can_be_asked_of_are_left_out():
    rng = np.random.default_rng(0)
    left = np.array([0.0, 2.0, 0.0, 1.0])
    chosen = next_candidates(view([0.9, 0.5, 0.8, 0.1], 0.3, left=left), 3, rng)
    assert np.bincount(chosen, minlength=4).tolist() == [0, 2, 0, 1]
    ended = view([0.6, 0.5], 0.3, left=0.0)
    assert value_of_more_calls(ended, 100, rng) == pytest.approx(0.0, abs=1e-6)
    assert value_of_next_call(ended) == pytest.approx(0.0, abs=1e-6)
    # With one call each, hundreds are worth no more than one.
    one, many = (value_of_more_calls(view([0.6, 0.5], 0.3, left=1.0), n, np.random.default_rng(1)) for n in (2, 500))
    assert one == pytest.approx(many)


def test_impossible_forecasts_are_refused():
    for wrong in ({"budget": 0, "n_candidates": 3}, {"budget": 9, "n_candidates": 3, "probability": 0.4}):
        with pytest.raises(ConfigError):
            forecast(**wrong)
    with pytest.raises(ConfigError):
        calls_needed(0.0, 10)
