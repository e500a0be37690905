"""Every XLA program is compiled once in a run of the suite, whichever process needs it first; and a count of them.

More than half of the suite's time went into XLA, which compiled the same programs again in each worker and in each
process that a test starts. JAX can share them through a folder; the key of an entry covers the program, the versions
and XLA's flags. On some processors XLA refuses what it wrote itself, with a line on stderr for each program (JAX issue
38445): there the folder is not used, and the suite is slower and as green.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile

import jax
import jax.numpy as jnp

FOLDER = "jax_compilation_cache_dir"
WORTH_KEEPING = {"jax_persistent_cache_min_compile_time_secs": 0.0, "jax_persistent_cache_min_entry_size_bytes": 0}
# A program that is being written, or whose writer a test has killed, cannot be read: it is compiled as ever.
# pyproject.toml says the same for the processes that run tests.
BROKEN = ("Error reading persistent compilation cache", "Error writing persistent compilation cache")

compilations: list[str] = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, _seconds, **_: compilations.append(event) if event.endswith("backend_compile_duration") else None
)


def begin() -> str | None:
    """Shares programs between this process and all that it starts; the folder, which the caller removes."""
    if FOLDER.upper() in os.environ:  # of the process that started this one, or the user's own
        return None
    settings = {**WORTH_KEEPING, FOLDER: tempfile.mkdtemp(prefix="bestprompt-programs-")}
    former = {name: getattr(jax.config, name) for name in settings}
    _configure(settings)
    if not _kept_and_taken_back_in_silence():
        _configure(former)
        end(settings[FOLDER])
        return None
    os.environ |= {name.upper(): str(value) for name, value in settings.items()}
    told = [os.environ.get("PYTHONWARNINGS", ""), *(f"ignore:{message}" for message in BROKEN)]
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, told))
    return settings[FOLDER]


def end(folder: str | None) -> None:
    """Removes the folder."""
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


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
