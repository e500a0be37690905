"""Threads that write at once share commits, and each gets what is its own."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bestprompt.ledger.commits import Commits


@pytest.fixture
def db(tmp_path: Path) -> sqlite3.Connection:
    made = sqlite3.connect(tmp_path / "x.db", isolation_level=None, check_same_thread=False)
    made.execute("PRAGMA journal_mode = WAL")
    made.execute("CREATE TABLE number (n INTEGER PRIMARY KEY)")
    return made


def insert(n: int) -> object:
    return lambda db: db.execute("INSERT INTO number VALUES (?)", (n,)).lastrowid


def numbers(db: sqlite3.Connection) -> list[int]:
    return [n for (n,) in db.execute("SELECT n FROM number ORDER BY rowid")]


def test_every_thread_gets_its_own_result(db: sqlite3.Connection) -> None:
    commits = Commits(db, threading.Lock())
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(lambda n: commits.run(insert(n)), range(200))) == list(range(200))
    assert numbers(db) == list(range(200))


def test_what_waits_together_is_one_commit(db: sqlite3.Connection) -> None:
    mutex = threading.Lock()
    commits, ended = Commits(db, mutex), []
    db.set_trace_callback(lambda statement: ended.append(statement) if statement == "COMMIT" else None)
    with ThreadPoolExecutor(10) as pool:
        with mutex:  # as a reader does
            waiting = [pool.submit(commits.run, insert(n)) for n in range(10)]
            while len(commits._ready) < 9:  # one of them is about to commit
                pass
        assert [each.result() for each in waiting] == list(range(10))
    assert len(ended) == 2


def test_a_write_that_fails_takes_no_other_along(db: sqlite3.Connection) -> None:
    mutex = threading.Lock()
    commits = Commits(db, mutex)
    with ThreadPoolExecutor(10) as pool:
        with mutex:
            first = pool.submit(commits.run, insert(1))
            while not commits._busy or commits._ready:
                pass
            again, other = pool.submit(commits.run, insert(1)), pool.submit(commits.run, insert(2))
            while len(commits._ready) < 2:
                pass
        assert (first.result(), other.result()) == (1, 2)
        with pytest.raises(sqlite3.IntegrityError):
            again.result()
    assert numbers(db) == [1, 2]


def test_what_is_left_for_later_comes_before_what_follows(db: sqlite3.Connection) -> None:
    commits = Commits(db, threading.Lock())
    commits.later(insert(5))
    assert numbers(db) == []
    commits.run(lambda db: db.execute("INSERT INTO number SELECT max(n) + 1 FROM number"))
    assert numbers(db) == [5, 6]


def test_an_interruption_is_for_one_thread_alone(db: sqlite3.Connection) -> None:
    mutex = threading.Lock()
    commits = Commits(db, mutex)

    def interrupted(_db: sqlite3.Connection) -> None:
        raise KeyboardInterrupt

    with ThreadPoolExecutor(10) as pool:
        with mutex:
            stopped = pool.submit(commits.run, interrupted)
            while not commits._busy or commits._ready:
                pass
            others = [pool.submit(commits.run, insert(n)) for n in range(3)]
            while len(commits._ready) < 3:
                pass
        with pytest.raises(KeyboardInterrupt):
            stopped.result()
        assert [each.result() for each in others] == [0, 1, 2]
    assert commits.run(insert(9)) == 9
