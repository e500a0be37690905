"""Few items, each question asked once: what is asked, what is believed, and what is stated."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.special import expit

from bestprompt.selection import Selector, SelectorConfig
from bestprompt.selection.belief.noise import Dispersion, shared_part, worth_of_repetitions
from bestprompt.selection.core.rotation import Rotation
from bestprompt.types import Observation

ABILITIES = np.array([-1.0, -0.5, 0.0, 0.4, 0.8, 1.2])


def answers(items: int, seed: int) -> np.ndarray:
    """(N, M) fixed answers of prompts to items of different difficulty."""
    rng = np.random.default_rng([items, seed])
    return (rng.random((ABILITIES.size, items)) < expit(ABILITIES[:, None] - rng.normal(size=items))).astype(float)


def carry_out(table, budget, batch=8, stop=None, seed=0, **settings):
    """A run on a table of fixed answers: selector, state, and how often each question was asked."""
    n, items = table.shape
    Z = np.random.default_rng(5).standard_normal((n, 3))
    config = SelectorConfig(
        budget=budget, pairs="common", items=items, repeats="never", stop_gain=stop, seed=seed,
        **{"surrogate": "average", **settings},
    )  # fmt: skip
    selector = Selector(Z, config)
    state, asked = selector.initial(), Counter()
    while selector.should_stop(state) is None and (proposals := selector.ask(state, batch)):
        told = []
        for p in proposals:
            question = (p.candidate, p.replication % items)
            asked[question] += 1
            told.append(Observation(p.candidate, p.replication, table[question]))
        state = selector.tell(state, told)
    return selector, state, asked


@pytest.mark.parametrize(
    "settings",
    [{}, {"surrogate": "auto"}, {"surrogate": "gp"}, {"policy": "random"}, {"mode": "paper", "surrogate": "blr"},
     {"surrogate": "gp", "maximizer": "reinforce"}],
)  # fmt: skip
def test_every_question_is_asked_once_and_the_run_ends_when_none_is_left(settings):
    table = answers(7, 0)
    selector, state, asked = carry_out(table, 200, **settings)
    assert len(asked) == asked.total() == table.size
    assert (
        selector.should_stop(state)
        == selector.recommend(state).stopped_because
        == ("every prompt has met all 7 pairs: there is nothing left to ask")
    )
    assert selector.ask(state, 8) == []


def test_once_all_is_asked_the_statement_about_these_items_is_certain():
    table = answers(12, 3)
    selector, state, _ = carry_out(table, 500)
    found = selector.recommend(state)
    here = found.on_these_items
    assert here is not None
    assert (here.items, here.asked) == (12, 12)
    assert [here.score, *here.interval] == pytest.approx([table[found.candidate].mean()] * 3)
    assert here.probability_best == float(table[found.candidate].mean() >= table.mean(axis=1).max())
    assert "On the 12 pairs at hand it scores" in found.verdict
    # About items like these it is not: twelve of them say little.
    assert found.interval[1] - found.interval[0] > 0.2
    assert found.probability_best < 0.99


def test_nothing_is_learnt_from_an_answer_that_was_known():
    """The belief after all questions does not depend on how large the budget was."""
    table = answers(10, 1)
    small, large = (selector.recommend(state) for selector, state, _ in (carry_out(table, b) for b in (60, 6000)))
    assert small.counts.tolist() == large.counts.tolist() == [10] * 6
    assert small.score == pytest.approx(large.score, abs=0.05)
    assert small.interval[1] - small.interval[0] == pytest.approx(large.interval[1] - large.interval[0], abs=0.05)


def test_statements_about_items_like_these_and_about_these_are_both_true():
    """60 runs on 15 items: intervals of the population's mean and of the table's, and what was stated as probable.

    Bounds are three standard errors from 95 %, or from the mean probability stated.
    """
    rng = np.random.default_rng(0)
    truth = expit(ABILITIES[:, None] - rng.normal(size=200_000)).mean(axis=1)
    covered, here_covered, stated, right = [], [], [], []
    for seed in range(60):
        table = answers(15, 100 + seed)
        selector, state, _ = carry_out(table, 45, seed=seed)
        found = selector.recommend(state)
        here, mean = found.on_these_items, table.mean(axis=1)
        covered.append(found.interval[0] <= truth[found.candidate] <= found.interval[1])
        here_covered.append(here.interval[0] - 1e-9 <= mean[found.candidate] <= here.interval[1] + 1e-9)
        stated.append(here.probability_best)
        right.append(mean[found.candidate] >= mean.max() - 1e-9)
    error = 3.0 * np.sqrt(0.95 * 0.05 / 60)
    assert np.mean(covered) > 0.95 - error
    assert np.mean(here_covered) > 0.95 - error
    assert abs(np.mean(stated) - np.mean(right)) < 3.0 * np.sqrt(0.25 / 60)


def test_a_run_stops_when_what_is_left_would_not_change_the_answer():
    clear = np.array([[1.0] * 40, [0.0] * 40, [0.0] * 40])
    selector, state, asked = carry_out(clear, 500, stop=0.0005)
    assert asked.total() < 0.75 * clear.size
    assert "questions that were not asked are expected to gain 0.000" in (selector.should_stop(state) or "")
    _, _, all_of_them = carry_out(clear, 500)
    assert all_of_them.total() == clear.size


def test_answers_on_the_same_item_are_worth_less_than_on_others():
    assert worth_of_repetitions(np.array([0, 1, 5]), 0.0).tolist() == [0, 1, 5]
    assert worth_of_repetitions(np.array([0, 1, 5]), 1.0).tolist() == [0, 1, 1]
    assert worth_of_repetitions(np.array([3]), 0.5)[0] == pytest.approx(1.5)
    assert Dispersion(1.0, 0.0, shared=0.5).repeated_noise(np.array([0, 1])).tolist() == pytest.approx([1.0, 3.0])


@pytest.mark.parametrize("share", [0.1, 0.8])
def test_the_part_that_repetitions_share_is_found(share):
    rng = np.random.default_rng(3)
    cells = np.repeat(np.arange(400), 3)
    residuals = np.sqrt(share) * rng.normal(size=400)[cells] + np.sqrt(1 - share) * rng.normal(size=1200)
    # The mean of 1200 products of correlated normals: a standard error of at most sqrt((1 + 2 share + ...) / 400).
    assert shared_part(residuals, cells) == pytest.approx(share, abs=4 * np.sqrt(3 / 400))


def test_repeated_answers_make_a_run_less_sure_than_as_many_items_would():
    """Ten items asked ten times each, with answers that only depend on the item: an interval as of ten items."""
    rng = np.random.default_rng(2)
    fixed = (rng.random((2, 10)) < [[0.7], [0.4]]).astype(float)
    widths = {}
    for repeats in ("same-item", "new-item"):
        config = SelectorConfig(
            budget=200, pairs="common", items=10, repeats=repeats, surrogate="average", seed=0, block=1
        )
        selector = Selector(np.array([[0.0], [1.0]]), config)
        state = selector.initial()
        for r in range(100):
            state = selector.tell(state, [Observation(n, r, fixed[n, r % 10]) for n in range(2)])
        low, high = selector.recommend(state).interval
        widths[repeats] = high - low
    assert widths["same-item"] > 1.5 * widths["new-item"]


def test_items_of_replications():
    assert Rotation(1, 4, "same-item").item(np.arange(6)).tolist() == [0, 1, 2, 3, 0, 1]
    assert Rotation(1, 4, "new-item").item(np.arange(6)).tolist() == [0, 1, 2, 3, 4, 5]
    assert Rotation(1, None, "same-item").item(np.arange(6)).tolist() == [0, 1, 2, 3, 4, 5]
    assert Rotation(1, 4, "same-item", repeat_every=3).item(np.arange(7)).tolist() == [0, 1, 0, 2, 3, 2, 0]
    once = Rotation(3, 5, "never")
    assert [sorted(once.order(n)) for n in range(4)] == [[0, 1, 2, 3, 4]] * 4
    assert once.left(np.array([0, 3, 5])).tolist() == [5, 2, 0]
