"""SIGKILL while a run looks beyond its set, on the real model and the real autoencoder; then resume."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

BUDGET, ADDITIONAL, LOOKS = 44, 18, 2
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


@pytest.mark.slow
def test_killed_while_refining_and_resumed(tmp_path: Path, run_in: Any) -> None:
    (tmp_path / "bestprompt.toml").write_text(TOML)
    run = run_in(tmp_path / "run", tmp_path)

    def looks() -> list[tuple[Any, ...]]:
        return [row for row in run.rows("event") if row[1] == "look"]

    run.stop(lambda: len(looks()) >= LOOKS, signal.SIGKILL, "run", "bestprompt.toml", "-o", str(run.folder))
    killed = {table: run.rows(table) for table in ("evaluation", "candidate", "event")}
    assert len(killed["evaluation"]) < BUDGET, "killed too late to show anything"

    result = json.loads(run.finish("resume", str(run.folder)))
    for table, rows in killed.items():
        assert run.rows(table)[: len(rows)] == rows, table
    assert len(looks()) > LOOKS
    evaluations = run.rows("evaluation")
    assert len(evaluations) == BUDGET == result["calls"]
    assert len({(row[1], row[2]) for row in evaluations}) == BUDGET
