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


class Narrator:
    """Passes on what an observer is told, and shows in the name of the stage that the model is being waited for.

    Args:
        observer: Who is told.
    """

    def __init__(self, observer: Observer) -> None:
        self.advance, self.evaluated, self.warn = observer.advance, observer.evaluated, observer.warn
        self._observer = observer
        self._name, self._total = "", None  # type: str, int | None
        self._waiting, self._retries = False, 0

    def stage(self, name: str, total: int | None) -> None:
        """A stage begins."""
        self._name, self._total, self._waiting = name, total, False
        self._observer.stage(self._with_retries, total)

    def waits(self, why: str, seconds: float) -> None:
        """The model turned a request away, and is asked again after so many seconds."""
        self._waiting = True
        self._retries += 1
        self._observer.stage(f"{self._with_retries}; waiting {seconds:.0f} s: {_short(why)}", self._total)

    @property
    def _with_retries(self) -> str:
        if not self._retries:
            return self._name
        return f"{self._name}, {self._retries} {'retry' if self._retries == 1 else 'retries'}"

    def goes_on(self) -> None:
        """The model has answered."""
        if self._waiting:
            self.stage(self._name, self._total)


def _short(text: str, most: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


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
