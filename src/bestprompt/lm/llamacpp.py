"""llama.cpp in process: any GGUF architecture, through the wheel of ``xllamacpp`` (no compiler needed).

Several requests are decoded at once in parallel slots, and each slot reuses the longest prefix it has seen.
What is guaranteed: every request is sampled from its own seed. What is not: llama.cpp's sums depend on which requests
share a step and on what a slot remembers, so a near-tie between two tokens may fall the other way in another batch.
"""

from __future__ import annotations

import http.client
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from bestprompt.errors import LMError
from bestprompt.lm.gguf_file import GgufFile
from bestprompt.types import Completion, FloatArray, Request, Usage

_ERRORS_ONLY = 1
_WAIT = 60.0


class LlamaCppModel:
    """A GGUF file served by llama.cpp inside this process.

    Args:
        file: The GGUF file.
        context: Most tokens of one prompt and its answer together.
        batch_size: Requests decoded at once.
        threads: CPU threads.
    """

    def __init__(self, file: GgufFile, context: int, batch_size: int, threads: int) -> None:
        self._path, self._threads, self.context = file.path, threads, context
        self.name, self.batch_size, self.concurrency = file.name, batch_size, 1
        self.fingerprint = f"llama.cpp:{file.digest}:context={context}:batch={batch_size}"
        # The server also listens on loopback; a random key keeps other programs of this machine out.
        self._key = secrets.token_hex(16)
        self._server = self._start()
        self._embedder: Any = None
        self._pool = ThreadPoolExecutor(batch_size, thread_name_prefix="llama.cpp")

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        """Answers in the order of the requests, ``batch_size`` of them decoded at a time."""
        return list(self._pool.map(self._one, requests))

    def max_prompt_tokens(self, request: Request) -> int:
        """The exact number of prompt tokens, chat template included."""
        prompt = self._post("/apply-template", {"messages": _messages(request)})["prompt"]
        body = {"content": prompt, "add_special": True, "parse_special": True}
        return len(self._post("/tokenize", body)["tokens"])

    @property
    def weighs_texts(self) -> bool:
        """Whether ``mean_logprob`` and ``log_likelihood`` answer."""
        return False

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """(n, d) mean-pooled final hidden states, each of length one."""
        if self._embedder is None:
            self._embedder = self._start(embedding=True)
        answer = self._embedder.handle_embeddings({"input": list(texts)})
        if "error" in answer:
            raise _as_error(answer["error"])
        vectors = np.array([row["embedding"] for row in answer["data"]], dtype=np.float64)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float64)

    def log_likelihood(self, prompts: Sequence[Request | str], continuations: Sequence[str]) -> FloatArray:
        """Refused: llama.cpp's server does not report the probabilities of given text."""
        raise LMError(
            f"{self.name} runs on llama.cpp, which gives no likelihood of a given text; "
            "use a model of the llama or qwen2 architecture.",
            retryable=False,
            systemic=True,
        )

    def mean_logprob(self, texts: Sequence[str], contexts: Sequence[str] | None = None) -> FloatArray:
        """Refused, as ``log_likelihood``."""
        return self.log_likelihood([""] * len(texts), texts)

    def _start(self, *, embedding: bool = False) -> Any:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(self._path)
        params.n_parallel = self.batch_size
        params.n_ctx = self.context * self.batch_size
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._threads
        params.verbosity = _ERRORS_ONLY
        params.warmup = False
        params.api_keys = [self._key]
        if embedding:
            params.embedding = True
            params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise LMError(f"llama.cpp cannot load {self._path}: {error}", retryable=False, systemic=True) from error

    def _one(self, request: Request) -> Completion | LMError:
        started = time.perf_counter()
        body: dict[str, Any] = {
            "messages": _messages(request),
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "seed": request.seed & 0xFFFFFFFF,
            "stop": list(request.stop),
            # The server's own defaults would cut the distribution further than the request asks for.
            "top_k": 0,
            "min_p": 0.0,
        }
        answer = self._server.handle_chat_completions(body)
        if "error" in answer:
            return _as_error(answer["error"])
        choice, used = answer["choices"][0], answer["usage"]
        usage = Usage(1, used["prompt_tokens"], used["completion_tokens"])
        text = choice["message"]["content"] or ""
        return Completion(text, usage, time.perf_counter() - started, choice["finish_reason"])

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


def _messages(request: Request) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in request.messages]


def _as_error(error: Mapping[str, Any]) -> LMError:
    return LMError(f"llama.cpp: {error.get('message', error)}", retryable=error.get("code", 500) >= 500)
