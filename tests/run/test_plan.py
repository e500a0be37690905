"""The plan of a run: what is recorded is read, what is missing is estimated once, and a reader estimates nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bestprompt.errors import ConfigError
from bestprompt.execution import Spend
from bestprompt.ledger import EXTENDED, PLANNED, Ledger
from bestprompt.run.plan import Plan, planned_evaluations
from bestprompt.run.settings import Settings
from bestprompt.selection import Selector, SelectorConfig

STATE = Selector(np.zeros((2, 1)), SelectorConfig(budget=4)).initial()


def record(folder: Path, calls: int = 40, *further: int) -> Ledger:
    settings = Settings.model_validate({"budget": {"calls": calls}})
    ledger = Ledger.create(folder, {"settings": settings.model_dump(mode="json")})
    for more in further:
        ledger.event(EXTENDED, calls=more, tokens=None, dollars=None)
    return ledger


def by_calls(limits: Spend, _state: object) -> int:
    return int(limits.calls)


def carried_out(plan: Plan) -> list[int]:
    return [plan.before_pilot(), *(plan.within(budget, STATE) for budget in plan.budgets)]


def test_each_budget_is_planned_once_and_then_read(tmp_path: Path) -> None:
    told: list[int] = []
    with record(tmp_path, 40, 70) as ledger:
        assert carried_out(Plan.live(ledger, by_calls, told.append)) == told == [40, 40, 70]
        assert [payload["evaluations"] for payload in ledger.payloads(PLANNED)] == [40, 40, 70]

        def never(limits: Spend, state: object) -> int:
            raise AssertionError("all of this is recorded")

        assert carried_out(Plan.live(ledger, never, told.append)) == [40, 40, 70]
        assert len(ledger.payloads(PLANNED)) == 3


def test_an_extension_is_planned_after_what_is_recorded(tmp_path: Path) -> None:
    with record(tmp_path) as ledger:
        carried_out(Plan.live(ledger, lambda limits, state: 30, lambda _: None))
        ledger.event(EXTENDED, calls=90, tokens=None, dollars=None)
        assert carried_out(Plan.replayed(ledger)) == [30, 30], "a reader stops where the record does"
        assert carried_out(Plan.live(ledger, by_calls, lambda _: None)) == [30, 30, 90]
        assert carried_out(Plan.replayed(ledger)) == [30, 30, 90]


def test_a_run_that_broke_off_in_its_pilot_is_read_by_the_plan_it_had(tmp_path: Path) -> None:
    with record(tmp_path, 40, 80) as ledger:
        Plan.live(ledger, by_calls, lambda _: None).before_pilot()
        assert carried_out(Plan.replayed(ledger)) == [40, 40]


@pytest.mark.parametrize(
    ("limits", "each", "expected"),
    [
        (Spend(100, float("inf"), float("inf")), Spend(2, 50, 0.1), 50),
        (Spend(100, 1000, float("inf")), Spend(2, 50, 0.1), 20),
        (Spend(100, 1000, 0.55), Spend(2, 50, 0.1), 5),
    ],
)
def test_the_tightest_limit_decides(limits: Spend, each: Spend, expected: int) -> None:
    assert planned_evaluations(limits, each) == expected


def test_a_budget_that_nothing_can_reach_is_refused() -> None:
    with pytest.raises(ConfigError, match="no limit"):
        planned_evaluations(Spend(float("inf"), float("inf"), 1.0), Spend(1, 10, 0.0))
