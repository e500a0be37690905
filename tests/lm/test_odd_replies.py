"""Whatever a server says under a status of success is an answer or a failed attempt, never a traceback."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
from bestprompt.ledger import Ledger
from bestprompt.types import Completion

Change = Callable[[dict[str, Any]], Any]


def _message(**changes: Any) -> Change:
    def changed(answer: dict[str, Any]) -> Any:
        answer["choices"][0]["message"].update(changes)
        return answer

    return changed


def _choice(value: Any) -> Change:
    return lambda answer: {**answer, "choices": [value]}


def _usage(value: Any) -> Change:
    return lambda answer: {**answer, "usage": value}


ODD: dict[str, tuple[Any, str]] = {
    "garbage": (b'{"choices": [{"mess', "not JSON"),
    "binary": (b"\xff\xfe\x00\x01", "not JSON"),
    "empty": (b"", "empty body"),
    "html": (b"<html><title>Sign in to the proxy</title></html>", "HTML: <html><title>Sign in to the proxy"),
    "error": ({"error": {"message": "overloaded"}}, "an error under a status of success.*overloaded"),
    "a list": ([1, 2], "not an object"),
    "null": (b"null", "not an object"),
    "deep": (b"[" * 100_000, "not JSON"),
    "long integer": (b'{"usage": ' + b"9" * 5000 + b"}", "not JSON"),
    "no choices": (lambda answer: {**answer, "choices": None}, "no choice"),
    "choices as a text": (lambda answer: {**answer, "choices": "four"}, "no choice"),
    "null choice": (_choice(None), "not an object"),
    "text choice": (_choice("four"), "not an object"),
    "missing message": (_choice({"index": 0}), "without a message"),
    "null message": (_choice({"index": 0, "message": None}), "without a message"),
    "text message": (_choice({"index": 0, "message": "four"}), "without a message"),
    "integer content": (_message(content=4), "not text"),
    "list of integers": (_message(content=[4]), "not text"),
    "list without text": (_message(content=[{"type": "image"}]), "not text"),
    "lone surrogate": (_message(content="\ud800"), "surrogate"),
    "text usage": (_usage("seven"), "count of tokens"),
    "text counts": (_usage({"prompt_tokens": "5", "completion_tokens": "2"}), "count of tokens"),
    "half a count": (_usage({"prompt_tokens": 5}), "count of tokens"),
    "negative counts": (_usage({"prompt_tokens": -5, "completion_tokens": 2}), "count of tokens"),
    "huge counts": (_usage({"prompt_tokens": 10**30, "completion_tokens": 2}), "count of tokens"),
}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


@pytest.mark.parametrize("name", ODD)
def test_an_odd_reply_is_recorded_and_asked_for_again(serve: Any, chat_answer: Any, tmp_path: Path, name: str) -> None:
    made, said = ODD[name]
    task = bp.Task.from_pairs([("a", "four"), ("b", "four")], ["Say four.", "Four!"], scorer="exact", max_tokens=4)

    def reply(attempt: int) -> Any:
        odd = made(chat_answer("four")) if callable(made) else made
        return 200, {}, chat_answer("four") if attempt else odd

    with serve(reply) as (url, seen):
        rec = bp.optimize(task, bp.lm.openai("m", url), budget=8, ledger=tmp_path)
    with Ledger.read(tmp_path) as ledger:
        failed = [e for e in ledger.entries() if e.status == "error"]
    (one,) = failed
    assert one.error is not None
    assert one.error.startswith("m answered with ")
    assert re.search(said, one.error), one.error
    assert one.usage.calls == 1
    assert rec.calls == len(seen)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "fo"}, {"type": "text", "text": "ur"}], "four"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "four"}], "four"),
        (["fo", "ur"], "four"),
        ([], ""),
        (None, ""),
    ],
)
def test_content_in_parts_is_read(serve: Any, ask: Any, chat_answer: Any, content: Any, text: str) -> None:
    with serve(lambda _: (200, {}, chat_answer(content))) as (url, _):
        (answer,) = bp.lm.openai("m", url).complete([ask("hi")])
    assert isinstance(answer, Completion)
    assert answer.text == text


def test_a_server_that_counts_nothing_is_charged_at_most(serve: Any, ask: Any, chat_answer: Any) -> None:
    for usage in (None, {}, {"prompt_tokens": None, "completion_tokens": None}):
        with serve(lambda _, usage=usage: (200, {}, {**chat_answer("four"), "usage": usage})) as (url, _):
            model = bp.lm.openai("m", url)
            (answer,) = model.complete([ask("hi")])
        assert isinstance(answer, Completion)
        assert answer.usage.prompt_tokens == model.max_prompt_tokens(ask("hi"))
