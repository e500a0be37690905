"""The embedded model for Llama-family files: chat template, sampling and stop strings around ``Decoder``."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bestprompt import rng
from bestprompt.errors import LMError
from bestprompt.lm import decoder, tokenizer, transformer
from bestprompt.lm.gguf_file import GgufFile
from bestprompt.lm.prefix_tree import PrefixTree
from bestprompt.lm.sampling import sample
from bestprompt.types import Completion, FloatArray, Request, Usage

ENGINE_VERSION = 1
"""Raised whenever the numbers this engine computes change."""


def supports(file: GgufFile) -> bool:
    """Whether this engine computes the file's model and tokeniser completely."""
    return transformer.supports(file) and tokenizer.supports(file)


class LlamaModel:
    """A Llama-family GGUF file, dequantised to float32 and run by JAX.

    Args:
        file: The open file; see ``supports``.
        context: Most tokens of one prompt and its answer together.
        batch_size: Requests worth sending at once; has no influence on the answers.
    """

    def __init__(self, file: GgufFile, context: int, batch_size: int) -> None:
        self.name, self.batch_size, self.concurrency, self.context = file.name, batch_size, 1, context
        self.fingerprint = f"jax{ENGINE_VERSION}:{file.digest}:context={context}"
        self._tokenizer = tokenizer.Tokenizer(file)
        self._shape, self._weights = transformer.load(file)
        self._decoder = decoder.Decoder(self._shape, self._weights, context)
        self._tree: PrefixTree | None = None  # its store is made when first needed
        self._lock = threading.Lock()

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        """Answers in the order of the requests.

        The answer to a request, sampled or not, is the same whatever it is batched with: the arithmetic never mixes
        two requests and the random numbers come from the request's own seed. It may differ in near-ties with another
        number of threads, on another machine or with another version of JAX.
        """
        started = time.perf_counter()
        answers = [self._begin(request) for request in requests]
        by_span: dict[int, list[_Answer]] = defaultdict(list)
        for answer in answers:
            if isinstance(answer, _Answer):
                by_span[decoder.span_of(answer.text.limit)].append(answer)
        with self._exclusive():
            for group in by_span.values():
                self._decoder.write([a.text for a in group], [a.choose for a in group], [a.done for a in group])
        elapsed = time.perf_counter() - started
        return [a.completion(elapsed) if isinstance(a, _Answer) else a for a in answers]

    def max_prompt_tokens(self, request: Request) -> int:
        """The exact number of prompt tokens, chat template included."""
        return len(self._prompt(request))

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """(n, d) mean-pooled final hidden states, each of length one."""
        tokens = [self._encode(text) for text in texts]
        sums = np.zeros((len(texts), self._shape.width))
        for index, _, hidden in self._hidden(tokens, [0] * len(tokens)):
            states = transformer.normed(self._shape, self._weights, _padded(hidden))
            sums[index] += np.asarray(states, dtype=np.float64)[:, : hidden.shape[1]].sum(axis=1)
        return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True))

    def log_likelihood(self, prompts: Sequence[Request | str], continuations: Sequence[str]) -> FloatArray:
        """(n,) natural logarithm of the probability of each continuation after its prompt.

        Args:
            prompts: Requests, rendered by the chat template, or raw texts.
            continuations: What the model would have to say next; at least one token each.
        """
        heads = [self._encode(p) if isinstance(p, str) else self._prompt(p) for p in prompts]
        tails = [self._tokenizer.encode(text) for text in continuations]
        if not all(tails):
            raise LMError("A continuation to be scored is empty.", retryable=False)
        return self._log_likelihood(heads, tails)

    def mean_logprob(self, texts: Sequence[str], contexts: Sequence[str] | None = None) -> FloatArray:
        """(n,) mean log-probability per token of each text, as a document of its own or after its context.

        What was read for one call serves the next ones.
        """
        tails = [self._tokenizer.encode(text) for text in texts]
        if not all(tails):
            raise LMError("A text to be scored is empty.", retryable=False)
        befores = contexts if contexts is not None else [""] * len(tails)
        encoded = {before: [self._tokenizer.separator, *self._tokenizer.encode(before)] for before in set(befores)}
        heads = [encoded[before] for before in befores]
        for head, tail in zip(heads, tails, strict=True):
            self._check_length(len(head) + len(tail), 0)
        with self._exclusive():
            if self._tree is None:
                self._tree = PrefixTree(self._shape, self._weights, self.context)
            total = self._tree.log_likelihood(heads, tails)
        return np.asarray(total / [len(tail) for tail in tails])

    def _log_likelihood(self, heads: Sequence[list[int]], tails: Sequence[list[int]]) -> FloatArray:
        tokens = [head + tail for head, tail in zip(heads, tails, strict=True)]
        first = [len(head) - 1 for head in heads]
        total = np.zeros(len(tokens))
        for index, start, hidden in self._hidden(tokens, first):
            following = np.array(tokens[index][start + 1 : start + 1 + hidden.shape[1]], np.int32)
            targets = np.zeros(transformer.PAGE, np.int32)
            targets[: len(following)] = following
            scores = transformer.log_probabilities(self._shape, self._weights, _padded(hidden), targets)
            wanted = slice(max(0, first[index] - start), len(following))
            total[index] += np.asarray(scores, dtype=np.float64)[wanted].sum()
        return total

    def _hidden(
        self, tokens: Sequence[list[int]], needed: Sequence[int]
    ) -> Iterator[tuple[int, int, NDArray[np.float32]]]:
        by_span: dict[int, list[int]] = defaultdict(list)
        for index, one in enumerate(tokens):
            self._check_length(len(one), 0)
            by_span[decoder.span_of(len(one))].append(index)
        with self._exclusive():
            for group in by_span.values():
                texts = [decoder.Text(tokens[index], len(tokens[index]), needed[index]) for index in group]
                for place, start, hidden in self._decoder.read(texts):
                    yield group[place], start, hidden

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text) or [self._tokenizer.separator]

    def _prompt(self, request: Request) -> list[int]:
        return self._encode(self._tokenizer.render(request.messages))

    def _begin(self, request: Request) -> _Answer | LMError:
        if request.max_tokens < 1:
            return LMError(f"max_tokens must be at least 1, not {request.max_tokens}", retryable=False)
        try:
            prompt = self._prompt(request)
            self._check_length(len(prompt), request.max_tokens)
        except LMError as error:
            return error
        text = decoder.Text(list(prompt), len(prompt) + request.max_tokens, len(prompt) - 1)
        return _Answer(request, text, len(prompt), self._tokenizer)

    def _check_length(self, prompt: int, answer: int) -> None:
        if prompt + answer > self.context:
            parts = f"{prompt} tokens of prompt and up to {answer} of answer" if answer else f"{prompt} tokens"
            raise LMError(
                f"The request is too long for {self.name}: {parts}, but the context is {self.context}. "
                "Shorten it, or open the model with a larger context.",
                retryable=False,
            )

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except BaseException:  # Ctrl-C included: pages promised but not filled must not be found later
                self._decoder.forget()
                self._tree = None
                raise


@dataclass
class _Answer:
    """One request on its way to a completion."""

    request: Request
    text: decoder.Text
    prompt_size: int
    tokenizer: tokenizer.Tokenizer
    written: str = ""
    finish_reason: str = "length"

    def __post_init__(self) -> None:
        self._rng = rng.stream(self.request.seed, "lm.sampling")

    @property
    def choose(self) -> Callable[[int, NDArray[np.float32]], int]:
        """Picks the next token: the likeliest at temperature zero, else a draw."""
        request = self.request
        if request.temperature <= 0.0:
            return lambda best, _: best
        return lambda _, logits: sample(logits, request.temperature, request.top_p, self._rng)

    def done(self) -> bool:
        """Whether the last token ended the answer; keeps ``written`` up to date."""
        tokens = self.text.tokens[self.prompt_size :]
        self.written = self.tokenizer.decode(tokens)
        ends = [at for marker in self.request.stop if marker and (at := self.written.find(marker)) >= 0]
        if ends:
            self.written = self.written[: min(ends)]
        if ends or tokens[-1] in self.tokenizer.ends:
            self.finish_reason = "stop"
            return True
        return False

    def completion(self, seconds: float) -> Completion:
        """What the caller gets."""
        usage = Usage(1, self.prompt_size, len(self.text.tokens) - self.prompt_size)
        return Completion(self.written, usage, seconds, self.finish_reason)


def _padded(hidden: NDArray[np.float32]) -> NDArray[np.float32]:
    # One fixed shape, one compilation.
    return np.pad(hidden, ((0, 0), (0, transformer.PAGE - hidden.shape[1])))
