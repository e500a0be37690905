"""The runs in a folder: which there are, how far each is, and what is to be seen of one."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bestprompt.errors import BestPromptError, LedgerError
from bestprompt.execution import spent
from bestprompt.ledger import PLANNED, Ledger, being_written, holds_a_run
from bestprompt.report.contents import contents, live_contents
from bestprompt.run import standing
from bestprompt.ui.processes import Processes

NAME = re.compile(r"[\w][\w.-]{0,99}", re.ASCII)
KEPT = 16  # finished runs whose contents are kept in memory


@dataclass(frozen=True, slots=True)
class RunState:
    """One run in a line.

    Attributes:
        name: Of its folder.
        task: What was asked.
        model: Who answered.
        state: ``running``, ``finished``, ``stopped``, ``starting``, ``failed`` or ``damaged``.
        answered: Evaluations made.
        planned: Evaluations that its budget allows, where that is known.
        calls: Calls made.
        dollars: What they cost.
        note: What went wrong, if something did.
        own: Whether it was started here, so that it can be stopped here.
    """

    name: str
    task: str = "?"
    model: str = "?"
    state: str = "starting"
    answered: int = 0
    planned: int | None = None
    calls: int = 0
    dollars: float = 0.0
    note: str = ""
    own: bool = False


class Runs:
    """The runs of one folder.

    Args:
        folder: Where they are.
        processes: Those that were started here.
    """

    def __init__(self, folder: Path, processes: Processes) -> None:
        self.folder, self._processes = folder, processes
        self._kept: OrderedDict[tuple[str, tuple[int, int]], dict[str, Any]] = OrderedDict()
        self._mutex = threading.Lock()

    def path(self, name: str) -> Path:
        """The folder of a run.

        Raises:
            LedgerError: That is no name of a run.
        """
        if not NAME.fullmatch(name):
            raise LedgerError("There is no such run.")
        return self.folder / name

    def all(self) -> list[RunState]:
        """Every run, the latest first."""
        found = sorted(self.folder.glob("*/ledger.db"), key=lambda path: -path.stat().st_mtime)
        return [self.state(path.parent.name) for path in found if NAME.fullmatch(path.parent.name)]

    def state(self, name: str) -> RunState:
        """How far a run is; a record that cannot be read is a state, too.

        Raises:
            LedgerError: There is no such run, and none was started.
        """
        path, own = self.path(name), self._processes.running(name)
        failed = self._processes.last_words(name) if self._processes.failed(name) else ""
        if not holds_a_run(path):
            if not own and not failed:
                raise LedgerError("There is no such run.")
            return RunState(name, state="starting" if own else "failed", note=failed, own=own)
        try:
            with Ledger.read(path) as ledger:
                facts, used, done = ledger.facts(), spent(ledger), ledger.finished() is not None
                answered = sum(entry.final for entry in ledger.entries())
                planned = [payload["evaluations"] for payload in ledger.payloads(PLANNED)]
        except (BestPromptError, sqlite3.Error, ValueError, KeyError, TypeError) as error:
            return RunState(name, state="damaged", note=str(error))
        active = own or being_written(path)
        state = "running" if active else "finished" if done else "failed" if failed else "stopped"
        return RunState(
            name, facts.get("task", "?"), facts.get("lm", "?"), state, answered, planned[-1] if planned else None,
            int(used.calls), used.dollars, failed, own,
        )  # fmt: skip

    def mark(self, name: str) -> tuple[int, int]:
        """Grows with everything that is recorded: answers, and events."""
        path = self.path(name)
        if not holds_a_run(path):
            return (0, 0)
        with Ledger.read(path) as ledger:
            return ledger.size()

    def live(self, name: str) -> dict[str, Any]:
        """What is to be seen while a run goes on."""
        if not holds_a_run(self.path(name)):
            return {"rows": [], "answered": 0, "planned": None}
        with Ledger.read(self.path(name)) as ledger:
            return live_contents(ledger)

    def ended(self, name: str) -> dict[str, Any]:
        """What is to be seen of a run that has ended or was stopped, by the run's own belief; made once."""
        key = (name, self.mark(name))
        with self._mutex:
            if key not in self._kept:
                with Ledger.read(self.path(name)) as ledger:
                    self._kept[key] = contents(ledger, standing(ledger))
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            return self._kept[key]
