"""Answers on disk: asked once, kept across processes, failures not kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
import bestprompt.lm as lm
from bestprompt.errors import LMError
from bestprompt.run.settings import load_settings
from bestprompt.types import Completion, LanguageModel, Message, Request


def request(text: str, seed: int = 0, temperature: float = 1.0) -> Request:
    return Request((Message("user", text),), seed=seed, temperature=temperature)


class Counting:
    """Upper-cases the message and counts how often it is asked; can be told to fail."""

    def __init__(self) -> None:
        self.asked, self.failing = 0, False

    def __call__(self, request: Request) -> str:
        self.asked += 1
        if self.failing:
            raise LMError("out of reach")
        return request.messages[0].content.upper()


@pytest.fixture
def answering() -> Counting:
    return Counting()


def test_each_question_is_asked_once_even_within_one_call_and_after_reopening(
    tmp_path: Path, answering: Counting
) -> None:
    model = lm.cached(lm.function(answering, "upper"), tmp_path / "deep" / "answers.db")
    replies = model.complete([request("a"), request("b"), request("a"), request("a", seed=1)])
    assert [r.text for r in replies if isinstance(r, Completion)] == ["A", "B", "A", "A"]
    assert answering.asked == 3
    again = lm.cached(lm.function(answering, "upper"), tmp_path / "deep" / "answers.db")
    assert again.complete([request("b")])[0].text == "B"  # type: ignore[union-attr]
    assert answering.asked == 3


def test_a_stored_answer_counts_as_much_as_a_new_one(tmp_path: Path, answering: Counting) -> None:
    model = lm.cached(lm.function(answering, "upper"), tmp_path / "answers.db")
    first, second = (model.complete([request("two words")])[0] for _ in range(2))
    assert isinstance(first, Completion)
    assert isinstance(second, Completion)
    assert (first.usage, first.finish_reason) == (second.usage, second.finish_reason)
    assert second.usage.prompt_tokens == 2


def test_a_failure_is_not_kept(tmp_path: Path, answering: Counting) -> None:
    model = lm.cached(lm.function(answering, "upper"), tmp_path / "answers.db")
    answering.failing = True
    assert isinstance(model.complete([request("a")])[0], LMError)
    answering.failing = False
    assert isinstance(model.complete([request("a")])[0], Completion)


def test_models_do_not_answer_for_each_other(tmp_path: Path) -> None:
    path = tmp_path / "answers.db"
    one, two = lm.cached(lm.function(lambda r: "one", "1"), path), lm.cached(lm.function(lambda r: "two", "2"), path)
    assert [m.complete([request("a")])[0].text for m in (one, two)] == ["one", "two"]  # type: ignore[union-attr]


def test_it_is_the_model_in_everything_else(tmp_path: Path, answering: Counting) -> None:
    inner = lm.function(answering, "upper", concurrency=3)
    model = lm.cached(inner, tmp_path / "answers.db")
    assert isinstance(model, LanguageModel)
    assert (model.name, model.fingerprint, model.concurrency) == ("upper", inner.fingerprint, 3)
    assert not hasattr(model, "mean_logprob")
    assert model.max_prompt_tokens(request("a b")) == 2


def test_replications_are_kept_apart_unless_they_cannot_differ(tmp_path: Path, answering: Counting) -> None:
    model = lm.cached(lm.function(answering, "upper"), tmp_path / "answers.db")
    model.complete([request("a", seed) for seed in range(5)])
    assert answering.asked == 5
    model.complete([request("a", seed, temperature=0.0) for seed in range(5)])
    assert answering.asked == 6


def test_a_setting_shares_answers_between_runs(tmp_path: Path, serve: Any, chat_answer: Any) -> None:
    task = bp.Task.from_pairs([(f"w{i}", "x") for i in range(6)], ["Say it.", "Repeat it."], scorer="exact")
    with serve(lambda _: (200, {}, chat_answer("x"))) as (url, seen):
        said = []
        for seed in (0, 1):
            model = {"model.kind": "openai", "model.name": "m", "model.base_url": url, "model.cache": tmp_path / "c.db"}
            config = load_settings(None, {**model, "budget.calls": 12, "seed": seed, "selection.stop_gain": 0.0})
            said.append(bp.optimize(task, lm.open_model(config.model), config=config))
    assert [rec.calls for rec in said] == [12, 12]
    assert len(seen) == 12
