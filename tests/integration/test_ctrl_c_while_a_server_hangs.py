"""One Ctrl-C ends a run though the server it waits for does not answer; what may have been billed is on record."""

from __future__ import annotations

import signal
import subprocess
import sys
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


# Raises what Ctrl-C raises at the worst moment: a request is under way, and who sent it has not noted that yet.
INTERRUPTED = """
import time
from concurrent.futures import ThreadPoolExecutor
send = ThreadPoolExecutor.submit
def submit(pool, work, *given):
    send(pool, work, *given)
    if "evaluat" in work.__module__ or "in_flight" in work.__module__:
        time.sleep(1.0)
        raise KeyboardInterrupt
ThreadPoolExecutor.submit = submit
from bestprompt.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("pace", ["batch = 8", "in_flight = 8"])
def test_at_any_moment(
    tmp_path: Path, serve: Any, chat_answer: Any, monkeypatch: pytest.MonkeyPatch, pace: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    over = threading.Event()

    def reply(attempt: int) -> Any:
        over.wait(600)
        return 200, {}, chat_answer("x")

    (tmp_path / "pairs.csv").write_text("input,output\n" + "\n".join(f"w{n},w{n}" for n in range(9)))
    with serve(reply) as (url, seen):
        (tmp_path / "t.toml").write_text(
            '[task]\ndata = "pairs.csv"\nexamples = ["Repeat.", "Echo."]\n'
            f'[model]\nkind = "openai"\nname = "m"\nbase_url = "{url}"\ntimeout = 500\nconcurrency = 8\n'
            f"[budget]\ncalls = 18\n[selection]\n{pace}\n"
        )
        command = [sys.executable, "-c", INTERRUPTED, "run", "t.toml", "-o", "run", "--quiet", "--json"]
        stopped = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        over.set()
    assert len(seen) == 1
    assert stopped.returncode == 130
    assert "Traceback" not in stopped.stderr
