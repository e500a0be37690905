"""The ask/tell core on its contract: determinism, replay, budget, order, and degenerate input."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.errors import ConfigError, TaskError
from bestprompt.selection import SelectionState, Selector, SelectorConfig, select
from bestprompt.types import Observation, Proposal


def coordinates(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, 4))


def answer(truth: np.ndarray, p: Proposal) -> Observation:
    right = np.random.default_rng([p.candidate, p.replication]).random() < truth[p.candidate]
    return Observation(p.candidate, p.replication, float(right))


def drive(selector: Selector, truth: np.ndarray, batch: int = 4) -> tuple[SelectionState, list[list[Proposal]]]:
    state, rounds = selector.initial(), []
    while proposals := selector.ask(state, batch):
        rounds.append(proposals)
        state = selector.tell(state, [answer(truth, p) for p in proposals])
    return state, rounds


def problem(n: int = 30) -> tuple[np.ndarray, np.ndarray]:
    Z = coordinates(n)
    return Z, 1.0 / (1.0 + np.exp(-1.5 * Z[:, 0]))


@pytest.mark.parametrize("pairs", ["common", "independent"])
def test_replay_asks_the_same_and_ends_in_the_same_state(pairs):
    Z, truth = problem()
    config = SelectorConfig(budget=90, pairs=pairs, seed=3)
    state, rounds = drive(Selector(Z, config), truth)
    selector, again = Selector(Z, config), Selector(Z, config).initial()
    for proposals in rounds:
        assert selector.ask(again, 4) == proposals
        again = selector.tell(again, [answer(truth, p) for p in proposals])
    assert selector.recommend(again).verdict == Selector(Z, config).recommend(state).verdict
    np.testing.assert_array_equal(again.belief.mean, state.belief.mean)


def test_each_candidate_gets_its_replications_in_order():
    Z, truth = problem()
    state, rounds = drive(Selector(Z, SelectorConfig(budget=100)), truth, batch=7)
    following = np.zeros(30, dtype=int)
    for p in (p for proposals in rounds for p in proposals):
        assert p.replication == following[p.candidate]
        following[p.candidate] += 1
    np.testing.assert_array_equal(following, state.counts)
    assert len(state) == 100


def test_pending_evaluations_count_against_the_budget_and_keep_their_replication():
    Z, _ = problem()
    selector = Selector(Z, SelectorConfig(budget=9))
    first = selector.ask(selector.initial(), 6)
    rest = selector.ask(selector.initial(), 20, pending=first)
    assert len(first) + len(rest) == 9
    assert len(set(first) | set(rest)) == 9


def test_it_finds_the_best_of_an_easy_field():
    Z, truth = problem()
    rec = select(Z, lambda c, r: answer(truth, Proposal(c, r)).score, 300, seed=1, batch=5)
    assert truth.max() - truth[rec.candidate] < 0.05
    assert rec.interval[0] < truth[rec.candidate] < rec.interval[1]
    assert rec.counts.sum() == 300


def test_common_pairs_remove_the_items_noise():
    rng = np.random.default_rng(0)
    Z, items = coordinates(20), rng.normal(0.0, 0.3, 400)
    truth = 0.5 + 0.05 * rng.standard_normal(20)
    truth[truth.argmax()] += 0.05  # clearly the best, whatever was drawn

    def score(c: int, r: int) -> float:
        return float(truth[c] + items[r] + 0.02 * np.random.default_rng([c, r]).standard_normal())

    rec = select(Z, score, 200, pairs="common", batch=4)
    assert rec.candidate == int(np.argmax(truth))
    assert rec.variance_split["item"] > 0.7
    assert rec.probability_best > 0.9
    np.testing.assert_allclose(sum(rec.variance_split.values()), 1.0)


# ------------------------------------------------------------------------------------------------- degenerate input
def test_all_scores_equal():
    Z, _ = problem()
    rec = select(Z, lambda c, r: 0.7, 60, batch=5)
    assert rec.score == pytest.approx(0.7, abs=0.01)
    assert rec.interval[0] <= 0.7 <= rec.interval[1]
    assert rec.probability_within_delta > rec.probability_best
    assert len(rec.shortlist) > 5


def test_zero_variance_with_different_means_is_settled():
    Z, truth = problem(10)
    rec = select(Z, lambda c, r: float(truth[c]), 60)
    assert rec.candidate == int(np.argmax(truth))


@pytest.mark.parametrize("mode", ["default", "paper"])
def test_one_prompt(mode):
    options = {"surrogate": "blr"} if mode == "paper" else {}
    rec = select(np.zeros((1, 3)), lambda c, r: float(r % 2), 10, mode=mode, **options)
    assert rec.candidate == 0
    assert rec.probability_best == 1.0
    assert rec.value_of_more == 0.0
    assert rec.counts[0] == 10


@pytest.mark.parametrize("budget", [1, 2, 7])
def test_fewer_calls_than_candidates(budget):
    Z, truth = problem()
    rec = select(Z, lambda c, r: float(truth[c] > 0.5), budget)
    assert rec.counts.sum() == budget
    assert 0.0 <= rec.interval[0] <= rec.score <= rec.interval[1] <= 1.0


def test_duplicated_soft_prompts():
    Z = np.repeat(coordinates(5), 4, axis=0)
    truth = np.repeat(np.array([0.2, 0.4, 0.5, 0.3, 0.9]), 4)
    rec = select(Z, lambda c, r: answer(truth, Proposal(c, r)).score, 120, batch=3)
    assert truth[rec.candidate] == 0.9
    same = select(np.ones((6, 2)), lambda c, r: float(c == 4), 40)
    assert same.candidate == 4


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_not_finite_is_refused_and_loses_nothing(value):
    Z, truth = problem()
    selector = Selector(Z, SelectorConfig(budget=20))
    state = selector.tell(selector.initial(), [answer(truth, p) for p in selector.ask(selector.initial(), 3)])
    with pytest.raises(TaskError, match="finite"):
        selector.tell(state, [Observation(0, 9, 0.5), Observation(1, 9, value)])
    assert len(state) == 3


def test_telling_twice_or_of_nobody_is_refused():
    Z, _ = problem()
    selector = Selector(Z, SelectorConfig(budget=20))
    state = selector.tell(selector.initial(), [Observation(0, 0, 1.0)])
    for wrong in (
        [Observation(0, 0, 1.0)],
        [Observation(1, 0, 1.0), Observation(1, 0, 0.0)],
        [Observation(30, 0, 1.0)],
    ):
        with pytest.raises(TaskError):
            selector.tell(state, wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": 0},
        {"budget": 5, "incumbent": 30},
        {"budget": 5, "costs": (1.0,)},
        {"budget": 5, "examples": (99,)},
        {"budget": 5, "mode": "fast"},
        {"budget": 5, "stop_at": 1.5},
        {"budget": 5, "surrogate": "oracle"},
    ],
)
def test_wrong_settings_are_refused(wrong):
    Z, truth = problem()
    with pytest.raises(ConfigError):
        drive(Selector(Z, SelectorConfig(**wrong)), truth)


def test_coordinates_must_be_a_finite_matrix():
    for Z in (np.zeros(3), np.zeros((0, 2)), np.full((3, 2), np.nan)):
        with pytest.raises(ConfigError):
            Selector(Z, SelectorConfig(budget=5))


def test_examples_come_first():
    Z, _ = problem()
    selector = Selector(Z, SelectorConfig(budget=50, examples=(7, 3)))
    assert [p.candidate for p in selector.ask(selector.initial(), 2)] == [7, 3]


def test_random_search_is_a_policy():
    Z, truth = problem()
    state, _ = drive(Selector(Z, SelectorConfig(budget=200, policy="random", mode="paper")), truth)
    assert state.counts.max() <= 20
    rec = Selector(Z, SelectorConfig(budget=200, policy="random", surrogate="blr")).recommend(state)
    assert rec.candidate == int(np.argmax(np.where(state.counts > 0, state.means, -1)))


# ------------------------------------------------------------------------------------------------------- golden run
@pytest.mark.golden
def test_golden_trajectory():
    """A fixed seed keeps its questions; a change here changes every recorded run and belongs in the change log."""
    Z, truth = problem(12)
    _, rounds = drive(Selector(Z, SelectorConfig(budget=24, seed=5, units="alike")), truth, batch=3)
    asked = [(p.candidate, p.replication) for proposals in rounds for p in proposals]
    assert asked == GOLDEN


GOLDEN: list[tuple[int, int]] = [
    (8, 0),
    (3, 0),
    (11, 0),
    (2, 0),
    (0, 0),
    (5, 0),
    (11, 1),
    (8, 1),
    (11, 2),
    (8, 2),
    (10, 0),
    (11, 3),
    (9, 0),
    (4, 0),
    (6, 0),
    (6, 1),
    (6, 2),
    (8, 3),
    (6, 3),
    (8, 4),
    (6, 4),
    (8, 5),
    (6, 5),
    (8, 6),
]
