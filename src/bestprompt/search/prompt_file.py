"""Candidates from a file (the "file" source): one per line, or the JSON layouts people export."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bestprompt.errors import SearchError
from bestprompt.search.embed import clean_prompts

# Keys under which exported pools and prompt lists keep their texts.
KEYS = ("prompts", "annotations", "candidates", "instructions", "instruction", "prompt", "text", "system_prompt", "raw")


def read_prompts(path: str | Path) -> list[str]:
    """Distinct prompts of a ``.txt`` (one per line), ``.json`` or ``.jsonl`` file, in order.

    JSON may be a list of strings or objects, or an object that keeps them under one of ``KEYS``; objects inside are
    searched the same way, which covers lists of annotations, candidate pools of optimisers and prompt sections of
    evaluation files.

    Raises:
        SearchError: The file is missing, is not valid JSON, or holds no prompt.
    """
    file = Path(path)
    try:
        content = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SearchError(f"{file}: cannot be read as UTF-8 text ({error}).") from error
    try:
        if file.suffix == ".json":
            found = list(_prompts(json.loads(content)))
        elif file.suffix == ".jsonl":
            found = [text for line in content.splitlines() if line.strip() for text in _prompts(json.loads(line))]
        else:
            found = content.splitlines()
    except json.JSONDecodeError as error:
        raise SearchError(f"{file}, line {error.lineno}: not valid JSON ({error.msg}).") from error
    kept = [text for text in found if text.strip()]
    if not kept:
        raise SearchError(f"{file}: no prompt found. Put one per line, or use one of the keys {', '.join(KEYS)}.")
    return clean_prompts(kept)


def _prompts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _prompts(item)
    elif isinstance(value, dict):
        for key in KEYS:
            if key in value:
                yield from _prompts(value[key])
