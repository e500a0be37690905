"""Requests that may have been billed never exceed the budget: counted by a real server that fails in many ways."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
from bestprompt.errors import LMError, LMTimeout
from bestprompt.ledger import TURNED_AWAY, Ledger
from bestprompt.lm import patience
from bestprompt.lm.failures import retry_after
from bestprompt.scoring import build_scorer
from bestprompt.types import Pair

BUDGET = 40
FAULTS = ("late", "reset", "truncated", "garbage", "429", "503", "500")
FREE = ("429", "503", "500")
PAIRS = [(f"word{n}", f"word{n}") for n in range(30)]


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr(patience, "FIRST_WAIT", 0.01)


def task() -> bp.Task:
    return bp.Task.from_pairs(PAIRS, ["Repeat.", "Say it again.", "Echo the word."], scorer="exact", max_tokens=4)


class Server:
    """Each question fails in one way when it is first asked, then in another or not at all."""

    def __init__(self, chat_answer: Callable[[str], Any], faults: tuple[str, ...]) -> None:
        self._answer, self._faults = chat_answer, faults
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.handled: Counter[str] = Counter()

    @property
    def may_be_billed(self) -> int:
        return sum(n for kind, n in self.handled.items() if kind not in FREE)

    def __call__(self, attempt: int, body: Any) -> Any:
        text = body["messages"][-1]["content"]
        with self._lock:
            asked, self._asked[text] = self._asked[text], self._asked[text] + 1
            number = len(self._asked)
            kind = self._faults[number % len(self._faults)] if asked == 0 and number % 3 == 0 else "well"
            self.handled[kind] += 1
        right = self._answer(text.split()[-1])
        if kind == "late":
            time.sleep(0.5)
        elif kind in FREE:
            return int(kind), {"Retry-After": "0.02"}, {"error": {"message": "not now"}}
        elif kind in ("reset", "truncated"):
            return kind, {}, right
        return (200, {}, b'{"choices": [{') if kind == "garbage" else (200, {}, right)


@pytest.mark.parametrize("concurrency", [1, 8, 32])
def test_a_faulty_server_never_works_on_more_requests_than_the_budget(
    serve_requests: Any, chat_answer: Any, tmp_path: Path, concurrency: int
) -> None:
    server = Server(chat_answer, FAULTS)
    with serve_requests(server) as (url, seen):
        lm = bp.lm.openai("m", url, timeout=0.3, concurrency=concurrency)
        rec = bp.optimize(task(), lm, budget=BUDGET, ledger=tmp_path)
    assert BUDGET - 5 < rec.calls <= BUDGET
    assert server.may_be_billed <= rec.calls
    assert sum(server.handled[kind] for kind in FREE) > 0
    assert server.handled["late"] > 0
    with Ledger.read(tmp_path) as ledger:
        # On a busy machine a rejection may come too late to be heard: it is charged, because nobody can tell.
        assert len(ledger.payloads(TURNED_AWAY)) + rec.calls == len(seen) == sum(server.handled.values())
        assert len(list(ledger.entries())) == rec.calls
        assert ledger.open_intents() == []


def test_a_server_that_cannot_be_reached_costs_nothing(serve: Any, chat_answer: Any, tmp_path: Path) -> None:
    with serve(lambda _: (200, {}, chat_answer("x"))) as (url, _):
        lm = bp.lm.openai("m", url, max_retries=1)
    with pytest.raises(LMError, match="Cannot reach"):
        bp.optimize(task(), lm, budget=12, ledger=tmp_path)
    with Ledger.read(tmp_path) as ledger:
        assert bp.execution.spent(ledger).calls == 0
        assert {e.status for e in ledger.entries()} == {"error"}
        assert ledger.payloads(TURNED_AWAY)


def test_what_is_waited_for_is_shown(serve: Any, chat_answer: Any, tmp_path: Path) -> None:
    class Listener:
        stages: list[str] = []  # noqa: RUF012

        def stage(self, name: str, total: int | None) -> None:
            self.stages.append(name)

        def advance(self, done: int) -> None: ...
        def evaluated(self, entry: object) -> None: ...
        def warn(self, message: str) -> None: ...

    def reply(attempt: int) -> Any:
        return (200, {}, chat_answer("x")) if attempt else (429, {"Retry-After": "1"}, {"error": {"message": "slow"}})

    with serve(reply) as (url, _):
        bp.optimize(task(), bp.lm.openai("m", url), budget=9, ledger=tmp_path, observer=Listener())
    (number,) = [i for i, stage in enumerate(Listener.stages) if "waiting 1 s: m: Error code: 429" in stage]
    assert Listener.stages[number].startswith("evaluating")
    assert Listener.stages[number + 1] == "evaluating, 1 retry"


def test_a_server_that_asks_for_an_hour_is_not_waited_for(serve: Any, ask: Any) -> None:
    started = time.monotonic()
    with serve(lambda _: (429, {"Retry-After": "3600"}, {"error": {"message": "later"}})) as (url, seen):
        (error,) = bp.lm.openai("m", url).complete([ask("hi")])
    assert len(seen) == 1
    assert error.retry_after == 3600
    assert time.monotonic() - started < 5


def test_what_may_have_been_billed_is_not_sent_again_by_itself(serve: Any, ask: Any, chat_answer: Any) -> None:
    for status, kind in (("reset", LMError), ("truncated", LMError)):
        with serve(lambda _, status=status: (status, {}, chat_answer("x"))) as (url, seen):
            (error,) = bp.lm.openai("m", url).complete([ask("hi")])
        assert len(seen) == 1
        assert type(error) is kind
        assert error.usage is None
    with serve(lambda _: time.sleep(0.4) or (200, {}, chat_answer("x"))) as (url, seen):
        (late,) = bp.lm.openai("m", url, timeout=0.1).complete([ask("hi")])
        assert len(seen) == 1
    assert isinstance(late, LMTimeout)
    assert late.usage is None


def test_when_to_ask_again() -> None:
    assert retry_after({"retry-after": "2.5"}) == 2.5
    assert retry_after({"retry-after-ms": "40", "retry-after": "9"}) == 0.04
    assert retry_after({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}) == 0.0
    for silent in ({}, {"retry-after": "soon"}, {"retry-after": "-1"}, {"retry-after": "inf"}):
        assert retry_after(silent) is None


def test_a_run_of_the_first_schema_goes_on(
    serve: Any, chat_answer: Any, written_by_version: Any, tmp_path: Path
) -> None:
    with serve(lambda _: (200, {}, chat_answer("x"))) as (url, seen):
        lm = bp.lm.openai("m", url)
        bp.optimize(task(), lm, budget=9, ledger=tmp_path)
        written_by_version(tmp_path, 1)
        with Ledger.read(tmp_path) as ledger:
            assert bp.execution.spent(ledger).calls == 9
        assert bp.optimize(task(), lm, budget=12, ledger=tmp_path).calls == 12
    assert len(seen) == 12


def test_a_judge_that_fails_is_counted_and_tried_again(serve: Any, chat_answer: Any) -> None:
    replies = [("reset", {}, None), (200, {}, chat_answer("Grade: 7"))]
    with serve(lambda attempt: replies[attempt]) as (url, seen):
        judge = build_scorer("judge", lm=bp.lm.openai("m", url))
        (scored,) = judge.score(["4"], [Pair("2 + 2", ("4",))])
    assert scored.value == 0.7
    assert scored.usage.calls == len(seen) == 2
    with serve(lambda _: ("reset", {}, None)) as (url, seen):
        judge = build_scorer("judge", lm=bp.lm.openai("m", url))
        with pytest.raises(LMError) as failed:
            judge.score(["4"], [Pair("2 + 2", ("4",))])
    assert failed.value.usage is not None
    assert failed.value.usage.calls == len(seen) == 3
