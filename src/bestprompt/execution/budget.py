"""A budget that refuses before spending.

Every evaluation reserves the most it may need before it is sent and settles for what it did use afterwards, so that
``spent + reserved`` never passes a limit, whatever the number of threads.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

from bestprompt.errors import BudgetExhausted
from bestprompt.ledger import WRITTEN, Ledger
from bestprompt.types import Usage


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens."""

    input: float = 0.0
    output: float = 0.0

    def dollars(self, usage: Usage) -> float:
        """What ``usage`` costs."""
        return (self.input * usage.prompt_tokens + self.output * usage.completion_tokens) / 1e6


@dataclass(frozen=True, slots=True)
class Spend:
    """Calls, tokens and dollars; also used for limits, where ``inf`` means none."""

    calls: float = 0.0
    tokens: float = 0.0
    dollars: float = 0.0

    @classmethod
    def of(cls, usage: Usage, price: Price) -> Spend:
        """``usage`` at ``price``."""
        return cls(usage.calls, usage.tokens, price.dollars(usage))

    def __add__(self, other: Spend) -> Spend:
        return Spend(self.calls + other.calls, self.tokens + other.tokens, self.dollars + other.dollars)

    def __sub__(self, other: Spend) -> Spend:
        return Spend(self.calls - other.calls, self.tokens - other.tokens, self.dollars - other.dollars)


UNLIMITED = Spend(math.inf, math.inf, math.inf)


def spent_writing(ledger: Ledger) -> Spend:
    """What the calls that were to write candidates used, before the run and while it went on, by the record."""
    return _written(ledger, idea=False) + spent_on_ideas(ledger)


def spent_on_ideas(ledger: Ledger) -> Spend:
    """The part of it that was used while the run went on."""
    return _written(ledger, idea=True)


def _written(ledger: Ledger, idea: bool) -> Spend:
    recorded = (Spend(**p["spend"]) for p in ledger.payloads(WRITTEN) if p.get("idea", False) == idea)
    return sum(recorded, _lost(ledger, "idea" if idea else "writing"))


def spent(ledger: Ledger) -> Spend:
    """What a run has used, by its record: evaluations and written candidates, failed attempts included.

    Requests of which nobody knows how they ended may have been billed, so they count at their worst case.
    """
    evaluations = (Spend(*charged) for charged in ledger.charged())
    return sum(evaluations, spent_writing(ledger) + _lost(ledger, "evaluation"))


def _lost(ledger: Ledger, purpose: str) -> Spend:
    lost = (i for i in ledger.open_intents() if i.purpose == purpose)
    return sum((Spend(i.calls, i.tokens, i.dollars) for i in lost), Spend())


class Budget:
    """Counts what was spent and what is under way. Thread-safe."""

    def __init__(self, limits: Spend) -> None:
        self.limits = limits
        self._mutex = threading.Lock()
        self._spent, self._reserved = Spend(), Spend()

    @property
    def spent(self) -> Spend:
        """What settled evaluations used."""
        with self._mutex:
            return self._spent

    def reserve(self, most: Spend) -> None:
        """Sets ``most`` aside.

        Raises:
            BudgetExhausted: If it does not fit beside what is spent and reserved; nothing is set aside then.
        """
        with self._mutex:
            total = self._spent + self._reserved + most
            for name in ("calls", "tokens", "dollars"):
                # The tolerance forgives rounding in sums of dollars, not a call: one call is far above it.
                if getattr(total, name) > getattr(self.limits, name) * (1 + 1e-12):
                    raise BudgetExhausted(
                        f"The next evaluation could bring the run to {getattr(total, name):g} {name}; "
                        f"the budget is {getattr(self.limits, name):g}."
                    )
            self._reserved = self._reserved + most

    def settle(self, reserved: Spend, actual: Spend) -> None:
        """Turns a reservation into what was really used."""
        with self._mutex:
            self._reserved = self._reserved - reserved
            self._spent = self._spent + actual
