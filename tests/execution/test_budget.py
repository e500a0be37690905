"""A budget is never exceeded, whatever the threads do."""

from __future__ import annotations

import math
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bestprompt.errors import BudgetExhausted
from bestprompt.execution import Budget, Price, Spend
from bestprompt.types import Usage


@settings(max_examples=15, deadline=None)
@given(
    limit=st.integers(1, 300),
    needs=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), min_size=32, max_size=96),
)
def test_never_exceeded_by_32_threads(limit: int, needs: list[tuple[int, int]]) -> None:
    """Each worker reserves the most it may need, then settles for less, as evaluations do."""
    budget = Budget(Spend(calls=math.inf, tokens=limit, dollars=math.inf))
    spent: list[int] = []
    start = threading.Barrier(32)

    def work(mine: list[tuple[int, int]]) -> None:
        start.wait()
        for most, less in mine:
            try:
                budget.reserve(Spend(1, most))
            except BudgetExhausted:
                continue
            actual = min(most, less)
            spent.append(actual)
            budget.settle(Spend(1, most), Spend(1, actual))

    threads = [threading.Thread(target=work, args=(needs[i::32],)) for i in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(spent) <= limit
    assert budget.spent.tokens == sum(spent)


def test_the_last_call_that_fits_is_allowed_and_the_next_is_not() -> None:
    budget = Budget(Spend(calls=3, tokens=math.inf, dollars=math.inf))
    for _ in range(3):
        budget.reserve(Spend(calls=1))
    with pytest.raises(BudgetExhausted, match=r"4 calls; the budget is 3"):
        budget.reserve(Spend(calls=1))


def test_a_refused_reservation_sets_nothing_aside() -> None:
    budget = Budget(Spend(calls=10, tokens=100, dollars=math.inf))
    with pytest.raises(BudgetExhausted, match="tokens"):
        budget.reserve(Spend(calls=1, tokens=101))
    budget.reserve(Spend(calls=10, tokens=100))


def test_dollars_follow_the_price_table() -> None:
    price = Price(input=1.0, output=2.0)
    usage = Usage(calls=1, prompt_tokens=500_000, completion_tokens=250_000)
    assert Spend.of(usage, price) == Spend(calls=1, tokens=750_000, dollars=1.0)
    budget = Budget(Spend(calls=math.inf, tokens=math.inf, dollars=0.99))
    with pytest.raises(BudgetExhausted, match="dollars"):
        budget.reserve(Spend.of(usage, price))
