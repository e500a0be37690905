"""Prompts from a file: text, tables, or the JSON layouts people export; nothing in it is skipped silently.

How a text is read is decided by what it looks like, and said:
    lines of ``---``                          separate prompts of any length
    a ``.md`` file without them               is one prompt
    a ``.txt`` file that reads as a document  (headings, fences, tags, a list among other lines) is one prompt
    any other ``.txt`` file                   has one prompt a line
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bestprompt.errors import TaskError
from bestprompt.tasks.loaders import jsonl_rows, parse_json, read_text

SUFFIXES = (".txt", ".md", ".csv", ".tsv", ".json", ".jsonl")
# Keys under which exported pools and prompt lists keep their texts.
KEYS = ("prompts", "annotations", "candidates", "instructions", "instruction", "prompt", "text", "system_prompt", "raw")
_RULE = re.compile(r"^[ \t]*-{3,}[ \t]*$", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\A\s*-{3,}[ \t]*\n(?:[\w-]+:.*\n)+-{3,}[ \t]*\n")
_DOCUMENT = re.compile(r"^[ \t]*(?:#{1,6} |```|</?\w+>)", re.MULTILINE)
_LISTED = re.compile(r"[ \t]*(?:[-*•]|\d+[.)]) ")


@dataclass(frozen=True, slots=True)
class PromptFile:
    """Distinct prompts in order, and how they were read: what a user should know of it."""

    prompts: tuple[str, ...]
    notes: tuple[str, ...]


def read_prompts(path: Path) -> tuple[str, ...]:
    """Distinct prompts of a file, or of all such files in a folder, in order; see :func:`read_prompt_file`."""
    return read_prompt_file(path).prompts


def read_prompt_file(path: Path) -> PromptFile:
    """Distinct prompts of a text, table or JSON file, or of all such files in a folder, in order.

    JSON is a list of texts or objects, or an object that keeps them under one of ``KEYS``; objects inside are read
    the same way, which covers lists of annotations, candidate pools of optimisers and prompt sections of evaluation
    files. A table has its prompts in a column named by one of ``KEYS``, or has one column.

    Raises:
        TaskError: The file is missing, is not text or not JSON, holds something that is no prompt, or holds none.
    """
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if each.suffix.lower() in SUFFIXES)
        read = [read_prompt_file(each) for each in files]
        return _distinct(
            path, [p for each in read for p in each.prompts], tuple(n for each in read for n in each.notes)
        )
    text, kind, how = read_text(path), path.suffix.lower(), ""
    if kind == ".json":
        found = list(_prompts(parse_json(path, text), path))
    elif kind in (".jsonl", ".ndjson"):
        found = [prompt for row in jsonl_rows(path, text) for prompt in _prompts(row.record, path, row.line)]
    elif kind in (".csv", ".tsv"):
        found, how = _column(path, text, "\t" if kind == ".tsv" else ",")
    else:
        found, how = _written(text, kind)
    return _distinct(path, found, (f"{path.name}: {how}",) if how else ())


def _distinct(path: Path, found: list[str], notes: tuple[str, ...]) -> PromptFile:
    prompts = [prompt.strip() for prompt in found if prompt.strip()]
    if not prompts:
        raise TaskError("no prompt found; put one on each line, or use a JSON list", file=str(path))
    repeated = list(dict.fromkeys(prompt for n, prompt in enumerate(prompts) if prompt in prompts[:n]))
    if repeated:
        named = ", ".join(f"“{' '.join(prompt.split())[:60]}”" for prompt in repeated[:3])
        more = f" and {len(repeated) - 3} more" if len(repeated) > 3 else ""
        notes = (*notes, f"{path.name}: given more than once, and counted once: {named}{more}")
    return PromptFile(tuple(dict.fromkeys(prompts)), notes)


def _written(text: str, kind: str) -> tuple[list[str], str]:
    """The prompts of a text, and how it was read."""
    text, front = _FRONT_MATTER.subn("", text)
    rest = ", without its front matter" if front else ""
    parts = [part for part in _RULE.split(text) if part.strip()]
    if len(parts) > 1:
        return parts, f"{len(parts)} prompts, separated by lines of ---{rest}"
    whole = parts[0] if parts else ""
    lines = [line for line in whole.splitlines() if line.strip()]
    listed = sum(bool(_LISTED.match(line)) for line in lines)
    if kind in (".md", ".markdown") or _DOCUMENT.search(whole) or 0 < listed < len(lines):
        how = f"one prompt of {len(lines)} lines{rest}; separate prompts by lines of --- if it holds several"
        return [whole], how if len(lines) > 1 else ""
    how = f"{len(lines)} prompts, one a line{rest}; separate them by lines of --- if they have several lines"
    return lines, how if len(lines) > 1 else ""


def _column(path: Path, text: str, delimiter: str) -> tuple[list[str], str]:
    """The prompts of a table, and which column they stand in."""
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if any(row)]
    except csv.Error as error:
        raise TaskError(f"is not well-formed CSV: {error}", file=str(path)) from None
    header = [cell.strip().lower() for cell in rows[0]]
    named = next((key for key in KEYS if key in header), None)
    if named is not None:
        at = header.index(named)
        return [row[at] for row in rows[1:] if len(row) > at], f"{len(rows) - 1} prompts in the column “{rows[0][at]}”"
    if len(header) == 1:
        return [row[0] for row in rows], f"{len(rows)} prompts in one column without a header"
    raise TaskError(f"no column named {', '.join(KEYS)}; found {', '.join(rows[0])}", file=str(path), line=1)


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
