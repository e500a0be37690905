"""A part of the budget settles first which of the user's own prompts is best; an invented winner must beat that one."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.selection import Selector, SelectorConfig
from bestprompt.selection.selector import OWN_CALLS, OWN_SHARE
from bestprompt.types import Observation

N, OWN = 60, tuple(range(8))
TRUTH = np.random.default_rng(5).uniform(0.1, 0.4, N)


def evaluated(config: SelectorConfig, truth: np.ndarray, batch: int = 4) -> tuple[list[int], int]:
    """Candidates in the order of their evaluation, and the winner; answers are right or wrong."""
    rng = np.random.default_rng(config.seed)
    selector = Selector(np.random.default_rng(3).standard_normal((truth.size, 5)), config)
    state, order = selector.initial(), []
    while proposals := selector.ask(state, batch):
        order += [p.candidate for p in proposals]
        answers = [Observation(p.candidate, p.replication, float(rng.random() < truth[p.candidate])) for p in proposals]
        state = selector.tell(state, answers)
    return order, selector.choice(state)


def test_own_prompts_come_first_and_then_all() -> None:
    order, _ = evaluated(SelectorConfig(budget=200, examples=OWN, surrogate="average"), TRUTH)
    first = int(OWN_SHARE * 200)
    assert set(order[10:first]) <= set(OWN), "after a warm-up of ten"
    assert len(set(order[first:]) - set(OWN)) > 10


def test_a_large_budget_is_not_spent_on_few_own_prompts() -> None:
    order, _ = evaluated(SelectorConfig(budget=1200, examples=OWN[:2], surrogate="average"), TRUTH, batch=16)
    assert not set(order[OWN_CALLS * 2 : OWN_CALLS * 2 + 16]) <= {0, 1}


def test_own_prompts_that_met_every_item_give_way_to_the_others() -> None:
    """Eight prompts on five pairs have forty questions, less than their share of the budget, which is spent anyway."""
    settings = {"pairs": "common", "items": 5, "repeats": "never", "surrogate": "average"}
    order, _ = evaluated(SelectorConfig(budget=280, examples=OWN, **settings), TRUTH)
    assert 5 * len(OWN) < OWN_SHARE * 280
    assert len(order) == 280
    assert max(map(order.count, OWN)) == 5


@pytest.mark.parametrize("examples", [(), (3,), tuple(range(N))])
def test_nothing_to_settle_without_others_or_without_own(examples: tuple[int, ...]) -> None:
    first = evaluated(SelectorConfig(budget=200, examples=examples, surrogate="average"), TRUTH)[0][:50]
    assert len(set(first)) > 8


@pytest.mark.slow
def test_a_good_own_prompt_is_not_lost_after_a_wrong_answer() -> None:
    """Sixty prompts, the third of the user's own far better: it wins although its first answer may be wrong."""
    truth = np.where(np.arange(N) == 2, 0.6, TRUTH)
    configs = [SelectorConfig(budget=200, examples=OWN, seed=seed, surrogate="average") for seed in range(24)]
    won = [evaluated(config, truth)[1] == 2 for config in configs]
    assert np.mean(won) >= 0.6, "it wins in 42 % where nothing is settled first, in 71 % where it is"
