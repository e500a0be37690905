"""One suite over every language model: what callers may rely on whichever they use."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from bestprompt import lm
from bestprompt.errors import LMError
from bestprompt.rng import stream
from bestprompt.types import Completion, LanguageModel, Request

TOO_LONG = "word " * 3000


def _speaker(request: Request) -> str:
    if request.messages[-1].content == TOO_LONG:
        raise ValueError("too long for me")
    if request.temperature == 0:
        return f"The answer to {request.messages[-1].content} is one two three. Four five."
    return " ".join(str(n) for n in stream(request.seed, "speaker").integers(0, 1000, 6))


@pytest.fixture(params=["embedded", "openai", "function"])
def model(request: pytest.FixtureRequest) -> Any:
    if request.param == "function":
        return lm.function(_speaker)
    return request.getfixturevalue({"embedded": "embedded_model", "openai": "served_model"}[request.param])


def test_is_a_language_model(model: Any) -> None:
    assert isinstance(model, LanguageModel)
    assert model.name
    assert model.fingerprint
    assert model.batch_size >= 1
    assert model.concurrency >= 1
    assert model.complete([]) == []


def test_order_is_kept_and_an_error_stays_in_its_slot(model: Any, ask: Any) -> None:
    words = ["river", "stone", "cloud"]
    requests = [ask(f"Repeat exactly this one word: {word}", max_tokens=12) for word in words]
    requests.insert(1, ask(TOO_LONG))
    answers = model.complete(requests)
    assert isinstance(answers[1], LMError)
    assert str(answers[1])
    for word, answer in zip(words, [answers[0], *answers[2:]], strict=True):
        assert isinstance(answer, Completion)
        assert word in answer.text.lower()


def test_same_seed_same_answer_other_seed_other_answer(model: Any, ask: Any) -> None:
    def draw(seed: int) -> str:
        (answer,) = model.complete([ask("Tell me about", temperature=1.0, seed=seed, max_tokens=6)])
        return str(answer.text)

    first = [draw(seed) for seed in range(3)]
    assert [draw(seed) for seed in range(3)] == first
    assert len(set(first)) > 1


def test_stop_string_ends_the_answer_and_is_left_out(model: Any, ask: Any) -> None:
    request = ask("Name the first letter of the word dog.", max_tokens=12)
    (whole,) = model.complete([request])
    marker = whole.text.split()[2]
    (cut,) = model.complete([ask("Name the first letter of the word dog.", max_tokens=12, stop=(marker,))])
    assert cut.text == whole.text[: whole.text.index(marker)]
    assert cut.finish_reason == "stop"


def test_max_tokens_is_obeyed_and_tokens_are_counted(model: Any, ask: Any) -> None:
    request = ask("Tell me a long story about a dragon.", max_tokens=3)
    (answer,) = model.complete([request])
    assert answer.finish_reason == "length"
    assert answer.usage.calls == 1
    assert answer.usage.completion_tokens == 3
    assert 0 < answer.usage.prompt_tokens <= model.max_prompt_tokens(request)
    assert answer.latency >= 0


def test_threads_get_their_own_answers(model: Any, ask: Any) -> None:
    words = ["apple", "tiger", "ocean", "bread"]
    found: dict[str, str] = {}

    def work(word: str) -> None:
        (answer,) = model.complete([ask(f"Repeat exactly this one word: {word}", max_tokens=12)])
        found[word] = answer.text.lower()

    threads = [threading.Thread(target=work, args=(word,)) for word in words]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(word in found[word] for word in words), found
