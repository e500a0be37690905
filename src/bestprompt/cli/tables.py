"""Every call of a run as a file: CSV, JSON lines, or Parquet with the extra ``parquet``."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

from bestprompt.errors import ConfigError, MissingExtraError
from bestprompt.run.calls import calls


def write_calls(folder: Path, form: str, target: Path | None) -> None:
    """Writes the calls of the run in ``folder`` to ``target``, or to stdout.

    Raises:
        ConfigError: An unknown format, or Parquet without a file.
        MissingExtraError: Parquet without its extra.
    """
    if form not in ("csv", "jsonl", "parquet"):
        raise ConfigError(f"--format {form!r} is unknown: choose prompt, csv, jsonl, parquet or promptfoo")
    if form == "parquet":
        _write_parquet(calls(folder), target)
        return
    columns = calls(folder)
    rows = list(zip(*columns.values(), strict=True))
    text = _csv(list(columns), rows) if form == "csv" else _jsonl(list(columns), rows)
    if target is None:
        sys.stdout.write(text)
    else:
        target.write_text(text, encoding="utf-8", newline="")


def _csv(names: list[str], rows: list[tuple[Any, ...]]) -> str:
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    # Several right answers stand in one cell as data files have them.
    writer.writerows([names, *([" | ".join(c) if isinstance(c, list) else c for c in row] for row in rows)])
    return lines.getvalue()


def _jsonl(names: list[str], rows: list[tuple[Any, ...]]) -> str:
    return "".join(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n" for row in rows)


def _write_parquet(columns: dict[str, list[Any]], target: Path | None) -> None:
    if target is None:
        raise ConfigError("--format parquet needs a file: --output calls.parquet")
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("Parquet", "parquet") from None
    pyarrow.parquet.write_table(pyarrow.table(columns), target)
