"""How likely a model finds given texts: what llama.cpp's server does not say, computed here from the same file."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from bestprompt.errors import LMError
from bestprompt.lm import transformer
from bestprompt.lm.gguf_file import GgufFile
from bestprompt.lm.prefix_tree import PrefixTree
from bestprompt.lm.tokenizer import Tokenizer, check_length
from bestprompt.types import FloatArray, Request


class Reader:
    """A Llama-family GGUF file, dequantised to float32 and run by JAX; thread-safe.

    What was read for one call serves the next ones, so a result may differ in its last bits with what was asked before.

    Args:
        file: The open file; see ``transformer.supports``.
        tokenizer: Its tokeniser.
        longest: Most tokens of a text, what stands before it included.
    """

    def __init__(self, file: GgufFile, tokenizer: Tokenizer, longest: int) -> None:
        self._name, self._tokenizer, self._longest = file.name, tokenizer, longest
        self._shape, self._weights = transformer.load(file)
        self._tree: PrefixTree | None = None
        self._lock = threading.Lock()

    def log_likelihood(self, prompts: Sequence[Request | str], continuations: Sequence[str]) -> FloatArray:
        """(n,) natural logarithm of the probability of each continuation after its prompt.

        Args:
            prompts: Requests, rendered by the chat template, or raw texts.
            continuations: What the model would have to say next; at least one token each.
        """
        return self._sums([self._prompt(prompt) for prompt in prompts], self._tails(continuations))

    def mean_logprob(self, texts: Sequence[str], contexts: Sequence[str] | None = None) -> FloatArray:
        """(n,) mean log-probability per token of each text, as a document of its own or after its context."""
        tails = self._tails(texts)
        befores = contexts if contexts is not None else [""] * len(tails)
        encoded = {before: [self._tokenizer.separator, *self._tokenizer.encode(before)] for before in set(befores)}
        return self._sums([encoded[before] for before in befores], tails) / [len(tail) for tail in tails]

    def _prompt(self, prompt: Request | str) -> list[int]:
        text = prompt if isinstance(prompt, str) else self._tokenizer.render(prompt.messages)
        return self._tokenizer.encode(text) or [self._tokenizer.separator]

    def _tails(self, texts: Sequence[str]) -> list[list[int]]:
        tails = [self._tokenizer.encode(text) for text in texts]
        if not all(tails):
            raise LMError("A text to be scored is empty.", retryable=False)
        return tails

    def _sums(self, heads: Sequence[list[int]], tails: Sequence[list[int]]) -> FloatArray:
        for head, tail in zip(heads, tails, strict=True):
            check_length(self._name, len(head) + len(tail), 0, self._longest)
        with self._lock:
            tree = self._tree or PrefixTree(self._shape, self._weights, self._longest)
            self._tree = None  # an interruption leaves it half filled: it is kept only when all went well
            total = tree.log_likelihood(heads, tails)
            self._tree = tree
        return np.asarray(total)
