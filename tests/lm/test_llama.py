"""The engine for Llama-family files: right, and independent of the batch to the last bit."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from bestprompt.errors import LMError
from bestprompt.lm import decoder, gguf_file
from bestprompt.types import Message, Request

WORDS = ["cat", "dog", "apple", "tree", "house", "zebra", "river", "stone", "cloud", "lemon", "music", "tiger"]
WORDS += ["ocean", "bread", "grape", "knife", "plant", "queen", "seven", "glass"]
PROMPTS = ["What is the first letter of the word {}?", "Say the first letter of: {}", "Write a sentence about {}."]


@pytest.fixture(scope="module")
def requests() -> list[Request]:
    """More requests than lanes, of several lengths, greedy and sampled, with and without top-p."""
    settings = [(0.0, 1.0), (0.8, 0.9), (1.0, 1.0)]
    return [
        Request(
            (Message("user", PROMPTS[i % 3].format(word)),),
            max_tokens=5 + i % 4,
            temperature=settings[i % 3][0],
            top_p=settings[i % 3][1],
            seed=i,
        )
        for i, word in enumerate(WORDS)
    ]


@pytest.fixture(scope="module")
def expected(jax_model: Any, requests: list[Request]) -> list[Any]:
    return [(a.text, a.usage, a.finish_reason) for a in jax_model.complete(requests)]


def _facts(answers: list[Any]) -> list[Any]:
    return [(a.text, a.usage, a.finish_reason) for a in answers]


def test_more_requests_than_lanes(requests: list[Request]) -> None:
    assert len(requests) > decoder.LANES


@pytest.mark.parametrize("size", [1, 5, decoder.LANES])
def test_answers_do_not_depend_on_the_size_of_the_batch(
    jax_model: Any, requests: list[Request], expected: list[Any], size: int
) -> None:
    jax_model._decoder.forget()
    assert _facts(jax_model.complete(requests[2 : 2 + size])) == expected[2 : 2 + size]


def test_answers_do_not_depend_on_order_or_on_what_is_in_the_store(
    jax_model: Any, requests: list[Request], expected: list[Any]
) -> None:
    order = list(range(len(requests)))
    random.Random(0).shuffle(order)
    assert _facts(jax_model.complete([requests[i] for i in order])) == [expected[i] for i in order]


def test_numbers_are_equal_to_the_last_bit(jax_model: Any, requests: list[Request]) -> None:
    texts = ["The letter is c.", "D", "apples", "It starts with t"]
    jax_model._decoder.forget()
    together = jax_model.log_likelihood(requests[:4], texts)
    shared = jax_model.log_likelihood(requests[:4], texts)  # prompts now come from the store
    jax_model._decoder.forget()
    alone = [jax_model.log_likelihood([r], [t])[0] for r, t in zip(requests[:4], texts, strict=True)]
    assert together.tolist() == alone == shared.tolist()


def test_answers_do_not_depend_on_jax_precision_mode(
    jax_model: Any, requests: list[Request], expected: list[Any]
) -> None:
    with jax.enable_x64(True):
        assert _facts(jax_model.complete(requests[:4])) == expected[:4]


def test_common_beginnings_are_read_once(jax_model: Any, monkeypatch: pytest.MonkeyPatch, ask: Any) -> None:
    jax_model._decoder.forget()
    read: list[int] = []
    original = decoder.Decoder._forward

    def counted(self: Any, pieces: Any, width: int) -> Any:
        read.append(sum(piece is not None for piece in pieces) if width > 1 else 0)
        return original(self, pieces, width)

    monkeypatch.setattr(decoder.Decoder, "_forward", counted)
    many = [ask(f"Answer with the first letter of the following word only. Word: {w}", max_tokens=1) for w in WORDS[:8]]
    jax_model.complete(many)
    pages_of_one = -(-jax_model.max_prompt_tokens(many[0]) // 8)
    assert pages_of_one >= 6
    assert sum(read) <= pages_of_one + 2 * len(many)
    read.clear()
    jax_model.complete(many)
    assert sum(read) <= 2 * len(many)


def test_an_interruption_leaves_no_half_filled_page(
    jax_model: Any, monkeypatch: pytest.MonkeyPatch, requests: list[Request], expected: list[Any]
) -> None:
    jax_model._decoder.forget()
    with monkeypatch.context() as patch:
        patch.setattr(decoder.Decoder, "_forward", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            jax_model.complete(requests[:3])
    assert _facts(jax_model.complete(requests[:3])) == expected[:3]


def _interrupt(*args: Any) -> None:
    raise KeyboardInterrupt


def test_works_when_the_store_is_too_small_for_all(
    jax_model: Any, monkeypatch: pytest.MonkeyPatch, requests: list[Request], expected: list[Any]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(jax_model._decoder, "_page_count", 24)  # room for three or four requests at a time
        jax_model._decoder.forget()
        assert _facts(jax_model.complete(requests[:10])) == expected[:10]
    jax_model._decoder.forget()


def test_agrees_with_llamacpp_on_greedy_text(jax_model: Any, llamacpp_model: Any, ask: Any) -> None:
    texts = [f"What is the first letter of the word {w}?" for w in ("cat", "dog", "apple", "house")]
    texts += ["What is the capital of France?", "Count the apples: apple, apple, apple."]
    ours = jax_model.complete([ask(t, max_tokens=10) for t in texts])
    theirs = llamacpp_model.complete([ask(t, max_tokens=10) for t in texts])
    same = [a.text == b.text for a, b in zip(ours, theirs, strict=True)]
    assert sum(same) >= len(texts) - 1, [(a.text, b.text) for a, b in zip(ours, theirs, strict=True)]
    assert [a.usage.prompt_tokens for a in ours] == [b.usage.prompt_tokens for b in theirs]


def test_agrees_with_llamacpp_on_log_probabilities(jax_model: Any, llamacpp_model: Any) -> None:
    # llama.cpp rounds activations to eight bits and keys to sixteen, so single tokens may be further apart.
    gaps: list[float] = []
    for text in ("What is the capital of France?", "What is the first letter of the word dog?", "Name a colour."):
        body = {"messages": [{"role": "user", "content": text}], "max_tokens": 8, "temperature": 0}
        answer = llamacpp_model._server.handle_chat_completions({**body, "logprobs": True, "top_logprobs": 1})
        said = answer["choices"][0]["logprobs"]["content"]
        tokens = [t["id"] for t in said]
        prompt = jax_model._prompt(Request((Message("user", text),)))
        sums = jax_model._log_likelihood([prompt] * len(tokens), [tokens[: n + 1] for n in range(len(tokens))])
        gaps += [abs(mine - t["logprob"]) for mine, t in zip(np.diff(sums, prepend=0.0), said, strict=True)]
    assert len(gaps) > 12
    assert np.mean(gaps) < 0.1, gaps


def test_agrees_with_a_plain_float64_forward_pass(jax_model: Any, model_path: str) -> None:
    file = gguf_file.read(Path(model_path))
    tokens = jax_model._tokenizer.encode("<|im_start|>user\nThe quick brown fox jumps over the lazy dog")
    scores = _plain_logits(file, tokens)
    expected = scores[np.arange(len(tokens) - 1), tokens[1:]].sum() - _logsumexp(scores[:-1]).sum()
    text = jax_model._tokenizer.decode(tokens[1:])
    head, tail = "<|im_start|>", text
    assert jax_model._tokenizer.encode(head) + jax_model._tokenizer.encode(tail) == tokens
    assert jax_model.log_likelihood([head], [tail])[0] == pytest.approx(expected, abs=1e-3)


def _plain_logits(file: Any, tokens: list[int]) -> Any:
    """(n, V) logits, token-major, as the architecture is written down: neighbours rotated, no cache, float64."""
    n, heads, kv, size = len(tokens), 9, 3, 64

    def get(name: str) -> Any:
        return file.tensor(name).astype(np.float64)

    def norm(x: Any, scale: Any) -> Any:
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + file.setting("attention.layer_norm_rms_epsilon")) * scale

    angle = np.arange(n)[:, None] * file.setting("rope.freq_base") ** (-np.arange(0, size, 2) / size)
    turn = np.exp(1j * angle)[:, None]

    def rotate(x: Any) -> Any:
        pairs = x.reshape(n, -1, size // 2, 2)
        turned = (pairs[..., 0] + 1j * pairs[..., 1]) * turn
        return np.stack([turned.real, turned.imag], -1).reshape(n, -1, size)

    table = get("token_embd.weight")
    x = table[tokens]
    for layer in range(30):
        w = {k: get(f"blk.{layer}.{k}.weight") for k in ("attn_q", "attn_k", "attn_v", "attn_output", "attn_norm")}
        w |= {k: get(f"blk.{layer}.{k}.weight") for k in ("ffn_norm", "ffn_gate", "ffn_up", "ffn_down")}
        h = norm(x, w["attn_norm"])
        q, k = rotate(h @ w["attn_q"].T), rotate(h @ w["attn_k"].T)
        v = (h @ w["attn_v"].T).reshape(n, kv, size)
        mixed = np.zeros((n, heads, size))
        for head in range(heads):
            s = q[:, head] @ k[:, head // (heads // kv)].T / np.sqrt(size)
            s[np.triu_indices(n, 1)] = -np.inf
            share = np.exp(s - _logsumexp(s)[:, None])
            mixed[:, head] = share @ v[:, head // (heads // kv)]
        x = x + mixed.reshape(n, -1) @ w["attn_output"].T
        h = norm(x, w["ffn_norm"])
        gate = h @ w["ffn_gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w["ffn_up"].T)) @ w["ffn_down"].T
    return norm(x, get("output_norm.weight")) @ table.T


def _logsumexp(x: Any) -> Any:
    top = x.max(-1)
    return top + np.log(np.exp(x - top[:, None]).sum(-1))


def test_log_likelihood_is_the_probability_of_sampling_it(jax_model: Any, ask: Any) -> None:
    # P(first token) by counting draws, against the figure.
    request = ask("Say yes or no.", max_tokens=1, temperature=1.0)
    draws = jax_model.complete([Request(request.messages, 1, 1.0, 1.0, seed) for seed in range(120)])
    (likeliest, count) = max(
        ((t, sum(d.text == t for d in draws)) for t in {d.text for d in draws}), key=lambda p: p[1]
    )
    probability = float(np.exp(jax_model.log_likelihood([request], [likeliest])[0]))
    assert abs(count / 120 - probability) < 4 * np.sqrt(probability * (1 - probability) / 120)


def test_fluent_text_is_likelier(jax_model: Any) -> None:
    good, bad = jax_model.mean_logprob(["Sort the words in alphabetical order.", "Pder the following in alabckset"])
    assert good > bad + 1
    assert good < 0


def test_a_context_makes_what_follows_from_it_likelier(jax_model: Any) -> None:
    text, context = "Sort the words from Z to A.\n", "Sort the words from A to Z.\n"
    alone, after, unrelated = jax_model.mean_logprob([text] * 3, ["", context, "The cat sleeps on the sofa.\n"])
    assert after > unrelated + 0.5
    assert alone == jax_model.mean_logprob([text])[0]
    size = len(jax_model._tokenizer.encode(text))
    whole = jax_model.log_likelihood(["<|endoftext|>" + context], [text])[0]
    assert after == pytest.approx(whole / size, abs=1e-4)


def test_embeddings_are_unit_vectors_close_for_close_meanings(jax_model: Any) -> None:
    vectors = jax_model.embed(["a small cat", "a little kitten", "quarterly interest rates fell", ""])
    assert vectors.shape == (4, 576)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]


def test_requests_that_cannot_run_say_the_sizes(jax_model: Any, ask: Any) -> None:
    (error,) = jax_model.complete([ask("word " * 2000)])
    assert isinstance(error, LMError)
    assert not error.retryable
    assert "1024" in str(error)
    assert str(jax_model.max_prompt_tokens(ask("word " * 2000))) in str(error)
    (error,) = jax_model.complete([ask("hi", max_tokens=0)])
    assert "max_tokens" in str(error)
    with pytest.raises(LMError, match="empty"):
        jax_model.log_likelihood([ask("hi")], [""])
    with pytest.raises(LMError, match="1024"):
        jax_model.embed(["word " * 2000])
