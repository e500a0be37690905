"""Texts weighed by our own reading of the file: right, whatever was asked before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bestprompt.errors import LMError
from bestprompt.lm.prefix_tree import PrefixTree
from bestprompt.types import Message, Request


@pytest.mark.slow
def test_agrees_with_a_plain_float64_forward_pass(embedded_model: Any, plain_log_likelihood: Any) -> None:
    context, text = "<|im_start|>user\n", "The quick brown fox jumps over the lazy dog"
    head, tail = (embedded_model._tokenizer.encode(part) for part in (context, text))
    found = embedded_model.log_likelihood([context], [text])[0]
    assert found == pytest.approx(plain_log_likelihood(head, tail), abs=1e-3)


@pytest.mark.slow
def test_agrees_with_llamacpp_on_log_probabilities(embedded_model: Any) -> None:
    # llama.cpp rounds activations to eight bits and keys to sixteen, so single tokens may be further apart.
    gaps: list[float] = []
    for text in ("What is the capital of France?", "What is the first letter of the word dog?", "Name a colour."):
        body = {"messages": [{"role": "user", "content": text}], "max_tokens": 8, "temperature": 0}
        answer = embedded_model._servers.first._server.handle_chat_completions(
            {**body, "logprobs": True, "top_logprobs": 1}
        )
        said = answer["choices"][0]["logprobs"]["content"]
        tokens = [t["id"] for t in said]
        reader = embedded_model._open_reader()
        prompt = reader._prompt(Request((Message("user", text),)))
        sums = reader._sums([prompt] * len(tokens), [tokens[: n + 1] for n in range(len(tokens))])
        gaps += [abs(mine - t["logprob"]) for mine, t in zip(np.diff(sums, prepend=0.0), said, strict=True)]
    assert len(gaps) > 12
    assert np.mean(gaps) < 0.1, gaps


@pytest.mark.slow
def test_log_likelihood_is_the_probability_of_sampling_it(embedded_model: Any, ask: Any) -> None:
    # P(first token) by counting draws, against the figure; between the two engines lies a rounding of up to 0.1.
    n = 120
    request = ask("Say yes or no.", max_tokens=1, temperature=1.0)
    draws = embedded_model.complete([Request(request.messages, 1, 1.0, 1.0, seed) for seed in range(n)])
    (likeliest, count) = max(
        ((t, sum(d.text == t for d in draws)) for t in {d.text for d in draws}), key=lambda p: p[1]
    )
    probability = float(np.exp(embedded_model.log_likelihood([request], [likeliest])[0]))
    margin = 4 * np.sqrt(probability * (1 - probability) / n) + 0.1 * probability
    assert abs(count / n - probability) < margin


@pytest.mark.slow
def test_fluent_text_is_likelier(embedded_model: Any) -> None:
    texts = ["Sort the words in alphabetical order.", "Pder the following in alabckset"]
    good, bad = embedded_model.mean_logprob(texts)
    assert good > bad + 1
    assert good < 0


def test_a_context_makes_what_follows_from_it_likelier(embedded_model: Any) -> None:
    text, context = "Sort the words from Z to A.\n", "Sort the words from A to Z.\n"
    alone, after, unrelated = embedded_model.mean_logprob([text] * 3, ["", context, "The cat sleeps on the sofa.\n"])
    assert after > unrelated + 0.5
    assert alone == embedded_model.mean_logprob([text])[0]
    size = len(embedded_model._tokenizer.encode(text))
    whole = embedded_model.log_likelihood(["<|endoftext|>" + context], [text])[0]
    assert after == pytest.approx(whole / size, abs=1e-4)


def test_what_cannot_be_weighed_says_why(embedded_model: Any, ask: Any) -> None:
    with pytest.raises(LMError, match="empty"):
        embedded_model.log_likelihood([ask("hi")], [""])
    with pytest.raises(LMError, match="1024"):
        embedded_model.mean_logprob(["word " * 2000])


def test_an_interruption_leaves_nothing_half_read(embedded_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["The lamp stands on a table of oak.", "The lamp stands on a chair."]
    with monkeypatch.context() as patch:
        patch.setattr(PrefixTree, "_score_chunk", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            embedded_model.mean_logprob(texts)
    assert np.isfinite(embedded_model.mean_logprob(texts)).all()


def _interrupt(*args: Any) -> None:
    raise KeyboardInterrupt
