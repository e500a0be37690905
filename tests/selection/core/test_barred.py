"""Items that a candidate must not be judged by."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from bestprompt.refinement import confirming
from bestprompt.selection import Selector, SelectorConfig, grown
from bestprompt.selection.core.rotation import BLOCK, Rotation
from bestprompt.types import Observation

BARRED = frozenset({0, 3, 4, 11})


@pytest.mark.parametrize("repeats", ["never", "same-item"])
def test_the_order_leaves_them_out(repeats: str) -> None:
    rotation = Rotation(BLOCK, 14, repeats).barring(2, BARRED)  # type: ignore[arg-type]
    order = list(islice(rotation.order(2), 20))
    items = rotation.item(np.array(order)).tolist()
    assert not set(items) & BARRED
    assert set(items[:10]) == set(range(14)) - BARRED
    assert list(islice(rotation.order(1), 14)) == list(islice(Rotation(BLOCK, 14, repeats).order(1), 14))  # type: ignore[arg-type]
    counts = np.array([3, 3, 3])
    expected = [11.0, 11.0, 7.0] if repeats == "never" else [np.inf] * 3
    assert rotation.left(counts).tolist() == expected


@pytest.mark.parametrize("telling", ["most-telling", "in-turn"])
def test_a_whole_run_never_asks_them(telling: str) -> None:
    Z, rng = np.array([[0.0], [1.0], [0.4]]), np.random.default_rng(0)
    config = SelectorConfig(60, pairs="common", items=14, repeats="never", next_item=telling)  # type: ignore[arg-type]
    small = Selector(Z[:2], config)
    state = small.initial()
    for _ in range(4):
        asked = small.ask(state, 4)
        state = small.tell(state, [Observation(p.candidate, p.replication, float(rng.random() < 0.5)) for p in asked])
    state, selector = grown(state, barred=BARRED), Selector(Z, config)
    while asked := selector.ask(state, 4):
        state = selector.tell(
            state, [Observation(p.candidate, p.replication, float(rng.random() < 0.6)) for p in asked]
        )
    met = [set(state.items[state.candidates == n].tolist()) for n in range(3)]
    assert met == [set(range(14)), set(range(14)), set(range(14)) - BARRED]
    assert not state.left.any()
    assert "nothing left to ask" in (selector.should_stop(state) or "")
    assert 0.0 <= selector.recommend(state).probability_best <= 1.0


def test_a_comparison_asks_for_what_both_may_meet() -> None:
    config = SelectorConfig(60, pairs="common", items=14, repeats="never")
    state = grown(Selector(np.zeros((2, 1)), config).initial(), barred=BARRED)
    asked = confirming(state, 2, 0, remaining=11, enough=6)
    assert {p.replication for p in asked} == {1, 2, 5, 6, 7, 8}
    assert {p.candidate for p in asked} == {0, 2}
