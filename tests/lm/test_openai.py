"""Failures, retries, limits and secrecy of the HTTP model, against real servers on loopback."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from bestprompt import lm
from bestprompt.errors import LMAuthError, LMError, LMRefused, LMTimeout

KEY = "sk-very-secret-987"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def _failure(status: int, message: str = "no", **body: Any) -> Any:
    return status, {}, {"error": {"message": message, **body}}


def test_retry_waits_as_long_as_the_server_says(serve: Any, ask: Any, chat_answer: Any) -> None:
    arrivals: list[float] = []

    def reply(attempt: int) -> Any:
        arrivals.append(time.monotonic())
        return (200, {}, chat_answer("ok")) if attempt else (429, {"Retry-After": "1"}, {"error": {"message": "slow"}})

    with serve(reply) as (url, seen):
        (answer,) = lm.openai("m", url).complete([ask("hi")])
    assert answer.text == "ok"
    assert len(seen) == 2
    assert arrivals[1] - arrivals[0] >= 1.0  # its own back-off would have been half a second


def test_gives_up_after_max_retries_and_says_it_may_be_tried_again(serve: Any, ask: Any) -> None:
    with serve(lambda _: (429, {"Retry-After": "0.01"}, {"error": {"message": "slow"}})) as (url, seen):
        (error,) = lm.openai("m", url, max_retries=2).complete([ask("hi")])
    assert len(seen) == 3
    assert type(error) is LMError
    assert error.retryable
    assert not error.systemic


@pytest.mark.parametrize(
    ("reply", "kind", "retryable", "systemic"),
    [
        (_failure(401, f"bad key {KEY}"), LMAuthError, False, True),
        (_failure(403), LMAuthError, False, True),
        (_failure(404, "no such model"), LMError, False, True),
        (_failure(400, "bad request"), LMError, False, False),
        (_failure(400, "filtered", code="content_filter"), LMRefused, False, False),
        (_failure(429, "pay", code="insufficient_quota"), LMError, False, True),
        (_failure(500), LMError, True, False),
        (_failure(503), LMError, True, False),
    ],
)
def test_each_failure_has_its_kind(
    serve: Any, ask: Any, reply: Any, kind: type[LMError], retryable: bool, systemic: bool
) -> None:
    with serve(lambda _: reply) as (url, _):
        (error,) = lm.openai("m", url, max_retries=0).complete([ask("hi")])
    assert type(error) is kind
    assert (error.retryable, error.systemic) == (retryable, systemic)
    assert KEY not in str(error)
    assert KEY not in repr(error)


def test_a_filtered_or_refused_answer_is_a_refusal(serve: Any, ask: Any, chat_answer: Any) -> None:
    answers = [chat_answer("", "content_filter"), chat_answer(None, "stop", refusal="I cannot do that")]
    with serve(lambda attempt: (200, {}, answers[attempt])) as (url, _):
        model = lm.openai("m", url)
        first, second = model.complete([ask("a")]) + model.complete([ask("b")])
    assert isinstance(first, LMRefused)
    assert isinstance(second, LMRefused)
    assert "cannot do that" in str(second)


def test_a_slow_server_is_a_timeout(serve: Any, ask: Any, chat_answer: Any) -> None:
    release = threading.Event()

    def reply(_: int) -> Any:
        release.wait(5)
        return 200, {}, chat_answer("late")

    with serve(reply) as (url, _):
        (error,) = lm.openai("m", url, timeout=0.2, max_retries=0).complete([ask("hi")])
        release.set()
    assert isinstance(error, LMTimeout)
    assert error.retryable


def test_nobody_listening_is_an_error_that_may_pass(ask: Any) -> None:
    model = lm.openai("m", "http://127.0.0.1:9/v1", max_retries=0)
    (error,) = model.complete([ask("hi")])
    assert type(error) is LMError
    assert error.retryable
    with pytest.raises(LMError, match="Cannot reach"):
        model.ping()


def test_an_answer_without_choices_or_usage(serve: Any, ask: Any, chat_answer: Any) -> None:
    bare = {**chat_answer("four"), "usage": None}
    answers = [{**chat_answer("x"), "choices": []}, bare]
    with serve(lambda attempt: (200, {}, answers[attempt])) as (url, _):
        model = lm.openai("m", url)
        (empty,) = model.complete([ask("a")])
        (counted,) = model.complete([ask("a")])
    assert isinstance(empty, LMError)
    assert counted.usage.prompt_tokens == model.max_prompt_tokens(ask("a"))


def test_what_is_sent(serve: Any, ask: Any, chat_answer: Any) -> None:
    request = ask("Sort: b a", max_tokens=7, temperature=0.5, top_p=0.9, seed=11, stop=("\n",))
    with serve(lambda _: (200, {}, chat_answer("a b"))) as (url, seen):
        lm.openai("some-model", url, extra_body={"top_k": 3}).complete([request])
    path, body = seen[0]
    assert path == "/v1/chat/completions"
    assert body == {
        "model": "some-model",
        "messages": [{"role": "user", "content": "Sort: b a"}],
        "max_tokens": 7,
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 11,
        "stop": ["\n"],
        "top_k": 3,
    }


def test_never_more_under_way_than_concurrency(serve: Any, ask: Any, chat_answer: Any) -> None:
    lock, now, most = threading.Lock(), [0], [0]

    def reply(_: int) -> Any:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.05)
        with lock:
            now[0] -= 1
        return 200, {}, chat_answer("ok")

    with serve(reply) as (url, seen):
        model = lm.openai("m", url, concurrency=3)
        callers = [threading.Thread(target=model.complete, args=([ask("x")] * 4,)) for _ in range(3)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert len(seen) == 12
    assert most[0] == 3


def test_requests_and_tokens_are_paced(serve: Any, ask: Any, chat_answer: Any) -> None:
    with serve(lambda _: (200, {}, chat_answer("ok"))) as (url, _):
        started = time.monotonic()
        lm.openai("m", url, concurrency=8, requests_per_second=10).complete([ask("x")] * 15)
        by_requests = time.monotonic() - started
        started = time.monotonic()
        # The server counts 7 tokens a call: 60 calls are 420 tokens, 200 at once and the rest at 200 a second.
        model = lm.openai("m", url, concurrency=1, tokens_per_second=200)
        model.complete([ask("x", max_tokens=7)] * 60)
        by_tokens = time.monotonic() - started
    assert by_requests >= 0.45
    assert by_tokens >= 1.0


def test_the_key_shows_nowhere_and_a_local_server_needs_none(
    serve: Any, ask: Any, chat_answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = lm.openai("m", f"http://user:{KEY}@127.0.0.1:9/v1")
    assert KEY not in repr(model) + model.fingerprint + str({k: v for k, v in vars(model).items() if k != "_client"})
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(LMAuthError, match="OPENAI_API_KEY"):
        lm.openai("m")
    with serve(lambda _: (200, {}, chat_answer("ok"))) as (url, _):
        assert lm.openai("m", url).complete([ask("hi")])[0].text == "ok"


def test_bad_settings_are_refused() -> None:
    for bad in ({"concurrency": 0}, {"timeout": 0}, {"requests_per_second": 0}, {"tokens_per_second": -1}):
        with pytest.raises(LMError, match="above zero"):
            lm.openai("m", **bad)


def test_legacy_completions_on_the_real_server(server_url: str, served_model: Any, ask: Any) -> None:
    model = lm.openai("served", server_url, api="completions", api_key_env="BESTPROMPT_TEST_KEY")
    (answer,) = model.complete([ask("The capital of France is", max_tokens=4)])
    assert "Paris" in answer.text
    assert answer.usage.completion_tokens == 4


def test_ping_and_a_wrong_key_on_the_real_server(server_url: str, served_model: Any, ask: Any) -> None:
    served_model.ping()
    wrong = lm.openai("served", server_url)
    (error,) = wrong.complete([ask("hi")])
    assert isinstance(error, LMAuthError)
    assert KEY not in str(error)
