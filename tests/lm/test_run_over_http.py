"""A whole run against a real OpenAI-compatible server, and the scores that need a real model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
from bestprompt.ledger import Ledger
from bestprompt.scoring import build_scorer
from bestprompt.types import Pair


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_a_run_over_http(served_model: Any, server_url: str, tmp_path: Path, api: Any) -> None:
    key = os.environ["BESTPROMPT_TEST_KEY"]
    task = bp.Task.from_pairs(
        [(word, word[0]) for word in ("apple", "river", "stone", "cloud", "green", "table")],
        ["Write the first letter of the word.", "Echo the word."],
        scorer="contains",
        max_tokens=4,
    )
    lm = bp.lm.openai("served", server_url, api=api, api_key_env="BESTPROMPT_TEST_KEY", concurrency=4)
    rec = bp.optimize(task, lm, budget=12, ledger=tmp_path)
    assert rec.calls == 12
    with Ledger.read(tmp_path) as ledger:
        entries = list(ledger.entries())
    assert all(e.status == "ok" and e.usage.prompt_tokens > 3 and e.usage.completion_tokens >= 1 for e in entries)
    recorded = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert key.encode() not in recorded


def test_embedding_cosine_with_the_embedded_model(embedded_model: Any) -> None:
    scorer = build_scorer("embedding", lm=embedded_model)
    pair = Pair("", ("The cat sleeps on the sofa.",))
    outputs = ["The cat sleeps on the sofa.", "A cat is sleeping on a couch.", "Interest rates rose by two percent."]
    same, close, far = (scored.value for scored in scorer.score(outputs, [pair] * 3))
    assert same == pytest.approx(1.0, abs=1e-4)
    assert same > close > far


def test_a_judge_is_asked_for_real_and_its_tokens_are_counted(embedded_model: Any) -> None:
    # A small model grades badly, so the question is made as easy as can be: what is tested is the asking and counting.
    prompt = '{input}{reference}{output}Write the text "Grade: 7" and nothing else.'
    scorer = build_scorer({"kind": "judge", "prompt": prompt}, lm=embedded_model)
    pair = Pair("", ("",))
    (scored,) = scorer.score([""], [pair])
    assert scored.value == pytest.approx(0.7)
    assert scored.usage.calls >= 1
    assert scored.usage.prompt_tokens > 5
    most = scorer.max_usage(pair, 8)
    assert scored.usage.calls <= most.calls
    assert scored.usage.tokens <= most.tokens
