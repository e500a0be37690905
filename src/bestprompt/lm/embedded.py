"""A language model inside this process: the default weights, or any GGUF file.

llama.cpp answers (``llamacpp``); how likely the model finds a given text, which it does not say, is read from the same
file (``reader``). ``docs/adr/0007-answers-by-llama-cpp.md`` says why.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from bestprompt.errors import LMError
from bestprompt.lm import weights
from bestprompt.lm.settings import BackEnd, ModelSettings

if TYPE_CHECKING:
    from bestprompt.lm.embedded_model import EmbeddedModel

THREADS_VARIABLE = "BESTPROMPT_THREADS"
# XLA sizes its thread pool from this variable, once, when JAX first computes anything in the process.
_XLA_THREADS = "NPROC"


def embedded(
    path: str | os.PathLike[str] | None = None,
    *,
    context: int = 1024,
    batch_size: int = 32,
    threads: int | None = None,
) -> EmbeddedModel:
    """Opens a model to run in this process.

    Args:
        path: A GGUF file; by default the small model of ``weights``, fetched once and then kept in the cache folder.
        context: Most tokens of one prompt and its answer together; longer requests are refused.
        batch_size: Requests worth sending in one ``complete`` call.
        threads: CPU threads, all available cores by default (or ``$BESTPROMPT_THREADS``).

    Raises:
        LMError: No such file, not a GGUF, or the default weights can be neither found nor fetched.
    """
    count = threads if threads is not None else _threads_from_environment()
    if (count is not None and count < 1) or context < 2 or batch_size < 1:
        raise _misuse("threads and batch_size must be at least 1, context at least 2.")
    if count is not None:
        os.environ.setdefault(_XLA_THREADS, str(count))

    from bestprompt.lm import gguf_file
    from bestprompt.lm.embedded_model import EmbeddedModel

    file = gguf_file.read(Path(path) if path is not None else weights.fetch())
    context = min(context, int(file.setting("context_length", context)))
    return EmbeddedModel(file, context, batch_size, count or _available_cores())


def _from_settings(settings: ModelSettings) -> EmbeddedModel:
    return embedded(settings.path, threads=settings.threads)


BACK_END = BackEnd(_from_settings)


def current_fingerprint(recorded: str) -> str:
    """A recorded fingerprint as the same weights have it now: GGUF files were answered by another engine once."""
    return re.sub(r"^(?:jax1|llama\.cpp)(:\w+:context=\d+)(?::batch=\d+)?$", r"llama.cpp\1", recorded)


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
