"""A language model inside this process: the default weights, or any GGUF file.

Llama and Qwen2 files run on the package's own batched engine (``llama``), every other architecture on llama.cpp
(``llamacpp``); ``docs/adr/0001-embedded-engine.md`` says why.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from bestprompt.errors import LMError
from bestprompt.lm import weights
from bestprompt.types import FloatArray, LanguageModel, Request

if TYPE_CHECKING:
    from bestprompt.lm.gguf_file import GgufFile

THREADS_VARIABLE = "BESTPROMPT_THREADS"
# XLA sizes its thread pool from this variable, once, when JAX first computes anything in the process.
_XLA_THREADS = "NPROC"


class EmbeddedModel(LanguageModel, Protocol):
    """A language model whose weights are at hand: besides answering it embeds texts and weighs them."""

    @property
    def context(self) -> int:
        """Most tokens of one prompt and its answer together."""
        ...

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """(n, d) mean-pooled final hidden states, each of length one."""
        ...

    def log_likelihood(self, prompts: Sequence[Request | str], continuations: Sequence[str]) -> FloatArray:
        """(n,) log-probability of each continuation after its prompt, a request or a raw text."""
        ...

    def mean_logprob(self, texts: Sequence[str], contexts: Sequence[str] | None = None) -> FloatArray:
        """(n,) mean log-probability per token of each text, after its context if given; higher is more fluent."""
        ...


def embedded(
    path: str | os.PathLike[str] | None = None,
    *,
    context: int = 1024,
    batch_size: int | None = None,
    threads: int | None = None,
    engine: Literal["auto", "jax", "llama.cpp"] = "auto",
) -> EmbeddedModel:
    """Opens a model to run in this process.

    Args:
        path: A GGUF file; by default the small model of ``weights``, fetched once and then kept in the cache folder.
        context: Most tokens of one prompt and its answer together; longer requests are refused.
        batch_size: Requests worth sending in one ``complete`` call, 32 by default. On llama.cpp, the requests decoded
            at once, 8 by default.
        threads: CPU threads, all available cores by default (or ``$BESTPROMPT_THREADS``). Beside another busy program
            use one: two threads that wait for each other on a loaded machine are several times slower than one. JAX
            reads the number once per process, when it first computes anything.
        engine: ``"auto"`` takes the fast engine where it knows the architecture and llama.cpp otherwise.

    Raises:
        LMError: No such file, not a GGUF, or the default weights can be neither found nor fetched.
    """
    count = threads if threads is not None else _threads_from_environment()
    if (count is not None and count < 1) or context < 2 or (batch_size is not None and batch_size < 1):
        raise _misuse("threads and batch_size must be at least 1, context at least 2.")
    if count is not None:
        os.environ.setdefault(_XLA_THREADS, str(count))

    from bestprompt.lm import gguf_file, llama

    file = gguf_file.read(Path(path) if path is not None else weights.fetch())
    context = min(context, int(file.setting("context_length", context)))
    if engine == "jax" and not llama.supports(file):
        raise _misuse(f"{file.path} is of the {file.architecture} family, which only engine='llama.cpp' runs.")
    if engine != "llama.cpp" and llama.supports(file):
        return llama.LlamaModel(file, context, batch_size or 32)
    return _on_llamacpp(file, context, batch_size or 8, count)


def _on_llamacpp(file: GgufFile, context: int, batch_size: int, threads: int | None) -> EmbeddedModel:
    from bestprompt.lm.llamacpp import LlamaCppModel

    return LlamaCppModel(file, context, batch_size, threads or _available_cores())


def _threads_from_environment() -> int | None:
    value = os.environ.get(THREADS_VARIABLE)
    if not value:
        return None
    if not value.isdigit():
        raise _misuse(f"{THREADS_VARIABLE} must be a whole number, not {value!r}.")
    return int(value)


def _available_cores() -> int:
    # Respects taskset and containers where the platform can tell.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _misuse(message: str) -> LMError:
    return LMError(message, retryable=False, systemic=True)
