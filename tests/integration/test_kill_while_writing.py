"""SIGKILL while a server writes a prompt for a run; then resume: nothing is paid for beyond the budget."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

BUDGET = 110
TOML = """
[task]
data = "pairs.csv"
examples = ["Repeat the word.", "Say it again."]
scorer = {{ kind = "exact" }}
max_tokens = 4
[model]
kind = "openai"
name = "m"
base_url = "{url}"
[budget]
calls = {budget}
[search]
source = "examples"
[ideas]
mode = "on"
"""


@pytest.mark.slow
def test_killed_while_a_server_writes(
    tmp_path: Path, run_in: Any, serve_requests: Any, chat_answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    over, writing = threading.Event(), threading.Event()

    def reply(_attempt: int, body: Any) -> Any:
        text = body["messages"][-1]["content"]
        if "new prompt only" in text:
            if not over.is_set():
                writing.set()
                over.wait(300)
            return 200, {}, chat_answer("Here is the new prompt:\n\nCopy out the given word exactly.")
        word = text.split()[-1]
        right = text.startswith("Copy") or int(word[4:]) % 3 > 0
        return 200, {}, chat_answer(word if right else "no")

    (tmp_path / "pairs.csv").write_text("input,output\n" + "\n".join(f"word{n},word{n}" for n in range(30)))
    run = run_in(tmp_path / "run", tmp_path)
    with serve_requests(reply) as (url, seen):
        (tmp_path / "t.toml").write_text(TOML.format(url=url, budget=BUDGET))
        run.stop(writing.is_set, signal.SIGKILL, "run", "t.toml", "-o", str(run.folder))
        over.set()
        before = run.rows("evaluation")
        assert [row[1] for row in run.rows("intent")][-1] == "idea"
        result = json.loads(run.finish("resume", str(run.folder)))
        assert len(seen) <= result["calls"] <= BUDGET
    assert run.rows("evaluation")[: len(before)] == before
    assert [tried["prompt"] for tried in result["refinement"]["tried"]] == ["Copy out the given word exactly."]
    assert result["prompt"] == "Copy out the given word exactly."
