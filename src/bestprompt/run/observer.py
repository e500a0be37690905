"""Who is told how a run goes."""

from __future__ import annotations

from typing import Protocol

from bestprompt.ledger import Entry, Ledger


class Observer(Protocol):
    """Is told how a run goes; the command line draws progress bars with it."""

    def stage(self, name: str, total: int | None) -> None:
        """A stage begins; ``total`` steps are expected."""
        ...

    def advance(self, done: int) -> None:
        """``done`` steps of the stage are finished."""
        ...

    def evaluated(self, entry: Entry) -> None:
        """An attempt was recorded."""
        ...

    def warn(self, message: str) -> None:
        """Something the user should know before more is spent."""
        ...


class Silent:
    """An observer that says nothing."""

    def stage(self, name: str, total: int | None) -> None: ...
    def advance(self, done: int) -> None: ...
    def evaluated(self, entry: Entry) -> None: ...
    def warn(self, message: str) -> None: ...


class EvaluationProgress:
    """Tells an observer how far the evaluations of a run are, whichever stage asks for them.

    Args:
        observer: Who is told.
        ledger: Where finished evaluations are counted.
        afterwards: Evaluations that come after the planned ones: those on held-out pairs.
    """

    def __init__(self, observer: Observer, ledger: Ledger, afterwards: int) -> None:
        self._observer, self._ledger, self._afterwards = observer, ledger, afterwards
        self._total = 0

    def planned(self, evaluations: int) -> None:
        """A plan of so many evaluations begins, or goes on."""
        self._total = evaluations + self._afterwards
        self.show("evaluating")

    def show(self, stage: str) -> None:
        """The run is now in ``stage``."""
        self._observer.stage(stage, self._total)
        self._observer.advance(sum(entry.final for entry in self._ledger.entries()))
