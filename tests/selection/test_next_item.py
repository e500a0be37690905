"""Which item a candidate is asked next."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.selection import Selector, SelectorConfig
from bestprompt.selection.strategies.next_item import most_telling
from bestprompt.types import Observation, Proposal

ITEMS, PROMPTS = 12, 6


def after(answers: dict[tuple[int, int], float], **settings) -> tuple[Selector, object]:
    """A selector and its state after these answers of (candidate, item)."""
    config = SelectorConfig(budget=500, pairs="common", items=ITEMS, repeats="never", surrogate="none", **settings)
    selector = Selector(np.arange(PROMPTS, dtype=float)[:, None], config)
    told = [Observation(c, m, v) for (c, m), v in answers.items()]
    return selector, selector.tell(selector.initial(), told)


def judged() -> dict[tuple[int, int], float]:
    """Candidates 0 to 4 have met items 0 to 3: item 0 is trivial, item 1 hopeless, 2 and 3 tell candidates apart."""
    scores = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [1, 0, 1, 1], [1, 0, 0, 0], [1, 0, 1, 1]], dtype=float)
    return {(c, m): float(scores[c, m]) for c in range(5) for m in range(4)}


def test_an_item_that_everybody_gets_right_or_wrong_comes_last():
    _, state = after(judged())
    noise = state.belief.question_noise(state)[5]
    assert max(noise[2], noise[3]) < min(noise[0], noise[1])
    assert [p.replication for p in most_telling(state, state.belief.question_noise(state), np.array([5, 5]))] in (
        [2, 3],
        [3, 2],
    )


def test_the_noise_of_a_question_is_that_of_the_linearised_answer():
    """s² = 1/ω + k for right-or-wrong scores, by the posterior of the item's effect given the levels."""
    _, state = after(judged())
    belief = state.belief
    weight = belief.precisions[state.items == 2].sum()
    k = 1.0 / (1.0 / belief.dispersion.item + weight)
    off = belief.precisions * (belief.responses - belief.level[state.candidates])
    effect = k * off[state.items == 2].sum()
    slope = belief.link.weights(np.array([belief.level[5] + effect]), np.array([belief.variance[5] + k]))[0]
    assert belief.question_noise(state)[5, 2] == pytest.approx(1.0 / slope + k, rel=1e-6)


def test_what_was_met_or_is_under_way_is_not_asked():
    _, state = after(judged())
    noise = state.belief.question_noise(state)
    assert np.isinf(noise[0, :4]).all()
    pending = [Proposal(5, 2)]
    asked = most_telling(state, state.belief.question_noise(state), np.array([5, 5, 5]), pending)
    assert len({p.replication for p in asked}) == 3
    assert 2 not in {p.replication for p in asked}


def test_items_nobody_has_met_are_opened_in_turn():
    """Candidate 0 has met all that is known: it opens the item that the rotation has next for it."""
    _, state = after(judged())
    (asked,) = most_telling(state, state.belief.question_noise(state), np.array([0]))
    assert asked.replication == state.following[0]
    assert asked.replication not in range(4)


def test_runs_that_began_before_go_on_in_turn():
    selector, state = after(judged(), next_item="in-turn")
    (asked,) = selector.ask(state, 1)
    assert asked.replication == state.following[asked.candidate]


@pytest.mark.parametrize("repeats", ["never", "same-item"])
def test_every_item_is_met_once_before_any_is_met_again(repeats):
    rng = np.random.default_rng(3)
    table = (rng.random((PROMPTS, ITEMS)) < 0.5).astype(float)
    config = SelectorConfig(budget=2 * table.size, pairs="common", items=ITEMS, repeats=repeats, surrogate="none")
    selector = Selector(rng.standard_normal((PROMPTS, 2)), config)
    state = selector.initial()
    while proposals := selector.ask(state, 5):
        told = [Observation(p.candidate, p.replication, table[p.candidate, p.replication % ITEMS]) for p in proposals]
        state = selector.tell(state, told)
    for c in range(PROMPTS):
        items = state.items[state.candidates == c]
        assert np.unique(items[:ITEMS]).size == min(items.size, ITEMS)
    assert len(state) == (table.size if repeats == "never" else 2 * table.size)
