"""How a run goes, while it goes: a bar on a terminal, lines where there is none; the first answers; a question."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Column

from bestprompt.cli.console import errors, say, words

if TYPE_CHECKING:
    from bestprompt.ledger import Entry
    from bestprompt.run.pilot import ReadAnswer

# Where nobody watches a bar move: a line after so many seconds, or after so large a share of the work.
_SECONDS, _SHARE = 20.0, 0.1
# Columns of a terminal that spinner, bar, count and time need: words give way to them where it is narrow.
_REST = 30


class _Watched:
    """What bar and lines share: the first answers, the warning, and the question whether to go on."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._scores: list[float] = []

    def _note(self, entry: Entry) -> str:
        self._scores.append(entry.score or 0.0)
        recent = self._scores[-50:]
        return f"mean of the last {len(recent)}: {sum(recent) / len(recent):.2f}"

    def pilot(self, answers: Sequence[ReadAnswer]) -> None:
        """Three of the first answers, as they were read."""
        if self._quiet or not answers:
            return
        say("the first answers, and how they were read:", "dim")
        for answer in answers:
            read = "no answer" if answer.read is None else f"“{_short(answer.read, 40)}”"
            say(f"  asked     {_short(answer.input)}", "dim")
            say(f"  answered  {_short(answer.output) or '(nothing)'}", "dim")
            say(f"  read as   {read}, expected “{_short(answer.expected, 40)}”: score {answer.score:.2f}", "dim")

    def goes_on(self, why: str) -> bool:
        """Asks whoever is there; nobody there is a no."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        say(f"Every answer so far scored 0. {why}", "yellow")
        errors.print("Spend the rest of the budget all the same? (y/N) ", end="")
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def warn(self, message: str) -> None:
        """A warning; shown even when progress is not."""
        say(f"warning: {message}", "yellow")


class ProgressBar(_Watched):
    """An observer of a run that draws a bar; use as a context manager."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(quiet)
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),  # the bar gives way first
            TextColumn("{task.fields[note]}", markup=False),
            TimeRemainingColumn(table_column=Column(no_wrap=True)),
            console=errors,
            disable=quiet,
            transient=True,
        )
        self._task: Any = None
        self._name = ""
        self._total: int | None = None

    def __enter__(self) -> ProgressBar:
        self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._bar.stop()

    def stage(self, name: str, total: int | None) -> None:
        """Begins a stage, or corrects the total of the current one; stages that share their steps share the bar."""
        name = _short(name, max(errors.width - _REST, 20))
        if self._task is not None and (name == self._name or total == self._total):
            self._bar.update(self._task, total=total, description=name)
            self._name, self._total = name, total
            return
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._name, self._total = name, total
        self._task = self._bar.add_task(name, total=total, note="")

    def advance(self, done: int) -> None:
        """Sets the position of the current stage."""
        if self._task is not None:
            self._bar.update(self._task, completed=done)

    def evaluated(self, entry: Entry) -> None:
        """One more evaluation."""
        if self._task is not None and entry.final:
            note = self._note(entry)
            room = errors.width - _REST - len(self._name)
            self._bar.update(self._task, advance=1, note=note if len(note) < room else "")

    def goes_on(self, why: str) -> bool:
        """Asks with the bar out of the way."""
        self._bar.stop()
        answer = super().goes_on(why)
        self._bar.start()
        return answer


class ProgressLines(_Watched):
    """An observer that writes a line now and then: for logs, pipes and whatever else is no terminal."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(quiet)
        self._name, self._done, self._total = "", 0, None  # type: str, int, int | None
        self._said_at, self._said = 0.0, 0

    def __enter__(self) -> ProgressLines:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def stage(self, name: str, total: int | None) -> None:
        """Says that a stage begins, once."""
        if total != self._total:
            self._done, self._said = 0, 0
        # Many requests may wait at once: of one stage that waits and goes on, a line a second is enough.
        same = re.split("[,;]", name)[0] == re.split("[,;]", self._name)[0]
        due = name != self._name and (not same or time.monotonic() - self._said_at > 1.0)
        self._name, self._total = name, total
        if due:
            self._line()

    def advance(self, done: int) -> None:
        """Sets the position of the current stage."""
        self._done = done
        self._now_and_then()

    def evaluated(self, entry: Entry) -> None:
        """One more evaluation."""
        if entry.final:
            self._done += 1
            self._now_and_then(self._note(entry))

    def _now_and_then(self, note: str = "") -> None:
        step = max((self._total or 100) * _SHARE, 1)
        if self._done - self._said >= step or time.monotonic() - self._said_at > _SECONDS:
            self._line(note)

    def _line(self, note: str = "") -> None:
        self._said_at, self._said = time.monotonic(), self._done
        if not self._quiet:
            of = f" {self._done}/{self._total}" if self._total else ""
            say(f"{self._name}{of}{f', {note}' if note else ''}")


def watching(quiet: bool) -> ProgressBar | ProgressLines:
    """The observer that fits stderr."""
    return ProgressBar(quiet) if errors.is_terminal else ProgressLines(quiet)


def _short(text: str, most: int = 100) -> str:
    line = " ".join(text.split())
    return words(line if len(line) <= most else f"{line[: most - 1]}…").plain
