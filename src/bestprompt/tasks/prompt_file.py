"""Prompts from a file: text, tables, JSON, YAML, and what other tools write; nothing in it is skipped silently.

How a text is read is decided by what it looks like, and said:
    lines of ``---``                          separate prompts of any length
    a ``.md`` file without them               is one prompt
    a ``.txt`` file that reads as a document  (headings, fences, tags, a list among other lines) is one prompt
    any other ``.txt`` file                   has one prompt a line
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bestprompt.errors import TaskError
from bestprompt.tasks.loaders import jsonl_rows, parse_json, read_text
from bestprompt.tasks.pools import Found, folder_file, in_json, in_json_lines
from bestprompt.tasks.prompt_table import KEYS, from_csv, from_parquet
from bestprompt.tasks.promptfoo import CONFIGS, YAML_SUFFIXES, from_promptfoo, parse_yaml

SUFFIXES = (".txt", ".md", ".csv", ".tsv", ".json", ".jsonl")
_RULE = re.compile(r"^[ \t]*-{3,}[ \t]*\r?$", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\A\s*-{3,}[ \t]*\r?\n(?:[\w-]+:.*\n)+-{3,}[ \t]*\r?\n")
_DOCUMENT = re.compile(r"^[ \t]*(?:#{1,6} |```|</?\w+>)", re.MULTILINE)
_LISTED = re.compile(r"[ \t]*(?:[-*•]|\d+[.)]) ")


@dataclass(frozen=True, slots=True)
class PromptFile:
    """Distinct prompts in order, where each was found, and how they were read: what a user should know of it.

    Attributes:
        prompts: The texts.
        notes: How they were read, in words.
        sources: The tool that wrote each, or ``file``, and the file: ``"GEPA: my-run"``, ``"file: ideas.txt"``.
    """

    prompts: tuple[str, ...]
    notes: tuple[str, ...]
    sources: tuple[str, ...] = ()


def read_prompts(path: Path) -> tuple[str, ...]:
    """Distinct prompts of a file, or of all such files in a folder, in order; see :func:`read_prompt_file`."""
    return read_prompt_file(path).prompts


def read_prompt_file(path: Path) -> PromptFile:
    """Distinct prompts of a text, table, JSON or YAML file, or of all such files in a folder, in order.

    JSON and YAML are a list of texts or objects, or an object that keeps them under one of ``KEYS``; objects inside are
    read the same way, which covers lists of annotations and prompt sections of evaluation files. What GEPA, DSPy,
    promptfoo, PromptWizard and promptolution write is known by its layout (``pools.py``, ``promptfoo.py``). A table
    has its prompts in a column named by one of ``KEYS`` or like it, or has one column.

    Raises:
        TaskError: The file is missing, is not text or not JSON, holds something that is no prompt, or holds none.
        MissingExtraError: A YAML or Parquet file, and nothing to read it with.
    """
    if path.is_dir():
        return _folder(path)
    found = _found(path)
    return _distinct(path, found, f"{found.by}: {path.name}")


def _folder(path: Path) -> PromptFile:
    config = next((path / name for name in CONFIGS if (path / name).is_file()), None)
    if (known := folder_file(path) or config) is not None:
        found = _found(known)
        return _distinct(known, found, f"{found.by}: {path.resolve().name}")
    files = sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
    read = [read_prompt_file(each) for each in files if each.suffix.lower() in SUFFIXES]
    sources = {p: s for each in reversed(read) for p, s in zip(each.prompts, each.sources, strict=True)}
    prompts = [prompt for each in read for prompt in each.prompts]
    whole = _distinct(path, Found(prompts), "")
    left = [each.name for each in files if each.suffix.lower() not in SUFFIXES]
    ignored = (f"{path.name}: not read: {', '.join(left[:5])}{', …' * (len(left) > 5)}",) if left else ()
    notes = (*(note for each in read for note in each.notes), *whole.notes, *ignored)
    return PromptFile(whole.prompts, notes, tuple(sources[prompt] for prompt in whole.prompts))


def _found(path: Path) -> Found:
    kind = path.suffix.lower()
    if kind == ".parquet":
        return from_parquet(path)
    if kind in (".pkl", ".pickle", ".bin"):
        raise TaskError("is a pickle or a binary file, which is not opened; save its prompts as JSON", file=str(path))
    text = read_text(path)
    if kind == ".json" or kind in YAML_SUFFIXES:
        value = parse_json(path, text) if kind == ".json" else parse_yaml(path, text)
        found = from_promptfoo(value, path) or in_json(value, path)
        return found or Found(list(_prompts(value, path)))
    if kind in (".jsonl", ".ndjson"):
        rows = list(jsonl_rows(path, text))
        known = in_json_lines([row.record for row in rows])
        return known or Found([prompt for row in rows for prompt in _prompts(row.record, path, row.line)])
    if kind in (".csv", ".tsv"):
        return from_csv(path, text)
    return _written(text, kind)


def _distinct(path: Path, found: Found, source: str) -> PromptFile:
    prompts = [prompt.strip() for prompt in found.prompts if prompt.strip()]
    if not prompts:
        raise TaskError("no prompt found; put one on each line, or use a JSON list", file=str(path))
    notes = [f"{source}: {found.how}" if found.by != "file" else f"{path.name}: {found.how}"] if found.how else []
    different = tuple(dict.fromkeys(prompts))
    if found.by == "file" and len(different) < len(prompts):
        counts: dict[str, int] = {}
        for prompt in prompts:
            counts[prompt] = counts.get(prompt, 0) + 1
        repeated = [prompt for prompt, count in counts.items() if count > 1]
        named = ", ".join(f"“{' '.join(prompt.split())[:60]}”" for prompt in repeated[:3])
        more = f" and {len(repeated) - 3} more" if len(repeated) > 3 else ""
        notes.append(f"{path.name}: given more than once, and counted once: {named}{more}")
    return PromptFile(different, tuple(notes), (source,) * len(different))


def _written(text: str, kind: str) -> Found:
    """The prompts of a text, and how it was read."""
    text, front = _FRONT_MATTER.subn("", text)
    rest = ", without its front matter" if front else ""
    parts = [part for part in _RULE.split(text) if part.strip()]
    if len(parts) > 1:
        return Found(parts, how=f"{len(parts)} prompts, separated by lines of ---{rest}")
    whole = parts[0] if parts else ""
    lines = [line for line in whole.splitlines() if line.strip()]
    listed = sum(bool(_LISTED.match(line)) for line in lines)
    if kind in (".md", ".markdown") or _DOCUMENT.search(whole) or 0 < listed < len(lines):
        how = f"one prompt of {len(lines)} lines{rest}; separate prompts by lines of --- if it holds several"
        return Found([whole], how=how if len(lines) > 1 else "")
    how = f"{len(lines)} prompts, one a line{rest}; separate them by lines of --- if they have several lines"
    return Found(lines, how=how if len(lines) > 1 else "")


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
