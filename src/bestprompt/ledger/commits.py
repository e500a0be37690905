"""Writes of many threads in few commits.

A commit waits for the disk, some milliseconds each time, and threads that record one answer each would wait for one
another. So whoever gets to write takes along what the others have ready, and all of it is one transaction; those who
waited find their part done. A write that fails takes back its own part alone.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from bestprompt.errors import LedgerError

T = TypeVar("T")


class _Write:
    def __init__(self, write: Callable[[sqlite3.Connection], Any], durable: bool) -> None:
        self.write, self.durable = write, durable
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None


class Commits:
    """Commits what threads hand in, together where they come together.

    Args:
        db: The database, in autocommit mode.
        mutex: Held while it is used; readers hold it, too.
    """

    def __init__(self, db: sqlite3.Connection, mutex: threading.Lock) -> None:
        self._db, self._mutex = db, mutex
        self._ready: list[_Write] = []

    def run(self, write: Callable[[sqlite3.Connection], T], durable: bool = True) -> T:
        """Returns what ``write`` returns, once it is committed: all it writes is recorded, or nothing.

        Args:
            write: Executes statements, and must not end the transaction.
            durable: Whether to wait until it would survive a power cut. If not, it will once anything after it does.

        Raises:
            LedgerError: There is no room on the disk.
        """
        mine = _Write(write, durable)
        self._ready.append(mine)
        try:
            with self._mutex:
                if not mine.done:
                    self._commit(self._taken())
        finally:
            if not mine.done and mine in self._ready:
                self._ready.remove(mine)
        if mine.error is not None:
            raise mine.error
        result: T = mine.result
        return result

    def _taken(self) -> list[_Write]:
        together = []
        while self._ready:  # others go on appending meanwhile
            together.append(self._ready.pop(0))
        return together

    def _commit(self, together: list[_Write]) -> None:
        begun = False
        try:
            self._db.execute(f"PRAGMA synchronous = {'FULL' if any(w.durable for w in together) else 'NORMAL'}")
            self._db.execute("BEGIN IMMEDIATE")
            begun = True
            for each in together:
                self._write(each)
            self._db.execute("COMMIT")
        except BaseException as error:
            interrupted = not isinstance(error, sqlite3.Error)
            open_still = self._db.in_transaction  # not where the disk is full: SQLite itself rolls back then
            if open_still:
                self._db.execute("ROLLBACK")
            if interrupted and (open_still or not begun):
                self._ready[:0] = together  # Ctrl-C is for this thread alone: the others write for themselves
                raise
            for each in together:
                each.done, each.error = True, each.error if interrupted else _explained(each.error or error)
            if interrupted:
                raise
        for each in together:
            each.done = True

    def _write(self, one: _Write) -> None:
        self._db.execute("SAVEPOINT one")
        try:
            one.result = one.write(self._db)
        except Exception as error:
            if not self._db.in_transaction:
                raise
            self._db.execute("ROLLBACK TO one")
            one.error = _explained(error)
        self._db.execute("RELEASE one")


def _explained(error: BaseException) -> BaseException:
    name = getattr(error, "sqlite_errorname", "")
    if not isinstance(error, sqlite3.OperationalError) or not name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return error
    explained = LedgerError(f"The record cannot be written ({error}). Make room, then continue with: bestprompt resume")
    explained.__cause__ = error
    return explained
