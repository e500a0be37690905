"""One suite over every language model: what callers may rely on whichever they use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bestprompt import lm
from bestprompt.errors import LMError
from bestprompt.rng import stream
from bestprompt.testing import model_checks
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


@pytest.mark.parametrize("check", model_checks, ids=lambda check: check.__name__)
def test_keeps_the_contract(model: Any, check: Callable[[LanguageModel], None]) -> None:
    check(model)


def test_an_error_stays_in_its_slot(model: Any, ask: Any) -> None:
    words = ["river", "stone", "cloud"]
    requests = [ask(f"Repeat exactly this one word: {word}", max_tokens=12) for word in words]
    requests.insert(1, ask(TOO_LONG))
    answers = model.complete(requests)
    assert isinstance(answers[1], LMError)
    assert str(answers[1])
    for word, answer in zip(words, [answers[0], *answers[2:]], strict=True):
        assert isinstance(answer, Completion)
        assert word in answer.text.lower()


def test_another_seed_gives_another_answer(model: Any, ask: Any) -> None:
    requests = [ask("Tell me about", temperature=1.0, seed=seed, max_tokens=6) for seed in range(3)]
    assert len({answer.text for answer in model.complete(requests)}) > 1


def test_a_long_answer_is_cut_at_max_tokens(model: Any, ask: Any) -> None:
    (answer,) = model.complete([ask("Tell me a long story about a dragon.", max_tokens=3)])
    assert answer.finish_reason == "length"
    assert answer.usage.completion_tokens == 3
