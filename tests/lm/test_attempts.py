"""An attempt is bounded: in time though a server drips, in size though it never ends, and once the run was stopped."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
from bestprompt.errors import LMError, LMTimeout
from bestprompt.ledger import TURNED_AWAY, Ledger
from bestprompt.lm import attempts, connections, patience
from bestprompt.types import MOST_CHARACTERS

HEAD = b"HTTP/1.1 %d X\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr(patience, "FIRST_WAIT", 0.01)


@contextmanager
def sends(write: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that reads one request from each connection, and then ``write``s until the client has had enough."""
    listening, over = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection:
            connection.recv(100_000)
            try:
                while not over.is_set():
                    write(connection)
            except OSError:
                pass  # the client has hung up

    def accept() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    finally:
        over.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def test_a_server_that_drips_is_a_timeout(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("bestprompt.lm.openai"), "_CONNECTING", 0.2)
    begun = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(b"1\r\n \r\n" if begun.is_set() else HEAD % 200)
        begun.set()
        time.sleep(0.05)

    with sends(drip) as url:
        (late,) = bp.lm.openai("m", url, timeout=0.3).complete([ask("hi")])
    assert isinstance(late, LMTimeout)
    assert not late.unbilled


@pytest.mark.parametrize("status", [200, 400])
def test_a_reply_without_end_is_not_read_to_its_end(ask: Any, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setattr(connections, "MOST_BYTES", 50_000)
    begun = threading.Event()

    def pour(connection: socket.socket) -> None:
        connection.sendall(b"1000\r\n" + b"x" * 0x1000 + b"\r\n" if begun.is_set() else HEAD % status)
        begun.set()

    with sends(pour) as url:
        (error,) = bp.lm.openai("m", url).complete([ask("hi")])
    assert isinstance(error, LMError)
    assert "more than 50,000 bytes" in str(error)
    assert not error.unbilled


def test_what_is_under_way_is_not_waited_for_once_the_run_stops(
    serve: Any, ask: Any, chat_answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "GRACE", 0.1)
    over = threading.Event()

    def hang(_attempt: int) -> Any:
        model.patience.give_up()
        over.wait(60)
        return 200, {}, chat_answer("x")

    with serve(hang) as (url, seen):
        model = bp.lm.openai("m", url, timeout=1000)
        with model.patience.heard_by(lambda *_: None):
            (lost,) = model.complete([ask("hi")])
            (unsent,) = model.complete([ask("hi")])
        over.set()
        assert len(seen) == 1
    assert "when the run was stopped" in str(lost)
    assert not lost.unbilled
    assert unsent.unbilled


def test_a_long_answer_is_bounded_in_the_record(serve: Any, chat_answer: Any, tmp_path: Path) -> None:
    task = bp.Task.from_pairs([("a", "four"), ("b", "four")], ["Say four.", "Four!"], scorer="exact")
    with serve(lambda _: (200, {}, chat_answer("four " * 200_000))) as (url, _):
        bp.optimize(task, bp.lm.openai("m", url), budget=2, ledger=tmp_path)
    with Ledger.read(tmp_path) as ledger:
        assert {len(e.output or "") for e in ledger.entries()} == {MOST_CHARACTERS}
    assert len(str(LMError("x" * 10**6))) < 3000


def test_the_waits_of_a_judge_are_heard_and_end_with_the_run(serve: Any, chat_answer: Any, tmp_path: Path) -> None:
    def reply(attempt: int) -> Any:
        slow = 429, {"Retry-After": "0.01"}, {"error": {"message": "slow"}}
        return slow if attempt == 0 else (200, {}, chat_answer("Grade: 7"))

    with serve(reply) as (url, seen):
        judge = bp.lm.openai("judge", url)
        task = bp.Task.from_pairs([("a", "x"), ("b", "y")], ["Say.", "Tell."], scorer="judge", lm=judge)
        rec = bp.optimize(task, bp.lm.function(lambda _: "x"), budget=16, ledger=tmp_path)
    with Ledger.read(tmp_path) as ledger:
        (event,) = ledger.payloads(TURNED_AWAY)
    assert "judge" in event["error"]
    assert rec.calls == 2 * (len(seen) - 1)
