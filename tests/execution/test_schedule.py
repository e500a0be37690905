"""Asking an earlier pair again."""

from __future__ import annotations

import pytest

from bestprompt.errors import ConfigError
from bestprompt.execution import Schedule
from bestprompt.types import Proposal


@pytest.mark.parametrize("pairs", ["common", "independent"])
def test_the_last_of_each_block_meets_the_first_ones_pair_with_another_seed(pairs):
    schedule = Schedule(40, seed=1, pairs=pairs, repeat_items=0.25)
    for block in range(6):
        first, last = Proposal(2, 4 * block), Proposal(2, 4 * block + 3)
        assert schedule.pair(first) == schedule.pair(last)
        assert schedule.sampling_seed(first) != schedule.sampling_seed(last)


def test_repetitions_use_up_no_pair():
    schedule = Schedule(9, seed=1, repeat_items=0.25)
    fresh = [schedule.pair(Proposal(0, r)) for r in range(12) if r % 4 != 3]
    assert sorted(fresh) == list(range(9))
    assert [Schedule(9, seed=1).pair(Proposal(0, r)) for r in range(9)] == fresh


def test_half_is_the_most():
    assert Schedule(4, seed=0, repeat_items=0.5).first(3) == 2
    with pytest.raises(ConfigError, match="repeat_items"):
        Schedule(4, seed=0, repeat_items=0.6)
