"""Pairs from files: CSV, TSV, JSONL, JSON.

Every problem is a ``TaskError`` that names the file and the physical line; no row is skipped. Rows that are identical
are counted once and reported in the notes; rows that give one input two different answers are an error, because only
the user knows whether both are right (then they belong in one row, as ``references``) or one is wrong.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bestprompt.errors import TaskError
from bestprompt.tasks.records import INPUT_KEYS, REFERENCE_KEYS, Columns, pair_from
from bestprompt.types import Pair

DATA_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")
_KNOWN_COLUMNS = {key for groups in (INPUT_KEYS, REFERENCE_KEYS) for group in groups for key in group}


@dataclass(frozen=True, slots=True)
class DataRow:
    """A record and the line on which it starts."""

    line: int
    record: Any


def read_text(path: Path) -> str:
    """The text of a file in UTF-8 (with or without byte-order mark) or in UTF-16 with one."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise TaskError("no such file", file=str(path)) from None
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise TaskError(f"cannot be read: {getattr(error, 'strerror', error)}", file=str(path)) from None
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise TaskError("is not UTF-8 text; save the file as UTF-8", file=str(path), line=line) from None
    if not text.strip():
        raise TaskError("is empty", file=str(path))
    return text


def read_pairs(path: Path, columns: Columns = Columns()) -> tuple[tuple[Pair, ...], tuple[str, ...]]:  # noqa: B008
    """The pairs of a file, and notes on what a reader should know (repeated rows).

    Raises:
        TaskError: With file and line.
    """
    readers = {".csv": _csv_rows, ".tsv": _csv_rows, ".jsonl": jsonl_rows, ".ndjson": jsonl_rows, ".json": _json_rows}
    if path.suffix.lower() not in readers:
        raise TaskError(f"unknown kind of file; expected one of: {', '.join(readers)}", file=str(path))
    rows = readers[path.suffix.lower()](path, read_text(path))
    pairs: dict[str, tuple[int, Pair]] = {}
    repeated: list[int] = []
    for row in rows:
        try:
            pair = pair_from(row.record, columns)
        except TaskError as error:
            raise TaskError(str(error), file=str(path), line=row.line) from None
        line, known = pairs.setdefault(pair.input, (row.line, pair))
        if known is pair:
            continue
        if known != pair:
            raise TaskError(
                f"repeats the input of line {line} ({pair.input[:60]!r}) with another answer; if both are right, give "
                "them as references of one row",
                file=str(path),
                line=row.line,
            )
        repeated.append(row.line)
    if not pairs:
        raise TaskError("holds no rows", file=str(path))
    notes: tuple[str, ...] = ()
    if repeated:
        lines = ", ".join(map(str, repeated[:5])) + (", …" if len(repeated) > 5 else "")
        notes = (f"{path.name}: {len(repeated)} rows repeat an earlier one and count once (lines {lines})",)
    return tuple(pair for _, pair in pairs.values()), notes


def _csv_rows(path: Path, text: str) -> Iterator[DataRow]:
    header_line = text.splitlines()[0]
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ";" if ";" in header_line and "," not in header_line else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    start = 1
    try:
        for cells in reader:
            line, start = start, reader.line_num + 1  # a quoted cell may span lines: name the first of them
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = _checked_header([cell.strip() for cell in cells], path, line)
                continue
            if len(cells) != len(header):
                raise TaskError(f"{len(cells)} cells, but the header has {len(header)}", file=str(path), line=line)
            yield DataRow(line, {key: _cell(key, cell) for key, cell in zip(header, cells, strict=True)})
    except csv.Error as error:
        raise TaskError(f"is not well-formed CSV: {error}", file=str(path), line=start) from None


def _checked_header(header: list[str], path: Path, line: int) -> list[str]:
    # Names are matched without regard to case; "Input" is what spreadsheets write.
    names = [name.lower() if name.lower() in _KNOWN_COLUMNS else name for name in header]
    if len(set(names)) < len(names) or "" in names:
        raise TaskError(f"every column needs a name of its own, found {header}", file=str(path), line=line)
    return names


def _cell(key: str, cell: str) -> Any:
    """``references`` and ``options`` hold lists: as JSON, or as texts separated by ``|``."""
    if key not in ("references", "options"):
        return cell
    if cell.lstrip().startswith("["):
        try:
            return json.loads(cell)
        except (ValueError, RecursionError):
            return cell
    return [part.strip() for part in cell.split("|")]


def jsonl_rows(path: Path, text: str) -> Iterator[DataRow]:
    """One record per line that is not blank."""
    # Not splitlines(): that also cuts at U+2028, which JSON allows inside a text.
    for line, content in enumerate(text.split("\n"), start=1):
        if content.strip():
            yield DataRow(line, parse_json(path, content, line))


def _json_rows(path: Path, text: str) -> Iterator[DataRow]:
    """A list of records, or an object with ``examples`` (or ``pairs``): a list, or an object of numbered records."""
    parse_json(path, text)
    start = len(text) - len(text.lstrip())
    if text[start] == "{":
        inside = {key: offset for key, offset, _ in _members(text, start) if key in ("examples", "pairs")}
        if not inside:
            raise TaskError('expected a list of records or an object with "examples"', file=str(path))
        start = next(iter(inside.values()))
    if text[start] not in "[{":
        raise TaskError("the examples must be a list or an object", file=str(path), line=_line(text, start))
    for _, offset, record in _members(text, start):
        yield DataRow(_line(text, offset), record)


def _members(text: str, start: int) -> Iterator[tuple[str | int, int, Any]]:
    """(key or index, offset, value) of each member of the JSON object or list at ``start``, which is known to be valid.

    The standard parser gives no positions, and forgets the first of two members with the same key.
    """
    decoder = json.JSONDecoder()
    is_object = text[start] == "{"

    def skip(position: int, marks: str) -> int:
        while text[position].isspace() or text[position] in marks:
            position += 1
        return position

    position, index = skip(start + 1, ""), 0
    while text[position] not in "]}":
        key: str | int = index
        if is_object:
            key, position = decoder.raw_decode(text, position)
            position = skip(position, ":")
        value, end = decoder.raw_decode(text, position)
        yield key, position, value
        position, index = skip(end, ","), index + 1


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def parse_json(path: Path, text: str, line: int = 1) -> Any:
    """The value of a JSON text that begins on ``line``; a ``TaskError`` names the line where it breaks."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        at = line + error.lineno - 1
        raise TaskError(f"is not JSON: {error.msg} at column {error.colno}", file=str(path), line=at) from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or nested too deeply
        raise TaskError(f"cannot be read: {error}", file=str(path), line=line) from None
