"""Asking an earlier pair again."""

from __future__ import annotations

import pytest

from bestprompt.errors import ConfigError
from bestprompt.execution import HELD_OUT, Schedule
from bestprompt.types import Proposal


@pytest.mark.parametrize("pairs", ["common", "independent"])
def test_the_last_of_each_block_meets_the_first_ones_pair_with_another_seed(pairs):
    schedule = Schedule(40, seed=1, pairs=pairs, repeat_every=4)
    for block in range(6):
        first, last = Proposal(2, 4 * block), Proposal(2, 4 * block + 3)
        assert schedule.pair(first) == schedule.pair(last)
        assert schedule.sampling_seed(first) != schedule.sampling_seed(last)


def test_repetitions_use_up_no_pair():
    schedule = Schedule(9, seed=1, repeat_every=4)
    fresh = [schedule.pair(Proposal(0, r)) for r in range(12) if r % 4 != 3]
    assert sorted(fresh) == list(range(9))
    assert [Schedule(9, seed=1).pair(Proposal(0, r)) for r in range(9)] == fresh


def test_half_is_the_most():
    halves = Schedule(4, seed=0, repeat_every=2)
    assert halves.pair(Proposal(0, 3)) == halves.pair(Proposal(0, 2))
    with pytest.raises(ConfigError, match="repeat_every"):
        Schedule(4, seed=0, repeat_every=1)


def test_pairs_come_again_as_what_the_run_takes_them_for():
    """As the same item in the same place; in records from before that was known, in an order of their own."""
    known, former = Schedule(10, seed=3), Schedule(10, seed=3, repeats="new-item")
    first, again = ([s.pair(Proposal(0, r)) for r in range(20)] for s in (known, former))
    assert first[:10] == first[10:] == again[:10]
    assert sorted(again[10:]) == sorted(again[:10])
    assert again[10:] != again[:10]


def test_held_out_pairs_come_after_all_others():
    assert [Schedule(10, seed=3).pair(Proposal(1, HELD_OUT + m)) for m in range(3)] == [10, 11, 12]
