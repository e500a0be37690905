"""The files of a record: where it is, who may read it, who writes to it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from bestprompt.errors import LedgerError

FILE_NAME = "ledger.db"


def holds_a_run(folder: Path) -> bool:
    """Whether there is a record in ``folder``; a file of which nothing was committed, left by a kill, is none."""
    path = folder / FILE_NAME
    if not path.exists():
        return False
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
            return bool(db.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.DatabaseError:
        return True  # not ours, or damaged: opening it says so


def existing(folder: Path) -> Path:
    """The file of the record in ``folder``, which may also name the file itself.

    Raises:
        LedgerError: There is none.
    """
    path = folder / FILE_NAME if folder.is_dir() else folder
    if not path.is_file():
        raise LedgerError(f"No run in {folder}. List the runs with: bestprompt status")
    return path


def private(path: Path) -> None:
    """Makes the file, if there is none, readable by its owner alone; SQLite gives its companions the same mode."""
    if not path.exists():
        path.touch(mode=0o600)


def writer_lock(path: Path) -> sqlite3.Connection:
    """An exclusive lock held in a file beside the ledger; SQLite makes it portable and it dies with the process.

    Raises:
        LedgerError: Another process holds it.
    """
    private(path.with_suffix(".lock"))
    lock = sqlite3.connect(path.with_suffix(".lock"), timeout=0.0, isolation_level=None, check_same_thread=False)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        lock.close()
        raise LedgerError(f"Another process is writing to {path.parent}. Watch it with: bestprompt status") from None
    return lock


def being_written(folder: Path) -> bool:
    """Whether a process is writing to the record in ``folder`` this moment."""
    lock = (folder / FILE_NAME).with_suffix(".lock")
    if not lock.exists():
        return False
    try:
        with closing(sqlite3.connect(f"{lock.resolve().as_uri()}?mode=ro", uri=True, timeout=0.0)) as db:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        return True  # the writer's lock keeps readers out, too
    return False
