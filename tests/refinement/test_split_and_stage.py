"""Who gets the next call."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.errors import ConfigError
from bestprompt.refinement import BudgetSplit, RefinementStage, confirming
from bestprompt.selection import Selector, SelectorConfig
from bestprompt.selection.core.state import empty_state, fold
from bestprompt.types import Observation, Proposal


def looks(split, budget, start=24):
    """Counts at which a run of single evaluations would look outside the set."""
    asked, seen = -1, []
    for spent in range(start, budget):
        if split.due(spent, budget, asked):
            asked = spent
            seen.append(spent)
    return seen


def test_the_rule_compares_gains_per_call():
    rule = BudgetSplit("rule")
    assert rule.turn(0.01, 0.02) == "refine"
    assert rule.turn(0.02, 0.01) == "select"
    assert rule.turn(0.0, 0.0) == "select"


def test_fixed_splits_look_only_in_their_part_of_the_budget():
    assert looks(BudgetSplit("share", share=0.0), 200) == []
    shared = looks(BudgetSplit("share", share=0.2), 200)
    assert min(shared) == 160
    assert max(shared) < 195
    tail = looks(BudgetSplit("tail", additional=20), 200)
    assert min(tail) == 180
    assert BudgetSplit("tail", additional=500).selecting_until(100) == 50
    assert len(looks(BudgetSplit("direct"), 100)) == 76


def test_cheap_looks_are_not_spread_over_a_large_budget():
    rare, often = looks(BudgetSplit("rule"), 600), looks(BudgetSplit("rule", pause=8), 600)
    assert np.diff(rare).max() == 30
    assert np.diff(often).max() == 8
    assert looks(BudgetSplit("rule", pause=8), 100) == looks(BudgetSplit("rule"), 100), "never less often"


def test_the_rule_looks_all_along_but_not_too_often():
    seen = looks(BudgetSplit("rule"), 300)
    assert 10 <= len(seen) <= 40
    assert seen[-1] > 250


@pytest.mark.parametrize("wrong", [{"kind": "half"}, {"share": 1.0}, {"share": -0.1}, {"additional": -1}])
def test_impossible_splits_are_refused(wrong):
    with pytest.raises(ConfigError):
        BudgetSplit(**wrong)


@pytest.fixture(scope="module")
def run(world):
    Z = world.X @ np.linalg.svd(world.X, full_matrices=False)[2][:3].T
    selector = Selector(Z, SelectorConfig(budget=120, surrogate="average"))
    state = selector.initial()
    while len(state) < 60:
        asked = selector.ask(state, 4)
        scores = [world.score(world.texts[p.candidate], p.replication) for p in asked]
        told = [Observation(p.candidate, p.replication, score) for p, score in zip(asked, scores, strict=True)]
        state = selector.tell(state, told)
    return selector, state


def test_a_look_reports_both_values_and_takes_the_larger(refiner, world, run):
    selector, state = run
    look = RefinementStage(refiner(world), BudgetSplit()).look(selector, state, world.X, world.texts)
    assert look.suggestion is not None
    assert look.refinement_value == look.suggestion.value_per_call
    assert (look.turn == "refine") == (look.refinement_value > look.selection_value)


def test_nothing_acceptable_means_selection_goes_on(refiner, world, run):
    selector, state = run
    refusing = refiner(world, lambda text, parent: "broken")
    for split in (BudgetSplit("rule"), BudgetSplit("share", share=0.9), BudgetSplit("direct")):
        look = RefinementStage(refusing, split).look(selector, state, world.X, world.texts)
        assert (look.turn, look.refinement_value, look.suggestion) == ("select", 0.0, None)


def test_confirmation_is_asked_for_when_just_the_missing_calls_remain():
    """Candidate 1 leads after two replications, candidate 0 has seven: three calls are missing, and to 1 only."""
    told = [Observation(0, r, 0.5) for r in range(7)] + [Observation(1, r, 1.0) for r in range(2)]
    state = fold(empty_state(2), told)
    assert confirming(state, 1, 0, remaining=20, enough=5) == []
    missing = [Proposal(1, 2), Proposal(1, 3), Proposal(1, 4)]
    assert confirming(state, 1, 0, remaining=4, enough=5) == missing
    assert confirming(state, 1, 0, remaining=2, enough=5) == missing[:2]
    assert confirming(state, 0, 0, remaining=1, enough=5) == []
