"""Tasks opened by other means than :meth:`Task.load`: a bundled one of another size, a table at hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bestprompt.tasks import files, library
from bestprompt.tasks.base import Task
from bestprompt.types import LanguageModel


def bundled(name: str, n: int = 500, *, seed: int = 0, **difficulty: Any) -> Task:
    """A bundled task, by default as measured; ``difficulty`` goes to its generator.

    Raises:
        TaskError: No bundled task has this name; the nearest one is suggested.
    """
    return Task.from_spec(library.described(name, n, seed=seed, **difficulty))


def from_table(
    table: Mapping[str, Any], base: Path, *, lm: LanguageModel | None = None, file: str | None = None
) -> Task:
    """The task described by a ``[task]`` table; ``base`` is the folder its paths start from.

    Raises:
        ConfigError: Unknown key (with the nearest valid one) or a value of the wrong type.
        TaskError: Bad data.
    """
    return Task.from_spec(files.describe_table(table, base, file=file), lm=lm)
