"""llama.cpp in process, through the wheel of ``xllamacpp`` (no compiler needed): runs any GGUF file.

Several requests are decoded at once in parallel slots, and each slot keeps what it has read for the next request that
begins alike. Every request is sampled from its own seed. The sums depend on which requests share a step, so a near-tie
between two tokens may fall the other way in another batch.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bestprompt.errors import LMError
from bestprompt.types import Completion, FloatArray, Message, Request, Usage

_ERRORS_ONLY = 1
_WAIT = 60.0
# How long a thread that is done waits awake for the others before it sleeps: a fraction of a millisecond. The OpenMP
# library's own default is a hundred times that, which beside another busy program burns whole time slices.
_SPIN = ("GOMP_SPINCOUNT", "3000")
_ANY_SEED = 0xFFFFFFFF  # llama.cpp takes this number for a wish to be surprised


class LlamaCpp:
    """A GGUF file in llama.cpp's server; thread-safe.

    Args:
        path: The file.
        context: Most tokens of one prompt and its answer together.
        slots: Requests decoded at once.
        threads: CPU threads.
    """

    def __init__(self, path: Path, context: int, slots: int, threads: int) -> None:
        self._path, self._context, self._slots, self._threads = path, context, slots, threads
        # The server also listens on loopback; a random key keeps other programs of this machine out.
        self._key = secrets.token_hex(16)
        self._server = self._start()
        self._making = threading.Lock()

    def answer(self, request: Request, given_up: Callable[[], bool]) -> Completion | LMError:
        """The answer to ``request``, without its latency; broken off as soon as ``given_up`` says so."""
        body: dict[str, Any] = {
            "messages": _as_json(request.messages),
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "seed": request.seed % _ANY_SEED,
            "stop": list(request.stop),
            # The server's own defaults would cut the distribution further than the request asks for.
            "top_k": 0,
            "min_p": 0.0,
            # Token by token, because only between two of them can an answer be broken off.
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        text, finish, usage = "", "", Usage(1)
        failure: LMError | None = None

        def receive(piece: Mapping[str, Any]) -> bool:
            nonlocal text, finish, usage, failure
            if "error" in piece:
                failure = _as_error(piece["error"])
            for choice in piece.get("choices", ()):
                text += choice["delta"].get("content") or ""
                finish = choice["finish_reason"] or finish
            if used := piece.get("usage"):
                usage = Usage(1, used["prompt_tokens"], used["completion_tokens"])
            return given_up()

        self._server.handle_chat_completions(body, receive)
        return failure or Completion(text, usage, finish_reason=finish)

    def count(self, messages: Sequence[Message]) -> int:
        """The number of prompt tokens of ``messages``, chat template included."""
        return int(self._post("/v1/chat/completions/input_tokens", {"messages": _as_json(messages)})["input_tokens"])

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """(n, d) mean-pooled final hidden states, each of length one."""
        with self._making:
            embedder = self._embedder
        answer = embedder.handle_embeddings({"input": [text or " " for text in texts]})  # it refuses the empty text
        if "error" in answer:
            raise _as_error(answer["error"])
        vectors = np.array([row["embedding"] for row in answer["data"]], dtype=np.float64)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float64)

    @cached_property
    def _embedder(self) -> Any:
        return self._start(embedding=True)

    def _start(self, *, embedding: bool = False) -> Any:
        if "OMP_WAIT_POLICY" not in os.environ:
            os.environ.setdefault(*_SPIN)  # read once, when the library below is loaded
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(self._path)
        params.n_parallel = 1 if embedding else self._slots
        params.n_ctx = self._context * params.n_parallel
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._threads
        params.cache_ram_mib = 0  # else what slots forget would pile up in memory, gigabytes in a long run
        params.verbosity = _ERRORS_ONLY
        params.warmup = False
        params.api_keys = [self._key]
        if embedding:
            params.embedding = True
            params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
            params.n_batch = params.n_ubatch = self._context  # a text must fit one step to be averaged
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise LMError(f"llama.cpp cannot load {self._path}: {error}", retryable=False, systemic=True) from error

    def _post(self, route: str, body: Mapping[str, Any]) -> dict[str, Any]:
        address = self._server.listening_address.removeprefix("http://")
        connection = http.client.HTTPConnection(address, timeout=_WAIT)
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
        try:
            connection.request("POST", route, json.dumps(body), headers)
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        if "error" in answer:
            raise _as_error(answer["error"])
        return answer


def _as_json(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def _as_error(error: Mapping[str, Any]) -> LMError:
    return LMError(f"llama.cpp: {error.get('message', error)}", retryable=error.get("code", 500) >= 500)
