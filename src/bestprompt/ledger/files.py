"""The files of a record: where it is, who may read it, who writes to it."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from bestprompt.errors import LedgerError

FILE_NAME = "ledger.db"
# What SQLite calls it when the file is sound, and the disk is full or may not be written to.
OUT_OF_REACH = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN")


def holds_a_run(folder: Path) -> bool:
    """Whether there is a record in ``folder``; a file of which nothing was committed, left by a kill, is none."""
    path = folder / FILE_NAME
    try:
        if not path.exists():
            return False
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
            return bool(db.execute("PRAGMA user_version").fetchone()[0])
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return True  # not ours, or damaged: opening it says so
    except (OSError, ValueError):
        return False  # no such folder, whatever it is: making it says so


def existing(folder: Path) -> Path:
    """The file of the record in ``folder``, which may also name the file itself.

    Raises:
        LedgerError: There is none.
    """
    try:
        path = folder / FILE_NAME if folder.is_dir() else folder
        there = path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        there = False
    if not there:
        raise LedgerError(f"No run in {folder}. List the runs with: bestprompt status")
    return path


def opened_to_read(path: Path) -> sqlite3.Connection:
    """A connection that cannot change anything; also where nothing may be written beside the file.

    SQLite reads a file with a write-ahead log only where it may write beside it. Where it may not, a copy is read.
    """
    db = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False, isolation_level=None, timeout=30.0
    )
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        db.close()
        if not error.sqlite_errorname.startswith(OUT_OF_REACH):
            raise
        return _copied(path)
    return db


def _copied(path: Path) -> sqlite3.Connection:
    memory = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    with tempfile.TemporaryDirectory() as scratch:
        for suffix in ("", "-wal"):
            beside = path.with_name(path.name + suffix)
            if beside.exists():
                shutil.copyfile(beside, Path(scratch) / (FILE_NAME + suffix))
        with closing(sqlite3.connect(Path(scratch) / FILE_NAME, isolation_level=None)) as copy:
            copy.execute("PRAGMA journal_mode = DELETE")  # a database in memory has no log
            copy.backup(memory)
    memory.execute("PRAGMA query_only = ON")
    return memory


def made_for(path: Path) -> None:
    """Makes the folder of a new record: prompts and answers are their owner's alone.

    Raises:
        LedgerError: It cannot be made, or is none.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise LedgerError(f"The folder {path} cannot be made ({_said(error)}). Give another --output.") from None


def _said(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def private(path: Path) -> None:
    """Makes the file, if there is none, readable by its owner alone; SQLite gives its companions the same mode.

    Raises:
        LedgerError: It cannot be made.
    """
    try:
        if not path.exists():
            path.touch(mode=0o600)
    except OSError as error:
        raise LedgerError(f"{path.parent} cannot be written to ({_said(error)}).") from None


def writer_lock(path: Path) -> sqlite3.Connection:
    """An exclusive lock held in a file beside the ledger; SQLite makes it portable and it dies with the process.

    Raises:
        LedgerError: Another process holds it.
    """
    private(path.with_suffix(".lock"))
    lock = sqlite3.connect(path.with_suffix(".lock"), timeout=0.0, isolation_level=None, check_same_thread=False)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.DatabaseError as error:
        lock.close()
        if error.sqlite_errorname == "SQLITE_BUSY":
            what = f"Another process is writing to {path.parent}. Watch it with: bestprompt status"
        else:
            what = f"{path.parent} cannot be written to ({error})."
        raise LedgerError(what) from None
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
