"""A GGUF file as a language model: answers by llama.cpp, and what our own reader of the same file adds to them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from bestprompt.errors import LMError
from bestprompt.lm import tokenizer
from bestprompt.lm.gguf_file import GgufFile
from bestprompt.lm.servers import Servers
from bestprompt.lm.tokenizer import Tokenizer, check_length
from bestprompt.types import Completion, FloatArray, Message, Request

if TYPE_CHECKING:
    from bestprompt.lm.reader import Reader

_PROBE = (Message("user", "How many tokens is this?"),)


class EmbeddedModel:
    """A GGUF file in this process: besides answering it embeds texts and, where its architecture is known, weighs them.

    Args:
        file: The open file.
        context: Most tokens of one prompt and its answer together.
        batch_size: Requests worth sending at once.
        threads: CPU threads.
    """

    in_process = True

    def __init__(self, file: GgufFile, context: int, batch_size: int, threads: int) -> None:
        self._file, self.context = file, context
        self.name, self.batch_size, self.concurrency = file.name, batch_size, 1
        self.fingerprint = f"llama.cpp:{file.digest}:context={context}"
        self._servers = Servers(file.path, context, threads)
        self._pool = ThreadPoolExecutor(self._servers.slots, thread_name_prefix="llama.cpp")
        self._tokenizer = self._own_tokenizer()
        self._reader: Reader | None = None
        self._opening = threading.Lock()

    # ----------------------------------------------------------------------------------------------------- answering
    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        """Answers in the order of the requests.

        Each is sampled from its own seed, but where two tokens are all but equally likely, the choice may depend on
        what else is being answered.
        """
        given_up = threading.Event()
        # Neighbours in this order share the longest beginnings, which a slot then reads once.
        order = sorted(range(len(requests)), key=lambda index: [m.content for m in requests[index].messages])
        alone = len(requests) == 1
        answers = {index: self._pool.submit(self._one, requests[index], alone, given_up) for index in order}
        try:
            return [answers[index].result() for index in range(len(requests))]
        except BaseException:  # Ctrl-C: these answers are not wanted any more
            given_up.set()
            for answer in answers.values():
                answer.cancel()
            raise

    def _one(self, request: Request, alone: bool, given_up: threading.Event) -> Completion | LMError:
        started = time.perf_counter()
        try:
            self._refuse_unusable(request)
        except LMError as error:
            return error
        with self._servers.all_cores() if alone else self._servers.one_slot() as server:
            answer = server.answer(request, given_up.is_set)
        return replace(answer, latency=time.perf_counter() - started) if isinstance(answer, Completion) else answer

    def _refuse_unusable(self, request: Request) -> None:
        if request.max_tokens < 1:
            raise LMError(f"max_tokens must be at least 1, not {request.max_tokens}", retryable=False)
        check_length(self.name, self.max_prompt_tokens(request), request.max_tokens, self.context)

    # ------------------------------------------------------------------------------------------------------ counting
    def max_prompt_tokens(self, request: Request) -> int:
        """The exact number of prompt tokens, chat template included."""
        own = self._tokenizer
        return own.count(request.messages) if own else self._servers.first.count(request.messages)

    def _own_tokenizer(self) -> Tokenizer | None:
        """Counts without a round trip to the server, many times as fast; taken only if it agrees with it."""
        if not tokenizer.supports(self._file):
            return None
        own = tokenizer.Tokenizer(self._file)
        return own if own.count(_PROBE) == self._servers.first.count(_PROBE) else None

    # ------------------------------------------------------------------------------------------------------ weighing
    @property
    def weighs_texts(self) -> bool:
        """Whether ``mean_logprob`` and ``log_likelihood`` answer."""
        from bestprompt.lm import transformer

        return self._tokenizer is not None and transformer.supports(self._file)

    def log_likelihood(self, prompts: Sequence[Request | str], continuations: Sequence[str]) -> FloatArray:
        """(n,) log-probability of each continuation after its prompt, a request or a raw text."""
        return self._open_reader().log_likelihood(prompts, continuations)

    def mean_logprob(self, texts: Sequence[str], contexts: Sequence[str] | None = None) -> FloatArray:
        """(n,) mean log-probability per token of each text, after its context if given; higher is more fluent."""
        return self._open_reader().mean_logprob(texts, contexts)

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """(n, d) mean-pooled final hidden states, each of length one."""
        if self._tokenizer is not None:
            for text in texts:
                check_length(self.name, len(self._tokenizer.encode(text)), 0, self.context)
        return self._servers.first.embed(texts)

    def _open_reader(self) -> Reader:
        """Made when first needed: it holds the weights once more, as floats."""
        from bestprompt.lm.reader import Reader

        with self._opening:
            if self._reader is None:
                if self._tokenizer is None or not self.weighs_texts:
                    kind = self._file.architecture
                    reason = (
                        f"{self.name} cannot weigh texts: that takes a plain llama or qwen2 file, and this is {kind}."
                    )
                    raise LMError(reason, retryable=False, systemic=True)
                self._reader = Reader(self._file, self._tokenizer, self.context)
        return self._reader
