from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bestprompt import lm
from bestprompt.lm import gguf_file, weights
from bestprompt.types import Message, Request

SERVER_KEY = "sk-test-0123456789"


def ask(text: str, **settings: Any) -> Request:
    return Request((Message("user", text),), **{"max_tokens": 8, **settings})


@pytest.fixture(scope="session")
def model_path() -> str:
    return str(weights.fetch())


@pytest.fixture(scope="session")
def embedded_model(model_path: str) -> Any:
    return lm.embedded(model_path, threads=1)


@pytest.fixture(scope="session")
def plain_log_likelihood(model_path: str) -> Callable[[list[int], list[int]], float]:
    """``f(head, tail)``: the log-probability of tokens after others, by the plainest of forward passes."""
    file = gguf_file.read(Path(model_path))
    tensor = cache(file.tensor)

    def log_likelihood(head: list[int], tail: list[int]) -> float:
        tokens = [*head, *tail]
        scores = _plain_logits(file, tensor, tokens[:-1])[len(head) - 1 :]
        return float((scores[np.arange(len(tail)), tail] - _logsumexp(scores)).sum())

    return log_likelihood


def _plain_logits(file: gguf_file.GgufFile, tensor: Callable[[str], Any], tokens: list[int]) -> Any:
    """(n, V) logits, token-major, as the architecture is written down: neighbours rotated, no cache, float64."""
    n, heads, kv, size = len(tokens), 9, 3, 64
    epsilon, base = file.setting("attention.layer_norm_rms_epsilon"), file.setting("rope.freq_base")

    def norm(x: Any, scale: Any) -> Any:
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * scale

    turn = np.exp(1j * np.arange(n)[:, None] * base ** (-np.arange(0, size, 2) / size))[:, None]

    def rotate(x: Any) -> Any:
        pairs = x.reshape(n, -1, size // 2, 2)
        turned = (pairs[..., 0] + 1j * pairs[..., 1]) * turn
        return np.stack([turned.real, turned.imag], -1).reshape(n, -1, size)

    table = tensor("token_embd.weight").astype(np.float64)
    x = table[tokens]
    names = ("attn_q", "attn_k", "attn_v", "attn_output", "attn_norm", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down")
    for layer in range(30):
        w = {name: tensor(f"blk.{layer}.{name}.weight").astype(np.float64) for name in names}
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
    return norm(x, tensor("output_norm.weight")) @ table.T


def _logsumexp(x: Any) -> Any:
    top = x.max(-1)
    return top + np.log(np.exp(x - top[:, None]).sum(-1))


@pytest.fixture(scope="session")
def server_url(model_path: str) -> Iterator[str]:
    """A real OpenAI-compatible HTTP server on loopback with the embedded weights, which insists on a key."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model_path
    params.n_ctx, params.n_parallel = 2048, 4
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity, params.warmup = 1, False
    params.api_keys = [SERVER_KEY]
    server = xllamacpp.Server(params)
    yield server.listening_address + "/v1"
    del server


@pytest.fixture(scope="session")
def served_model(server_url: str) -> Any:
    os.environ["BESTPROMPT_TEST_KEY"] = SERVER_KEY
    return lm.openai("served", server_url, api_key_env="BESTPROMPT_TEST_KEY", concurrency=4)


@pytest.fixture(name="ask")
def _ask() -> Any:
    return ask
