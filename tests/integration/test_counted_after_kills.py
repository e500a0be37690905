"""SIGKILL again and again: what a real server worked on stays within the budget; nothing recorded is asked again."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

BUDGET, KILLS = 60, 2
TOML = """
[task]
data = "pairs.csv"
examples = ["Repeat the word.", "Say it again.", "Echo."]
scorer = {{ kind = "exact" }}
max_tokens = 4
[model]
kind = "openai"
name = "m"
base_url = "{url}"
concurrency = {concurrency}
[budget]
calls = {budget}
[selection]
stop_gain = 0.0
"""


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 8])
def test_killed_again_and_again(
    tmp_path: Path, run_in: Any, serve_requests: Any, chat_answer: Any, concurrency: int
) -> None:
    asked: Counter[str] = Counter()

    def reply(_attempt: int, body: Any) -> Any:
        text = body["messages"][-1]["content"]
        asked[text] += 1
        time.sleep(0.1)
        return 200, {}, chat_answer(text.split()[-1])

    words = "\n".join(f"word{n},word{n}" for n in range(40))
    (tmp_path / "pairs.csv").write_text(f"input,output\n{words}\n")
    run = run_in(tmp_path / "run", tmp_path)
    with serve_requests(reply) as (url, seen):
        toml = TOML.format(url=url, concurrency=concurrency, budget=BUDGET)
        (tmp_path / "bestprompt.toml").write_text(toml)
        start: tuple[str, ...] = ("run", "bestprompt.toml", "-o", str(run.folder))
        for kill in range(KILLS):
            goal = len(seen) + 5 + kill
            run.stop(lambda goal=goal: len(seen) >= goal, signal.SIGKILL, *start)
            start = ("resume", str(run.folder))
        recorded = run.rows("evaluation")
        result = json.loads(run.finish(*start))
    finished = run.rows("evaluation")
    lost = len(run.rows("intent")) - len(run.rows("outcome"))
    assert len(seen) <= result["calls"] == BUDGET
    assert 1 <= lost <= KILLS * concurrency
    assert len(finished) == BUDGET - lost
    assert finished[: len(recorded)] == recorded
    # What was asked twice was lost the first time; what is recorded was not asked again.
    assert sum(asked.values()) - len(asked) <= lost
