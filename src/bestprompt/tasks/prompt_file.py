"""Prompts from a file: one per line, or the JSON layouts people export; nothing in it is skipped silently."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bestprompt.errors import TaskError
from bestprompt.tasks.loaders import jsonl_rows, parse_json, read_text

SUFFIXES = (".txt", ".json", ".jsonl")
# Keys under which exported pools and prompt lists keep their texts.
KEYS = ("prompts", "annotations", "candidates", "instructions", "instruction", "prompt", "text", "system_prompt", "raw")


def read_prompts(path: Path) -> tuple[str, ...]:
    """Distinct prompts of a text file (one per line), a ``.json`` or a ``.jsonl`` file, in order.

    JSON is a list of texts or objects, or an object that keeps them under one of ``KEYS``; objects inside are read
    the same way, which covers lists of annotations, candidate pools of optimisers and prompt sections of evaluation
    files.

    Raises:
        TaskError: The file is missing, is not text or not JSON, holds something that is no prompt, or holds none.
    """
    text, kind = read_text(path), path.suffix.lower()
    if kind == ".json":
        found = list(_prompts(parse_json(path, text), path))
    elif kind in (".jsonl", ".ndjson"):
        found = [prompt for row in jsonl_rows(path, text) for prompt in _prompts(row.record, path, row.line)]
    else:
        found = [line for line in text.splitlines() if line.strip()]
    prompts = tuple(dict.fromkeys(prompt.strip() for prompt in found))
    if not prompts:
        raise TaskError("no prompt found; put one on each line, or use a JSON list", file=str(path))
    return prompts


def _prompts(value: Any, path: Path, line: int | None = None) -> Iterator[str]:
    if isinstance(value, str) and value.strip():
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _prompts(item, path, line)
    elif isinstance(value, dict) and any(key in value for key in KEYS):
        for key in KEYS:
            if key in value:
                yield from _prompts(value[key], path, line)
    elif isinstance(value, dict):
        raise TaskError(f"no prompt found under any of the keys {', '.join(KEYS)}", file=str(path), line=line)
    else:
        raise TaskError(f"a prompt is not a text: {value!r}", file=str(path), line=line)
