"""One Ctrl-C ends a run though the server it waits for does not answer; what may have been billed is on record."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.slow
def test_once_is_enough(
    tmp_path: Path, run_in: Any, serve: Any, chat_answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    over = threading.Event()

    def reply(attempt: int) -> Any:
        if attempt >= 4:
            over.wait(600)
        return 200, {}, chat_answer("x")

    (tmp_path / "pairs.csv").write_text("input,output\n" + "\n".join(f"w{n},w{n}" for n in range(9)))
    run = run_in(tmp_path / "run", tmp_path)
    with serve(reply) as (url, seen):
        (tmp_path / "t.toml").write_text(
            '[task]\ndata = "pairs.csv"\nexamples = ["Repeat.", "Echo."]\n'
            f'[model]\nkind = "openai"\nname = "m"\nbase_url = "{url}"\ntimeout = 500\nconcurrency = 8\n'
            "[budget]\ncalls = 18\n[selection]\nbatch = 8\n"
        )
        stopped = run.stop(lambda: len(seen) >= 8, signal.SIGINT, "run", "t.toml", "-o", str(run.folder))
        over.set()
    assert stopped.returncode == 130
    assert "Traceback" not in stopped.stderr
    rows = run.rows("evaluation")
    # An intent whose request had not left yet has an outcome like the others.
    assert len(rows) == len(run.rows("intent")) >= len(seen)
    assert len([row for row in rows if "when the run was stopped" in str(row)]) >= 4
