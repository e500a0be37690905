"""In which order candidates meet the common items."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestprompt.selection import Selector, SelectorConfig
from bestprompt.selection.core.rotation import BLOCK, IN_ORDER, Rotation
from bestprompt.types import Observation, Proposal

rotations = st.builds(Rotation, st.integers(1, 12), st.none() | st.integers(1, 40))


@given(rotations, st.integers(0, 500))
def test_every_run_through_the_items_is_a_permutation_of_them(rotation: Rotation, candidate: int) -> None:
    period = rotation.items or rotation.block
    order = list(islice(rotation.order(candidate), 3 * period))
    for again in range(3):
        epoch = order[again * period : (again + 1) * period]
        assert sorted(epoch) == list(range(again * period, (again + 1) * period))


@given(rotations, st.integers(0, 5), st.data())
def test_next_is_the_first_of_the_order_that_was_not_met(
    rotation: Rotation, candidate: int, data: st.DataObject
) -> None:
    met = data.draw(st.lists(st.integers(0, 60), unique=True))
    who = np.full(len(met), candidate)
    expected = next(r for r in rotation.order(candidate) if r not in met)
    assert rotation.following(who, np.array(met, dtype=np.int64), 6)[candidate] == expected
    assert rotation.first_unmet(candidate, met) == expected


def test_nothing_follows_where_all_items_were_met_and_none_comes_again() -> None:
    rotation = Rotation(BLOCK, 25, "never")
    everything = list(rotation.order(3))
    assert rotation.first_unmet(3, everything[:-1]) == everything[-1]
    assert rotation.first_unmet(3, everything) is None


def test_without_blocks_the_order_is_the_natural_one() -> None:
    assert list(islice(IN_ORDER.order(7), 40)) == list(range(40))


def test_no_block_reaches_into_the_next_run_through_the_items() -> None:
    assert list(islice(Rotation(10, 12).order(3), 14)) == [3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 11, 10, 15, 16]


CONFIGS = [
    (SelectorConfig(budget=60, pairs="common", next_item="in-turn"), Rotation(BLOCK)),
    (SelectorConfig(budget=60, pairs="common", items=7, next_item="in-turn"), Rotation(BLOCK, 7)),
    (SelectorConfig(budget=60), IN_ORDER),
    (SelectorConfig(budget=60, pairs="common", mode="paper", surrogate="gp"), IN_ORDER),
]


@pytest.mark.parametrize(("config", "rotation"), CONFIGS)
def test_a_run_asks_every_candidate_in_its_order(config: SelectorConfig, rotation: Rotation) -> None:
    selector = Selector(np.random.default_rng(0).standard_normal((12, 3)), config)
    state = selector.initial()
    for _ in range(8):
        asked = selector.ask(state, 5)
        state = selector.tell(state, [Observation(p.candidate, p.replication, p.candidate % 2) for p in asked])
    for candidate in range(12):
        told = state.replications[state.candidates == candidate]
        assert set(told.tolist()) == set(islice(rotation.order(candidate), told.size))


def test_what_is_under_way_is_not_asked_again() -> None:
    selector = Selector(np.zeros((1, 1)), SelectorConfig(budget=30, pairs="common"))
    state = selector.tell(selector.initial(), [Observation(0, 0, 1.0), Observation(0, 4, 0.0)])
    asked = selector.ask(state, 3, pending=[Proposal(0, 1), Proposal(0, 5)])
    assert asked == [Proposal(0, 2), Proposal(0, 3), Proposal(0, 6)]
