"""Stopped at any moment, then resumed: what was recorded stands and is not asked again. Real model, real processes.

What comes after the stop may differ in near-ties from what an uninterrupted run would have asked; that a run on a model
of fixed answers ends the same is tested with such a model.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

BUDGET = 64


@pytest.mark.slow
def test_interrupted_killed_and_resumed(tmp_path: Path, run_in: Any) -> None:
    run = run_in(tmp_path / "run", tmp_path)
    resume = ("resume", str(run.folder))

    def recorded() -> int:
        return len(run.rows("evaluation"))

    start = ("run", "first-letter", "--examples-only", "-b", str(BUDGET), "--spend-all", "-o", str(run.folder))
    run.stop(lambda: recorded() >= 0, signal.SIGKILL, *start)
    assert recorded() < BUDGET

    # Ctrl-C while answers are being written.
    interrupted = run.stop(lambda: recorded() > 0, signal.SIGINT, *resume)
    assert interrupted.returncode == 130
    assert f"bestprompt resume {run.folder}" in " ".join(interrupted.stderr.split())
    assert "Traceback" not in interrupted.stderr
    after_ctrl_c = run.rows("evaluation")
    assert 0 < len(after_ctrl_c) < BUDGET

    run.stop(lambda: recorded() > len(after_ctrl_c), signal.SIGKILL, *resume)
    after_kill = run.rows("evaluation")
    assert after_kill[: len(after_ctrl_c)] == after_ctrl_c
    assert len(after_ctrl_c) < len(after_kill) < BUDGET

    result = json.loads(run.finish(*resume))
    finished = run.rows("evaluation")
    assert finished[: len(after_kill)] == after_kill
    assert len(finished) == BUDGET
    assert result["calls"] == BUDGET
    assert len({(row[1], row[2]) for row in finished}) == BUDGET  # no candidate asked twice at one replication
