"""A Python function as a language model: tests, custom clients, rules, or a model this package does not know."""

from __future__ import annotations

import hashlib
import inspect
import time
from collections.abc import Callable, Sequence

from bestprompt.errors import LMError
from bestprompt.types import Completion, Request, Usage


class FunctionModel:
    """Calls ``f(request)`` for each request; see ``function``."""

    def __init__(
        self, f: Callable[[Request], object], name: str, concurrency: int, deterministic: bool = False
    ) -> None:
        self._function = f
        self.name = name
        self.batch_size = 1
        self.concurrency = concurrency
        self.deterministic = deterministic

    @property
    def fingerprint(self) -> str:
        """The name and, where Python can show it, a digest of the source: an edited function is another model."""
        try:
            source = inspect.getsource(self._function)
        except (OSError, TypeError):
            source = ""
        return f"function:{self.name}:{hashlib.sha256(source.encode()).hexdigest()[:16]}"

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        """Answers in the order of the requests; an exception becomes the error of its own slot."""
        return [self._one(request) for request in requests]

    def max_prompt_tokens(self, request: Request) -> int:
        """Whitespace-separated words: what this model charges for, since a function has no tokeniser."""
        return sum(_words(message.content) for message in request.messages)

    def _one(self, request: Request) -> Completion | LMError:
        started = time.perf_counter()
        try:
            text = self._function(request)
        except LMError as error:
            return error
        except Exception as error:  # whatever the user's function raises belongs to this request alone
            return LMError(f"{self.name} raised {type(error).__name__}: {error}")
        if not isinstance(text, str):
            return LMError(f"{self.name} returned {type(text).__name__}, expected str", retryable=False, systemic=True)
        text, finish = cut_at_stop(text, request.stop)
        words = text.split()
        if len(words) > request.max_tokens:
            text, finish = " ".join(words[: request.max_tokens]), "length"
        usage = Usage(calls=1, prompt_tokens=self.max_prompt_tokens(request), completion_tokens=_words(text))
        return Completion(text, usage, time.perf_counter() - started, finish)


def function(
    f: Callable[[Request], str], name: str | None = None, concurrency: int = 1, *, deterministic: bool = False
) -> FunctionModel:
    """Wraps ``f(request) -> text`` as a language model.

    Tokens are counted as whitespace-separated words, and ``max_tokens`` and ``stop`` are enforced on the text returned.

    Args:
        f: Receives the whole ``Request`` (messages, temperature, seed, ...). An exception becomes an ``LMError`` with
            its message; raise an ``LMError`` yourself to say whether the call may be tried again.
        name: Shown in reports; the function's own name by default.
        concurrency: Calls worth having under way at once; above 1 only if ``f`` is thread-safe.
        deterministic: Whether the same messages get the same answer at any temperature and seed: then no question is
            asked twice.
    """
    if concurrency < 1:
        raise LMError(f"concurrency must be at least 1, not {concurrency}", retryable=False, systemic=True)
    return FunctionModel(f, name or str(getattr(f, "__name__", type(f).__name__)), concurrency, deterministic)


def cut_at_stop(text: str, stop: Sequence[str]) -> tuple[str, str]:
    """``text`` up to the earliest stop string, and ``"stop"``, the finish reason."""
    ends = [at for marker in stop if marker and (at := text.find(marker)) >= 0]
    return (text[: min(ends)] if ends else text), "stop"


def _words(text: str) -> int:
    return len(text.split())
