"""Every XLA program of the suite is compiled once, and taken from a folder afterwards; and a count of them.

More than half of the suite's time goes into XLA. JAX can keep programs in a folder; the key of an entry covers the
program, the versions and XLA's flags, and the folder is one of this processor. So the second run of the suite, each of
its workers and each process that a test starts compile only what has changed. On some processors XLA refuses what it
wrote itself, with a line on stderr for each program (JAX issue 38445): there the folder is not used, and the suite is
slower and as green.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp

FOLDER = "jax_compilation_cache_dir"
WORTH_KEEPING = {"jax_persistent_cache_min_compile_time_secs": 0.0, "jax_persistent_cache_min_entry_size_bytes": 0}
# A program that is being written, or whose writer a test has killed, cannot be read: it is compiled as ever.
# pyproject.toml says the same for the processes that run tests.
BROKEN = ("Error reading persistent compilation cache", "Error writing persistent compilation cache")

DAYS = 14  # after which a program is compiled again, so that the folder does not grow for ever

compilations: list[str] = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, _seconds, **_: compilations.append(event) if event.endswith("backend_compile_duration") else None
)


def begin(kept: Path) -> None:
    """Shares programs, kept in this folder, between this process and all that it starts."""
    if FOLDER.upper() in os.environ:  # of the process that started this one, or the user's own
        return
    folder = kept / _processor()
    folder.mkdir(parents=True, exist_ok=True)
    _forget(folder)
    settings = {**WORTH_KEEPING, FOLDER: str(folder)}
    former = {name: getattr(jax.config, name) for name in settings}
    _configure(settings)
    if not _kept_and_taken_back_in_silence():
        _configure(former)
        return
    os.environ |= {name.upper(): str(value) for name, value in settings.items()}
    told = [os.environ.get("PYTHONWARNINGS", ""), *(f"ignore:{message}" for message in BROKEN)]
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, told))


def _processor() -> str:
    """A name for what this processor can do; where that is not told, a folder is of one machine anyway."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    known = sorted({line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))})
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]


def _forget(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.stat().st_mtime < time.time() - DAYS * 86400:
            entry.unlink(missing_ok=True)


def _configure(settings: dict[str, object]) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)


def _kept_and_taken_back_in_silence() -> bool:
    hits: list[str] = []
    jax.monitoring.register_event_listener(lambda event, **_: hits.append(event) if "cache_hits" in event else None)
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            for _ in range(2):
                jax.clear_caches()
                jax.jit(lambda x, at: jnp.sin(x)[at] @ x)(jnp.ones(8), jnp.arange(8)).block_until_ready()
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        return bool(hits) and said.tell() == 0
