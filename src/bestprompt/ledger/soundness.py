"""Whether a record is what it should be, found out before anything rests on it.

A file may have been written by a newer program, changed by hand, or damaged by a disk. What SQLite itself finds wrong
is asked first, then whether every table has the columns that its version has, then whether all that is stored can be
read and fits together. A reader is told in one sentence; nothing is mended, because nobody knows what was there.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from bestprompt.errors import LedgerError
from bestprompt.ledger.schema import MIGRATIONS

if TYPE_CHECKING:
    from bestprompt.ledger.ledger import Ledger
    from bestprompt.ledger.rows import Entry

P = ParamSpec("P")
T = TypeVar("T")
_WRONG_VALUES = (sqlite3.Error, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What goes wrong in here goes wrong because of the record.

    Raises:
        LedgerError: Something did; the message says what.
    """
    try:
        yield
    except (*_WRONG_VALUES, AssertionError, RecursionError) as error:
        what = f"{type(error).__name__}: " if not isinstance(error, sqlite3.Error) else ""
        said = " ".join(f"{what}{error}".split())[:300]
        raise LedgerError(f"{path} is damaged, or not a bestprompt ledger ({said}). Restore it from a copy.") from error


def from_record(read: Callable[Concatenate[Ledger, P], T]) -> Callable[Concatenate[Ledger, P], T]:
    """A method of the ledger that raises ``LedgerError`` where what it reads is not what was written."""

    @wraps(read)
    def safely(ledger: Ledger, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with reading(ledger.path):
            return read(ledger, *args, **kwargs)

    return safely


def check_file(db: sqlite3.Connection, version: int) -> None:
    """Raises ``sqlite3.Error`` or ``ValueError`` if the file is damaged, or its tables are not those of ``version``."""
    (said,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if said != "ok":
        raise sqlite3.DatabaseError(said)
    found = _columns(db)
    for table, columns in _columns_of(version).items():
        if missing := [name for name in columns if name not in found.get(table, ())]:
            raise sqlite3.DatabaseError(f"table {table} has no column {missing[0]}")


def check_content(ledger: Ledger) -> None:
    """Reads all that is recorded.

    Raises:
        LedgerError: Something cannot be read, or does not fit the rest.
    """
    with reading(ledger.path):
        facts = ledger.facts()
        wanted: tuple[tuple[str, type], ...] = (("settings", dict), ("lm_fingerprint", str), ("task", str))
        for needed, shape in wanted:
            _require(isinstance(facts.get(needed), shape), f"the run's {needed}")
        candidates, added = ledger.candidates(), ledger.added_candidates()
        size = len(added) + (0 if candidates is None else len(candidates.prompts))
        if candidates is not None:
            _require(bool(math.isfinite(candidates.Z.sum())), "the coordinates of a candidate")
        for entry in ledger.entries():
            _require(_sound(entry, size), f"the evaluation {entry.candidate}, {entry.replication}")
        for intent in ledger.open_intents():
            _require(min(intent.calls, intent.tokens, intent.dollars) >= 0.0, "a request that was under way")
        for kind, payload, _ in ledger.events():
            planned = kind != "planned" or isinstance(payload["evaluations"], int)
            _require(isinstance(payload, dict) and planned, f"an event of kind {kind}")


def _sound(entry: Entry, size: int) -> bool:
    usage = entry.usage
    counts = (entry.candidate, entry.replication, entry.attempt, entry.pair, *(usage.calls, usage.tokens))
    whole = all(isinstance(count, int) and count >= 0 for count in counts) and entry.candidate < size
    known = entry.status in ("ok", "refused", "error", "unscored") and isinstance(entry.request, dict)
    texts = all(isinstance(text, str | None) for text in (entry.output, entry.extracted, entry.error))
    scored = isinstance(entry.score, float) and math.isfinite(entry.score) if entry.final else True
    return whole and known and texts and scored and math.isfinite(entry.cost) and entry.cost >= 0.0


def _require(sound: bool, what: str) -> None:
    if not sound:
        raise ValueError(f"{what} cannot be right")


def _columns(db: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: tuple(c for (c,) in db.execute("SELECT name FROM pragma_table_info(?)", (name,))) for name in tables}


@cache
def _columns_of(version: int) -> dict[str, tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for step in MIGRATIONS[:version]:
            step(db)
        return _columns(db)
