"""What tests share that run, kill and resume real processes."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 300.0
# Tests that run as a background job inherit an ignored SIGINT; a person at a terminal does not.
LISTENING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "


def command(*arguments: str) -> list[str]:
    return [
        sys.executable,
        "-c",
        LISTENING + "from bestprompt.cli import main; main()",
        *arguments,
        "--quiet",
        "--json",
    ]


class Run:
    """A run of the command line in ``folder``, started and stopped at will."""

    def __init__(self, folder: Path, cwd: Path) -> None:
        self.folder, self._cwd = folder, cwd

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """All that the ledger records there, times included, in the order in which it was written."""
        db = sqlite3.connect(f"{(self.folder / 'ledger.db').as_uri()}?mode=ro", uri=True)
        try:
            return db.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall()
        finally:
            db.close()

    def finish(self, *arguments: str) -> str:
        """Runs to the end; what was printed."""
        done = subprocess.run(command(*arguments), cwd=self._cwd, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def stop(self, when: Callable[[], bool], how: signal.Signals, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Starts the command and sends it a signal as soon as the ledger says so."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command(*arguments), cwd=self._cwd, **pipes)
        try:
            self._wait(when, process)
            os.kill(process.pid, how)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
            process.wait()
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def _wait(self, when: Callable[[], bool], process: subprocess.Popen[Any]) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            assert process.poll() is None, "the run ended before it could be stopped"
            try:
                if (self.folder / "ledger.db").exists() and when():
                    return
            except sqlite3.OperationalError:
                pass  # the tables are being made this very moment
            time.sleep(0.01)
        pytest.fail(f"the run did not get that far in {PATIENCE:.0f} seconds")


@pytest.fixture
def run_in() -> type[Run]:
    """``run_in(folder, cwd)``: a run that can be stopped and resumed."""
    return Run
