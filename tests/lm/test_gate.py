"""Fewer requests at once after some were turned away, none while a server is down, and all of it is told."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
from bestprompt.errors import LMError
from bestprompt.lm import gate as gate_module
from bestprompt.lm import openai, patience
from bestprompt.lm.gate import BROKEN, Gate, Shut
from bestprompt.lm.limits import slower
from bestprompt.lm.patience import Patience
from bestprompt.run.settings import load_settings
from bestprompt.types import Completion, Usage

AWAY = LMError("429 too many", usage=Usage())


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(gate_module, "_LOOK", 0.01)


def ask(gate: Gate, answer: Completion | LMError) -> None:
    with gate.place() as began:
        gate.learn(answer, began)


def test_a_rejection_halves_and_answers_add_one_by_one() -> None:
    gate = Gate(64, Patience(4))
    ask(gate, AWAY)
    assert gate.limit == 32
    ask(gate, AWAY)
    assert gate.limit == 16
    gate._there = 15  # all places taken: only then do answers show that there could be more
    for _ in range(17):
        ask(gate, Completion("a"))
    assert gate.limit == 17
    gate._there = 0
    for _ in range(100):
        ask(gate, Completion("a"))
    assert gate.limit == 17


def test_a_burst_of_rejections_counts_once() -> None:
    gate = Gate(64, Patience(4))
    with gate.place() as first, gate.place() as second:
        gate.learn(AWAY, first)
        gate.learn(AWAY, second)
    assert gate.limit == 32


def test_timeouts_are_no_rejections() -> None:
    gate = Gate(8, Patience(4))
    for _ in range(20):
        ask(gate, LMError("timed out, perhaps billed"))
    assert gate.limit == 8


def test_a_server_that_is_down_is_left_alone_then_probed_then_used_again() -> None:
    heard: list[tuple[str, float | None]] = []
    waits = Patience(4)
    gate = Gate(64, waits)
    with waits.heard_by(lambda error, seconds: heard.append((str(error), seconds))):
        for _ in range(BROKEN):
            ask(gate, AWAY)
        assert gate.limit == 1
        assert "paused" in heard[-1][0]
        assert heard[-1][1] is not None
        began = time.monotonic()
        ask(gate, Completion("a"))  # let in when the pause is over
        assert time.monotonic() - began >= 0.9 * heard[-1][1]
        assert gate.limit == 32


def test_one_that_stays_down_is_given_up_for_all_and_may_be_tried_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "_TOLD", 0.2)
    gate = Gate(8, Patience(2))
    for _ in range(BROKEN + 2):
        ask(gate, AWAY)
    with pytest.raises(Shut, match="429"):
        ask(gate, AWAY)
    time.sleep(0.25)
    ask(gate, Completion("a"))
    assert gate.limit == 4


def test_a_server_that_takes_four_at_once_is_sent_fewer(serve_requests: Any, chat_answer: Any, tmp_path: Path) -> None:
    there, rejected, lock = [0], [0], threading.Lock()

    def reply(_attempt: int, body: Any) -> Any:
        with lock:
            if there[0] >= 4:
                rejected[0] += 1
                return 429, {"Retry-After": "0"}, {"error": {"message": "too many"}}
            there[0] += 1
        time.sleep(0.02)
        with lock:
            there[0] -= 1
        return 200, {}, chat_answer(body["messages"][-1]["content"].split()[-1])

    task = bp.Task.from_pairs([(f"w{i}", f"w{i}") for i in range(60)], ["Repeat it.", "Say it."], scorer="exact")
    config = load_settings(None, {"budget.calls": 90, "selection.in_flight": 32, "selection.stop_gain": 0.0})
    with serve_requests(reply) as (url, seen):
        lm = openai("m", url, concurrency=32, max_retries=50)
        rec = bp.optimize(task, lm, config=config, ledger=tmp_path / "run")
    assert rec.calls == 90 == len(seen) - rejected[0]
    assert rejected[0] > 0
    assert lm._gate.limit <= 16, "it has learned how many there may be"


def test_limits_by_the_minute() -> None:
    assert slower(None, None) is None
    assert slower(2.0, 60.0) == 1.0
    assert slower(0.5, 60.0) == 0.5
    assert slower(None, 120.0) == 2.0
    assert openai("m", "http://127.0.0.1:9/v1", requests_per_minute=120)._requests._rate == 2.0
    with pytest.raises(LMError, match="tokens_per_minute"):
        openai("m", "http://127.0.0.1:9/v1", tokens_per_minute=0)
