"""The verdict: certainty, ties, incumbents, stopping."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.selection import Selector, SelectorConfig, select
from bestprompt.selection.conclusion.verdict import ALLOWANCE, certainty, conclude, preferred, shortlist, widened
from bestprompt.selection.core.state import empty_state
from bestprompt.selection.core.views import Noise
from bestprompt.types import Observation


def draws_of(means, sd=0.05, count=4000):
    means = np.asarray(means, dtype=float)
    return means + sd * np.random.default_rng(0).standard_normal((count, means.size))


def verdict(means, sd=0.05, **options):
    means = np.asarray(means, dtype=float)
    config = SelectorConfig(budget=10, **options)
    winner = preferred(means, np.ones(means.size), config.costs, config.delta)
    state, noise = empty_state(means.size), Noise(np.full(means.size, 0.1), 0.05)
    return conclude(config, state, winner, means, draws_of(means, sd), noise, 0.01, None)


def test_certainty_counts_draws():
    draws = np.array([[1.0, 0.0], [0.5, 0.51], [0.0, 1.0], [1.0, 1.0]])
    seen = certainty(draws, 0, delta=0.02)
    assert seen.probability_best == 0.5
    assert seen.probability_within_delta == 0.75
    assert seen.expected_loss == pytest.approx(1.01 / 4)


def test_the_cheapest_of_the_tied_is_preferred():
    estimates = np.array([0.700, 0.698, 0.60])
    everybody = np.ones(3, dtype=int)
    assert preferred(estimates, everybody, None, 0.02) == 0
    assert preferred(estimates, everybody, (5.0, 1.0, 0.1), 0.02) == 1
    assert preferred(estimates, everybody, (5.0, 1.0, 0.1), 0.001) == 0
    assert preferred(estimates, np.array([1, 0, 1]), (5.0, 1.0, 0.1), 0.02) == 0
    assert preferred(estimates, np.array([0, 0, 1]), (5.0, 1.0, 0.1), 0.02) == 0


def test_shortlist_holds_those_that_cannot_be_told_from_the_winner():
    config = SelectorConfig(budget=1, delta=0.02)
    estimates = np.array([0.70, 0.695, 0.5, 0.66, 0.66])
    counts = np.array([9, 9, 9, 3, 0])
    tied = shortlist(draws_of(estimates), estimates, counts, 0, config)
    # .04 is less than one standard error of the difference; nobody knows anything of the last.
    assert [c.candidate for c in tied] == [0, 1, 3]
    surely = shortlist(draws_of(estimates, sd=0.005), estimates, counts, 0, config)
    assert [c.candidate for c in surely] == [0, 1]


def test_keep_your_current_prompt():
    close = verdict([0.70, 0.69], incumbent=1)
    assert close.keep_incumbent
    assert "keep your current prompt" in close.verdict
    clear = verdict([0.90, 0.40], incumbent=1)
    assert not clear.keep_incumbent
    assert clear.probability_beats_incumbent > 0.95
    assert "keep" not in clear.verdict
    own = verdict([0.90, 0.40], incumbent=0)
    assert own.keep_incumbent
    assert own.probability_beats_incumbent == 0.0
    assert verdict([0.9, 0.4]).probability_beats_incumbent is None


def test_interval_and_split():
    rec = verdict([0.7, 0.2], sd=0.1)
    # Nothing was evaluated, so the allowance for small samples is at its largest.
    half = 1.96 * 0.1 * np.sqrt(1 + ALLOWANCE)
    assert rec.interval[0] == pytest.approx(0.7 - half, abs=0.03)
    assert rec.interval[1] == pytest.approx(0.7 + half, abs=0.03)
    assert widened(np.array([[0.5, 0.9]]), np.array([0.7, 0.7]), 10**9) == pytest.approx(np.array([[0.5, 0.9]]))
    assert rec.variance_split["item"] == pytest.approx(0.5 * rec.variance_split["rest"])


def clear_problem():
    Z = np.random.default_rng(0).standard_normal((10, 2))
    truth = np.linspace(0.1, 0.9, 10)
    return Z, lambda c, r: float(truth[c] + 0.05 * np.random.default_rng([c, r]).standard_normal())


@pytest.mark.parametrize(
    ("rule", "words"),
    [({"stop_at": 0.99}, "probability"), ({"stop_loss": 0.001}, "loss"), ({"gain_per_call": 1e-4}, "price")],
)
def test_a_settled_question_stops_the_run(rule, words):
    Z, score = clear_problem()
    rec = select(Z, score, 400, config=SelectorConfig(budget=400, **rule))
    assert rec.counts.sum() < 150
    assert rec.candidate == 9
    assert words in rec.stopped_because


def test_without_rules_the_budget_is_spent():
    Z, score = clear_problem()
    rec = select(Z, score, 60)
    assert rec.counts.sum() == 60
    assert "budget" in rec.stopped_because


def test_the_winners_curse_is_corrected():
    """A field of equals: the best raw mean is far too high, the estimate is not."""
    rng = np.random.default_rng(0)
    raw, estimated = [], []
    for seed in range(15):
        Z = rng.standard_normal((30, 3))
        selector = Selector(Z, SelectorConfig(budget=90, seed=seed))
        looks = [Observation(c, r, float(rng.random() < 0.5)) for c in range(30) for r in range(3)]
        rec = selector.recommend(selector.tell(selector.initial(), looks))
        raw.append(rec.means.max() - 0.5)
        estimated.append(rec.score - 0.5)
    # Paired, field by field: the estimate is off by less than half of what the raw mean is, by three standard errors.
    for margin in (0.5 * np.array(raw) - estimated, 0.5 * np.array(raw) + estimated):
        assert margin.mean() > 3 * margin.std(ddof=1) / np.sqrt(margin.size)
