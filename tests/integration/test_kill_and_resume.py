"""SIGKILL at any moment, then resume: the ledger ends as if nothing had happened. Real model, real processes."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BUDGET = 48
COLUMNS = (
    "candidate, replication, attempt, pair, request, status, output, extracted, score, prompt_tokens, completion_tokens"
)


# Tests that run as a background job inherit an ignored SIGINT; a person at a terminal does not.
LISTENING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", LISTENING + "from bestprompt.cli import main; main()", *arguments]


def rows(folder: Path) -> list[tuple[Any, ...]]:
    db = sqlite3.connect(f"{(folder / 'ledger.db').as_uri()}?mode=ro", uri=True)
    try:
        return db.execute(f"SELECT {COLUMNS} FROM evaluation ORDER BY candidate, replication, attempt").fetchall()
    finally:
        db.close()


def start(folder: Path) -> list[str]:
    return command("run", "first-letter", "--examples-only", "-b", str(BUDGET), "--quiet", "--json", "-o", str(folder))


@pytest.fixture(scope="module")
def uninterrupted(
    tmp_path_factory: pytest.TempPathFactory, without_paths: Callable[[str], str]
) -> tuple[list[tuple[Any, ...]], str]:
    folder = tmp_path_factory.mktemp("whole") / "run"
    done = subprocess.run(start(folder), capture_output=True, text=True, check=True)
    return rows(folder), without_paths(done.stdout)


@pytest.mark.parametrize("evaluations_before_kill", [0, 9, 25, 40])
def test_killed_and_resumed_equals_uninterrupted(
    tmp_path: Path,
    uninterrupted: tuple[list[tuple[Any, ...]], str],
    evaluations_before_kill: int,
    wait_for: Callable[..., None],
    without_paths: Callable[[str], str],
) -> None:
    folder = tmp_path / "run"
    process = subprocess.Popen(start(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(folder, rows, evaluations_before_kill, process)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.wait()
    killed_at = len(rows(folder))
    assert killed_at < BUDGET, "killed too late to show anything"
    resumed = subprocess.run(
        command("resume", str(folder), "--quiet", "--json"), capture_output=True, text=True, check=True
    )
    expected_rows, expected_result = uninterrupted
    assert rows(folder) == expected_rows
    assert without_paths(resumed.stdout) == expected_result


def test_ctrl_c_ends_cleanly_and_says_how_to_continue(tmp_path: Path, wait_for: Callable[..., None]) -> None:
    folder = tmp_path / "run"
    process = subprocess.Popen(start(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(folder, rows, 9, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert f"bestprompt resume {folder}" in " ".join(said.split())
    assert "Traceback" not in said
    assert 9 <= len(rows(folder)) < BUDGET
