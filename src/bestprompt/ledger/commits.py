"""Writes of many threads in few commits.

A commit waits for the disk, some milliseconds each time, and threads that record one answer each would wait for one
another. So one of those who want to write takes along what the others have ready, and all of it is one transaction;
the others wait, and then the first of those who have come meanwhile does the same. Writes are committed in the order
they came in. One that fails takes back its own part alone.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from bestprompt.errors import LedgerError

T = TypeVar("T")


class _Write:
    """Something to be written; ``turn`` is set when it is done, or when its owner is to commit."""

    def __init__(self, write: Callable[[sqlite3.Connection], Any]) -> None:
        self.write, self.turn = write, threading.Event()
        self.done = self.waited_for = False
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
        self._queue = threading.Lock()
        self._ready: list[_Write] = []
        self._busy = False  # somebody commits, or has been told to

    def run(self, write: Callable[[sqlite3.Connection], T]) -> T:
        """Returns what ``write`` returns, once that would survive a power cut: all it writes is recorded, or nothing.

        ``write`` executes statements and must not end the transaction.

        Raises:
            LedgerError: There is no room on the disk.
        """
        mine = _Write(write)
        mine.waited_for = True
        with self._queue:
            self._ready.append(mine)
            mine_to_do, self._busy = not self._busy, True
        try:
            if not mine_to_do:
                mine.turn.wait()
            if not mine.done:
                self._commit_all()
        finally:
            self._withdraw(mine)
        if mine.error is not None:
            raise mine.error
        result: T = mine.result
        return result

    def later(self, write: Callable[[sqlite3.Connection], object]) -> None:
        """Has ``write`` committed before, or together with, whatever is handed in after it; waits for nothing."""
        with self._queue:
            self._ready.append(_Write(write))

    def flush(self) -> None:
        """Commits what was left for later."""
        if self._ready:
            self.run(lambda _: None)

    def _withdraw(self, mine: _Write) -> None:
        """After an interruption nothing of ``mine`` is left to be written, and its turn is passed on."""
        with self._queue:
            if not mine.done:
                self._ready = [each for each in self._ready if each is not mine]
                if mine.turn.is_set():
                    self._pass_on()

    def _commit_all(self) -> None:
        with self._queue:
            together, self._ready = self._ready, []
        try:
            with self._mutex:
                self._commit(together)
        finally:
            with self._queue:
                # After an interruption: it is for this thread alone, and the others write for themselves.
                self._ready[:0] = [each for each in together if not each.done]
                self._pass_on()
            for each in together:
                if each.done:
                    each.turn.set()

    def _pass_on(self) -> None:
        following = next((each for each in self._ready if each.waited_for and not each.turn.is_set()), None)
        self._busy = following is not None
        if following is not None:
            following.turn.set()

    def _commit(self, together: list[_Write]) -> None:
        begun = False
        try:
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
            one.error = error
        self._db.execute("RELEASE one")


def _explained(error: BaseException) -> BaseException:
    name = getattr(error, "sqlite_errorname", "")
    if not isinstance(error, sqlite3.OperationalError) or not name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return error
    explained = LedgerError(f"The record cannot be written ({error}). Make room, then resume the run.")
    explained.__cause__ = error
    return explained
