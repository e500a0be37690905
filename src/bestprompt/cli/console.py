"""What the terminal shows: progress, the winner, the leaderboard. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from bestprompt.ledger import Entry
    from bestprompt.run import Recommendation

output = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


def inert(text: object) -> str:
    """``text`` with its control characters spelt out, so that none of them acts on the terminal."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda found: f"\\x{ord(found[0]):02x}", str(text))


def words(text: object, style: str = "") -> Text:
    """A text from outside: nothing in it is markup, and nothing acts on the terminal."""
    return Text(inert(text), style=style)


def never_fail_to_print() -> None:
    """What the encoding of the terminal lacks is printed escaped."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


class ProgressBar:
    """An observer of a run that draws a bar; use as a context manager."""

    def __init__(self, quiet: bool = False) -> None:
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            TimeRemainingColumn(),
            console=errors,
            disable=quiet,
            transient=True,
        )
        self._task: Any = None
        self._name = ""
        self._total: int | None = None
        self._scores: list[float] = []

    def __enter__(self) -> ProgressBar:
        self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._bar.stop()

    def stage(self, name: str, total: int | None) -> None:
        """Begins a stage, or corrects the total of the current one; stages that share their steps share the bar."""
        name = inert(name)
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
        if self._task is None or not entry.final:
            return
        self._scores.append(entry.score or 0.0)
        recent = self._scores[-50:]
        self._bar.update(self._task, advance=1, note=f"mean of the last {len(recent)}: {sum(recent) / len(recent):.2f}")

    def warn(self, message: str) -> None:
        """A warning above the bar; shown even when the bar is not."""
        self._bar.console.print(words(f"warning: {message}", style="yellow"), soft_wrap=True)


def show_recommendation(recommendation: Recommendation, title: str, most: int = 10) -> None:
    """The winner, how sure it is, and the leaderboard."""
    low, high = recommendation.interval
    output.print(
        Panel(
            words(recommendation.prompt),
            title=words(f"best prompt for {title}", style="bold"),
            subtitle=f"score {recommendation.score:.3f}   95 % {low:.3f} to {high:.3f}   "
            f"best with probability {recommendation.probability_best:.2f}",
            border_style="cyan",
            padding=(1, 2),
        )
    )
    output.print(words(recommendation.verdict), soft_wrap=True)
    output.print(words(recommendation.outlook, style="dim"), soft_wrap=True)
    if recommendation.shortfall:
        output.print(words(recommendation.shortfall, style="yellow"), soft_wrap=True)
    output.print(show_leaderboard(recommendation, most))


def show_leaderboard(recommendation: Recommendation, most: int) -> Table:
    """The first ``most`` rows as a table; a star marks what is tied with the winner."""
    from bestprompt.report import leaderboard

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name, justify in (("#", "right"), ("", "left"), ("score", "right"), ("95 %", "right"), ("evals", "right")):
        table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("prompt", overflow="fold")
    for row in leaderboard(recommendation)[:most]:
        interval = f"{row.low:.2f}–{row.high:.2f}"
        mark = "★" if row.tied else ""
        table.add_row(str(row.rank), mark, f"{row.estimate:.3f}", interval, str(row.evaluations), words(row.prompt))
    return table


def print_json(value: Any) -> None:
    """Machine-readable output, nothing else."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    # JSON leaves these as they are; to a terminal they are commands.
    print(re.sub(r"[\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", text))
