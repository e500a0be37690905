"""SIGKILL while a run looks beyond its set, on the real model and the real autoencoder; then resume."""

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

BUDGET, ADDITIONAL = 44, 18
TOML = f"""
[task]
name = "counting-objects"
examples = ["Find the sum of the quantities.", "What is the total?", "How many objects do I have in total?"]
[budget]
calls = {BUDGET}
[refinement]
mode = "m-ucb-r"
additional = {ADDITIONAL}
"""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from bestprompt.cli import main; main()", *arguments, "--quiet", "--json"]


def record(folder: Path) -> tuple[list[Any], list[Any], list[Any]]:
    """Evaluations, candidates and looks, without the times at which they were made."""
    db = sqlite3.connect(f"{(folder / 'ledger.db').as_uri()}?mode=ro", uri=True)
    try:
        columns = "candidate, replication, attempt, pair, request, status, output, score, prompt_tokens"
        return (
            db.execute(f"SELECT {columns} FROM evaluation ORDER BY candidate, replication, attempt").fetchall(),
            db.execute("SELECT n, prompt, source, parent, z, x FROM candidate ORDER BY n").fetchall(),
            db.execute("SELECT payload FROM event WHERE kind = 'look' ORDER BY id").fetchall(),
        )
    finally:
        db.close()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "bestprompt.toml").write_text(TOML)
    return folder


@pytest.fixture(scope="module")
def uninterrupted(project: Path, without_paths: Callable[[str], str]) -> tuple[Any, str]:
    done = subprocess.run(
        command("run", "bestprompt.toml", "-o", "whole"), cwd=project, capture_output=True, text=True, check=True
    )
    return record(project / "whole"), without_paths(done.stdout)


@pytest.mark.parametrize("looks_before_kill", [2])
def test_killed_while_refining_and_resumed_equals_uninterrupted(
    project: Path,
    uninterrupted: tuple[Any, str],
    looks_before_kill: int,
    wait_for: Callable[..., None],
    without_paths: Callable[[str], str],
) -> None:
    expected, result = uninterrupted
    assert len(expected[2]) > looks_before_kill, "too few looks to be killed between two of them"
    folder = project / f"killed-{looks_before_kill}"
    process = subprocess.Popen(
        command("run", "bestprompt.toml", "-o", str(folder)),
        cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_for(folder, lambda run: record(run)[2], looks_before_kill, process)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.wait()
    killed_at = record(folder)
    assert len(killed_at[0]) < BUDGET, "killed too late to show anything"
    resumed = subprocess.run(command("resume", str(folder)), cwd=project, capture_output=True, text=True, check=True)
    assert record(folder) == expected
    assert without_paths(resumed.stdout) == result
    assert len(expected[0]) == BUDGET
