"""When the loop asks again: after every answer of a batch, or as soon as any answer is there.

In lock-step a batch is asked for, evaluated and told as a whole: what is asked depends on the answers and on nothing
else, so a run is the same however fast they came. A batch takes as long as its slowest answer. Asynchronously a fixed
number of evaluations is under way; each round tells those that have come back and asks for as many others, in the
knowledge of what is still pending. What was told together is on the record, and replayed from there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from threadpoolctl import threadpool_limits

from bestprompt.errors import BudgetExhausted
from bestprompt.types import Observation, Proposal


class Evaluations(Protocol):
    """Turns proposals into observations."""

    def evaluate(self, proposals: Sequence[Proposal]) -> list[Observation]:
        """All of them, or ``BudgetExhausted`` after those that could be had."""
        ...

    def arrivals(self, pending: Collection[Proposal]) -> list[Observation]:
        """Those of the ``pending`` that are there, at least one, or ``BudgetExhausted`` if none can be had."""
        ...

    def recorded(self, proposals: Sequence[Proposal]) -> list[Observation]:
        """Those that can be had for nothing."""
        ...

    def rounds(self) -> Iterable[Sequence[Proposal]]:
        """What was told together, by the record, where a run went on asynchronously."""
        ...

    def admit(self, prompt: str) -> None:
        """One more candidate may be proposed from now on."""
        ...

    def close(self) -> None:
        """Nothing more will be asked for."""
        ...


class AskingPace(Protocol):
    """How proposals are exchanged for observations."""

    @property
    def pending(self) -> Collection[Proposal]:
        """Asked for and not told yet."""
        ...

    def room(self, batch: int) -> int:
        """How many evaluations to ask for now, where ``batch`` are proposed at a time."""
        ...

    def exchange(self, proposals: Sequence[Proposal]) -> tuple[list[Observation], bool]:
        """Has ``proposals`` evaluated; what is to be told now, and whether the budget has ended."""
        ...


class LockStep:
    """All that was asked for is told together."""

    def __init__(self, evaluations: Evaluations) -> None:
        self._evaluations = evaluations
        self.pending: Collection[Proposal] = ()

    def room(self, batch: int) -> int:
        """The batch."""
        return batch

    def exchange(self, proposals: Sequence[Proposal]) -> tuple[list[Observation], bool]:
        """Nothing to evaluate, or not everything, means that the budget has ended."""
        try:
            return self._evaluations.evaluate(proposals), not proposals
        except BudgetExhausted:
            return self._evaluations.recorded(proposals), True


class Asynchronous:
    """What has come back is told, while the rest is under way.

    Args:
        evaluations: Where observations come from.
        in_flight: Evaluations at the model. A quarter more is asked for ahead: no place there should wait for ``ask``.
    """

    def __init__(self, evaluations: Evaluations, in_flight: int) -> None:
        self._evaluations, self._most = evaluations, in_flight + in_flight // 4
        self._rounds = deque(evaluations.rounds())
        self._pending: dict[Proposal, None] = {}

    @property
    def pending(self) -> Collection[Proposal]:
        """In the order in which they were asked for."""
        return self._pending.keys()

    def room(self, batch: int) -> int:
        """As many as have come back."""
        return max(self._most - len(self._pending), 0)

    def exchange(self, proposals: Sequence[Proposal]) -> tuple[list[Observation], bool]:
        """The recorded rounds first, then what arrives."""
        self._pending |= dict.fromkeys(proposals)
        if not self._pending:
            return [], True
        try:
            told = self._told()
        except BudgetExhausted:
            self._pending.clear()
            return [], True
        for each in told:
            self._pending.pop(Proposal(each.candidate, each.replication), None)
        return told, False

    def _told(self) -> list[Observation]:
        if self._rounds:
            return self._evaluations.recorded(self._rounds.popleft())
        return self._evaluations.arrivals(tuple(self._pending))


def pace_of(evaluations: Evaluations, in_flight: int | None) -> AskingPace:
    """Asynchronous with so many evaluations ``in_flight``; in lock-step if left out."""
    return LockStep(evaluations) if in_flight is None else Asynchronous(evaluations, in_flight)


def quiet_arithmetic(in_flight: int | None) -> AbstractContextManager[object]:
    """Holds linear algebra to one thread while it lasts, where evaluations are ``in_flight`` beside it.

    Further threads of a BLAS wait for work by spinning, and the matrices between two answers are small: they
    take the cores from those who send requests, and cost more than all the rest of an evaluation.
    """
    return nullcontext() if in_flight is None else threadpool_limits(1, "blas")
