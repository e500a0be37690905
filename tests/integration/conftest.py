"""What tests share that run, kill and resume real processes."""

from __future__ import annotations

import sqlite3
import subprocess
import time
from collections.abc import Callable, Sized
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 300.0


@pytest.fixture
def wait_for() -> Callable[[Path, Callable[[Path], Sized], int, subprocess.Popen[Any]], None]:
    """``wait_for(folder, rows, n, process)``: until ``rows(folder)`` of the process's ledger are at least ``n``."""

    def wait(folder: Path, rows: Callable[[Path], Sized], n: int, process: subprocess.Popen[Any]) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            assert process.poll() is None, "the run ended before it could be killed"
            try:
                if (folder / "ledger.db").exists() and len(rows(folder)) >= n:
                    return
            except sqlite3.OperationalError:
                pass  # the tables are being made this very moment
            time.sleep(0.01)
        pytest.fail(f"the run did not get that far in {PATIENCE:.0f} seconds")

    return wait


@pytest.fixture(scope="session")
def without_paths() -> Callable[[str], str]:
    """A printed result without the lines that name its folder."""

    def strip(result: str) -> str:
        return "\n".join(line for line in result.splitlines() if '"run"' not in line and '"report"' not in line)

    return strip
