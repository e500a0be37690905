"""Whole tasks from what a user has: a bundled name, a TOML file, a data file, a folder.

A task file::

    [task]
    name = "capitals"
    data = "capitals.csv"            # or data = { train = "a.csv", validation = "b.csv", test = "c.csv" }
    prompts = "prompts.txt"          # or examples = ["Name the capital.", ...]
    template = "{prompt}\\n\\n{input}"
    scorer = { kind = "exact", extract = "first-line" }
    max_tokens = 16

Paths are relative to the TOML file. Without ``data``, ``name`` must be a bundled task, and the other keys change it.
Tables other than ``[task]`` are left to whoever reads the rest of the file.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bestprompt.errors import ConfigError, TaskError
from bestprompt.tasks import library, loaders, prompt_file
from bestprompt.tasks.records import Columns
from bestprompt.tasks.spec import Splits, TaskSpec
from bestprompt.types import Pair

_TEXTS = ("name", "description", "template", "system", "prompts")
_KEYS = (*_TEXTS, "data", "examples", "scorer", "max_tokens", "stop", "columns")
_PARTS = ("train", "validation", "test")


def describe(name_or_path: str | PathLike[str], changes: Mapping[str, Any] = MappingProxyType({})) -> TaskSpec:
    """The task behind a bundled name or a path, with the keys of a table that outrank it; see :meth:`Task.load`."""
    try:
        return _described(name_or_path, changes)
    except OSError as error:  # a name that no file can have, a folder that may not be looked into
        raise TaskError(f"cannot be read: {error.strerror}", file=str(name_or_path)) from None


def _described(name_or_path: str | PathLike[str], changes: Mapping[str, Any]) -> TaskSpec:
    path = Path(name_or_path)
    if str(name_or_path) in library.names():
        return describe_table({"name": str(name_or_path), **changes}, Path())
    if path.is_dir():
        return _from_folder(path, changes)
    if path.suffix.lower() == ".toml":
        return _from_toml(path, changes)
    if path.suffix.lower() in loaders.DATA_SUFFIXES:
        return describe_table({"name": path.stem, "data": path.name, **changes}, path.parent)
    if path.exists():
        expected = ", ".join((".toml", *loaders.DATA_SUFFIXES))
        raise TaskError(f"unknown kind of file; expected a folder or one of: {expected}", file=str(path))
    return library.described(str(name_or_path))  # refuses, with the nearest name


def _from_toml(path: Path, changes: Mapping[str, Any]) -> TaskSpec:
    try:
        parsed = tomllib.loads(loaders.read_text(path))
    except (ValueError, RecursionError) as error:
        raise TaskError(f"is not TOML: {error}", file=str(path)) from None
    table = parsed.get("task")
    if not isinstance(table, Mapping):
        raise TaskError("has no [task] table", file=str(path))
    outranked = {"prompts"} if "examples" in changes else set()
    kept = {key: value for key, value in table.items() if key not in outranked}
    return describe_table({"name": path.stem, **kept, **changes}, path.parent, file=str(path))


def _from_folder(folder: Path, changes: Mapping[str, Any]) -> TaskSpec:
    if (folder / "task.toml").is_file():
        return _from_toml(folder / "task.toml", changes)
    table: dict[str, Any] = {"name": folder.resolve().name, **changes}
    parts = {part: name for part in _PARTS if (name := _find(folder, part, loaders.DATA_SUFFIXES))}
    pairs = _find(folder, "pairs", loaders.DATA_SUFFIXES)
    if parts and pairs:
        raise TaskError(f"holds both {pairs} and {', '.join(parts.values())}; keep one of the two", file=str(folder))
    if not parts and not pairs:
        raise TaskError(
            "holds no task: expected task.toml, or pairs.csv (.tsv, .jsonl, .json) with prompts.txt (.json)",
            file=str(folder),
        )
    table["data"] = parts or pairs
    if "examples" not in changes and (prompts := _find(folder, "prompts", prompt_file.SUFFIXES)):
        table["prompts"] = prompts
    return describe_table(table, folder)


def _find(folder: Path, stem: str, suffixes: Sequence[str]) -> str | None:
    found = [f"{stem}{suffix}" for suffix in suffixes if (folder / f"{stem}{suffix}").is_file()]
    if len(found) > 1:
        raise TaskError(f"holds both {found[0]} and {found[1]}; keep one of the two", file=str(folder))
    return found[0] if found else None


def describe_table(table: Mapping[str, Any], base: Path, *, file: str | None = None) -> TaskSpec:
    """The task described by a ``[task]`` table; ``base`` is the folder its paths start from.

    Raises:
        ConfigError: Unknown key (with the nearest valid one) or a value of the wrong type.
        TaskError: Bad data.
    """
    _check_table(table, file)
    examples, said = _examples(table, base)
    frame = {key: table[key] for key in ("description", "template", "system", "max_tokens") if key in table}
    if "stop" in table:
        frame["stop"] = (table["stop"],) if isinstance(table["stop"], str) else tuple(table["stop"])
    if "data" not in table:
        if "name" not in table:
            raise ConfigError("task: give data, or the name of a bundled task")
        return _changed(library.described(table["name"]), table, frame, examples)
    pairs, splits, notes = _pairs(table["data"], base, Columns(**table.get("columns", {})))
    systems = tuple(dict.fromkeys(str(pair.meta["system"]) for pair in pairs if pair.meta.get("system")))
    return TaskSpec(
        name=table.get("name", "custom"),
        pairs=pairs,
        examples=tuple(dict.fromkeys(examples if examples is not None else systems)),
        scorer=table.get("scorer", "auto"),
        fixed_splits=splits,
        notes=(*notes, *said),
        **frame,
    )


def _changed(
    task: TaskSpec, table: Mapping[str, Any], frame: dict[str, Any], examples: Sequence[str] | None
) -> TaskSpec:
    if "scorer" in table:
        frame["scorer"] = table["scorer"]
    if examples is not None:
        frame["examples"] = tuple(examples)
    # Another frame or score is another task: what was measured no longer holds.
    measured_on = {} if {"template", "system", "scorer", "max_tokens", "stop"} & frame.keys() else task.measured_on
    return dataclasses.replace(task, measured_on=measured_on, **frame)


def _examples(table: Mapping[str, Any], base: Path) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """The example prompts, and how they were read; ``None`` where none are given."""
    if "prompts" in table and "examples" in table:
        raise ConfigError("task: give examples or prompts, not both")
    if "prompts" in table:
        read = prompt_file.read_prompt_file(base / table["prompts"])
        return read.prompts, read.notes
    return (tuple(table["examples"]) if "examples" in table else None), ()


def _pairs(
    data: str | Mapping[str, str], base: Path, columns: Columns
) -> tuple[tuple[Pair, ...], Splits | None, tuple[str, ...]]:
    if isinstance(data, str):
        pairs, notes = loaders.read_pairs(base / data, columns)
        return pairs, None, notes
    read = {part: loaders.read_pairs(base / data[part], columns) for part in _PARTS if part in data}
    if missing := [part for part in _PARTS if part not in data]:
        raise TaskError(f"split files: no {' and no '.join(missing)}; give all of {', '.join(_PARTS)}", file=str(base))
    owner: dict[str, str] = {}
    for part, (pairs, _) in read.items():
        for pair in pairs:
            if owner.setdefault(pair.input, part) != part:
                where = f"{data[part]}: {pair.input[:60]!r} is also in {data[owner[pair.input]]}"
                raise TaskError(f"{where}; a split must not share inputs with another", file=str(base))
    everything = tuple(pair for pairs, _ in read.values() for pair in pairs)
    notes = tuple(note for _, several in read.values() for note in several)
    return everything, Splits(*(read[part][0] for part in _PARTS)), notes


def _check_table(table: Mapping[str, Any], file: str | None) -> None:
    where = f"{file}: " if file else ""
    for key, value in table.items():
        if key not in _KEYS:
            near = get_close_matches(key, _KEYS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"allowed: {', '.join(_KEYS)}"
            raise ConfigError(f"{where}task.{key} is unknown; {hint}")
        if not _well_typed(key, value):
            raise ConfigError(f"{where}task.{key} = {value!r} is of the wrong type")


def _well_typed(key: str, value: Any) -> bool:
    if key in _TEXTS:
        return isinstance(value, str)
    if key == "max_tokens":
        return isinstance(value, int) and not isinstance(value, bool)
    if key in ("data", "columns"):
        keys = _PARTS if key == "data" else ("input", "output")
        table = isinstance(value, Mapping) and all(k in keys and isinstance(v, str) for k, v in value.items())
        return table or (key == "data" and isinstance(value, str))
    if key in ("examples", "stop"):
        texts = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
        return texts or (key == "stop" and isinstance(value, str))
    return isinstance(value, str | Mapping)
