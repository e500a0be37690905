"""Prompts in a column of a table: CSV, TSV, or Parquet with the extra ``parquet``."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from bestprompt.errors import MissingExtraError, TaskError
from bestprompt.tasks.pools import Found

# Names of columns and keys under which exported pools and prompt lists keep their texts, the plainest first.
KEYS = ("prompts", "annotations", "candidates", "instructions", "instruction", "prompt", "text", "system_prompt", "raw")
_FURTHER = (
    "prompt_text", "prompt_template", "template", "best_prompt", "final_prompt", "optimized_prompt", "candidate",
    "system", "system_message", "message", "content",
)  # fmt: skip
_TELLING = re.compile(r"prompt|instruction")
_PROMPTOLUTION = {"step", "input_tokens", "output_tokens", "time", "score", "prompt"}


def from_csv(path: Path, text: str) -> Found:
    """The prompts of a CSV or TSV file.

    Raises:
        TaskError: It is malformed, or no column holds prompts.
    """
    first = text.splitlines()[0]
    kind = "\t" if path.suffix.lower() == ".tsv" else ";" if ";" in first and "," not in first else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=kind, strict=True)
    rows: list[tuple[int, list[str]]] = []
    line = 1
    try:
        for cells in reader:
            if any(cells):
                rows.append((line, cells))
            line = reader.line_num + 1
    except csv.Error as error:
        raise TaskError(f"is not well-formed CSV: {error}", file=str(path), line=line) from None
    header = rows[0][1]
    at = _column(path, header, [cells for _, cells in rows[1:]])
    if at is None:
        return Found([cells[0] for _, cells in rows], how=f"{len(rows)} prompts in one column without a header")
    for line, cells in rows[1:]:
        if len(cells) <= at:
            raise TaskError(f"{len(cells)} cells, and none in the column “{header[at]}”", file=str(path), line=line)
    return _found(path, header, at, [cells[at] for _, cells in rows[1:]])


def from_parquet(path: Path) -> Found:
    """The prompts of a Parquet file.

    Raises:
        TaskError: It cannot be read, or no column holds prompts.
        MissingExtraError: There is no reader.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError(f"{path.name}: a Parquet file", "parquet") from None
    try:
        table = pyarrow.parquet.read_table(path)
    except FileNotFoundError:
        raise TaskError("no such file", file=str(path)) from None
    except (OSError, pyarrow.ArrowException) as error:
        raise TaskError(f"is not Parquet: {error}", file=str(path)) from None
    header = [str(name) for name in table.column_names]
    columns = [["" if cell is None else str(cell) for cell in table.column(n).to_pylist()] for n in range(len(header))]
    at = _column(path, header, [list(row) for row in zip(*columns, strict=True)])
    return _found(path, header, at or 0, columns[at or 0])


def _column(path: Path, header: list[str], rows: list[list[str]]) -> int | None:
    """The column of the prompts; ``None`` where there is one column, and no header."""
    names = [re.sub(r"\W+", "_", name.strip().lower()).strip("_") for name in header]
    for known in (KEYS, _FURTHER):
        if named := next((key for key in known if key in names), None):
            return names.index(named)
    # One column that says what it is, and does not number, count or rate prompts instead of holding them.
    telling = [n for n, name in enumerate(names) if _TELLING.search(name) and _holds_texts(rows, n)]
    if len(telling) == 1:
        return telling[0]
    if len(header) == 1:
        return None
    several = f"several columns may be meant: {', '.join(header[n] for n in telling)}; " if telling else ""
    raise TaskError(
        f"{several}no column named {', '.join((*KEYS, *_FURTHER))}; found {', '.join(header)}", file=str(path), line=1
    )


def _holds_texts(rows: list[list[str]], at: int) -> bool:
    cells = [row[at].strip() for row in rows if len(row) > at and row[at].strip()]
    return any(" " in cell for cell in cells)


def _found(path: Path, header: list[str], at: int, cells: list[str]) -> Found:
    texts = [cell for cell in cells if cell.strip()]
    how = f"{len(texts)} prompts in the column “{header[at]}”"
    if missing := len(cells) - len(texts):
        how += f", {missing} rows without one"
    if set(header) >= _PROMPTOLUTION or path.name == "prompt_scores.parquet":
        return Found(list(dict.fromkeys(texts)), "promptolution", f"{how}, {len(set(texts))} different ones")
    return Found(texts, how=how)
