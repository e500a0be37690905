"""The ledger's schema as an ordered list of migrations; ``PRAGMA user_version`` counts how many were applied."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from bestprompt.errors import LedgerError


def _first(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    db.execute(
        """CREATE TABLE candidate (
            n INTEGER PRIMARY KEY,          -- row of Z and X
            prompt TEXT NOT NULL UNIQUE,
            source TEXT NOT NULL,
            parent INTEGER NOT NULL,        -- -1: given, not derived
            z BLOB NOT NULL,                -- float64, little endian
            x BLOB                          -- float32 latent vector, where there is one
        )"""
    )
    db.execute(
        """CREATE TABLE evaluation (
            id INTEGER PRIMARY KEY,
            candidate INTEGER NOT NULL REFERENCES candidate (n),
            replication INTEGER NOT NULL,
            attempt INTEGER NOT NULL,
            pair INTEGER NOT NULL,          -- index into the training pairs of the task's split
            request TEXT NOT NULL,          -- JSON, enough to send the call again
            status TEXT NOT NULL CHECK (status IN ('ok', 'refused', 'error', 'unscored')),
            output TEXT,
            extracted TEXT,
            score REAL,
            error TEXT,
            calls INTEGER NOT NULL,
            prompt_tokens INTEGER NOT NULL,
            completion_tokens INTEGER NOT NULL,
            cost REAL NOT NULL,
            latency REAL NOT NULL,
            created REAL NOT NULL,
            UNIQUE (candidate, replication, attempt)
        )"""
    )
    db.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, payload TEXT NOT NULL, created REAL)")
    _append_only(db, "run", "candidate", "evaluation", "event")


def _requests_before_they_leave(db: sqlite3.Connection) -> None:
    db.execute(
        """CREATE TABLE intent (
            id INTEGER PRIMARY KEY,
            purpose TEXT NOT NULL,          -- what the requests are for: 'evaluation', 'writing'
            what TEXT NOT NULL,             -- JSON
            calls REAL NOT NULL,            -- the most that may be billed for it
            tokens REAL NOT NULL,
            dollars REAL NOT NULL,
            created REAL NOT NULL
        )"""
    )
    # A row for each intent of which it is known how it ended; what it cost stands with the evaluation or the event.
    db.execute("CREATE TABLE outcome (intent INTEGER PRIMARY KEY REFERENCES intent (id), created REAL NOT NULL)")
    _append_only(db, "intent", "outcome")


def _pairs_that_are_asked(db: sqlite3.Connection) -> None:
    db.execute(
        """CREATE TABLE pair (
            n INTEGER PRIMARY KEY,          -- what evaluation.pair names
            input TEXT NOT NULL,
            refs TEXT NOT NULL              -- JSON list of the right answers
        )"""
    )
    _append_only(db, "pair")


def _prompts_on_several_models(db: sqlite3.Connection) -> None:
    # A table cannot lose its UNIQUE (prompt), so it is made anew; references to it go by its name.
    db.execute(
        """CREATE TABLE candidate_with_model (
            n INTEGER PRIMARY KEY,          -- row of Z and X
            prompt TEXT NOT NULL,
            source TEXT NOT NULL,
            parent INTEGER NOT NULL,        -- -1: given, not derived
            z BLOB NOT NULL,                -- float64, little endian
            x BLOB,                         -- float32 latent vector, where there is one
            model TEXT NOT NULL DEFAULT '', -- who answers, where a run compares several models
            UNIQUE (prompt, model)
        )"""
    )
    db.execute("INSERT INTO candidate_with_model SELECT n, prompt, source, parent, z, x, '' FROM candidate")
    db.execute("DROP TABLE candidate")
    db.execute("ALTER TABLE candidate_with_model RENAME TO candidate")
    _append_only(db, "candidate")


def _append_only(db: sqlite3.Connection, *tables: str) -> None:
    # Append-only is a promise to whoever audits a run, so the database itself keeps it.
    for table in tables:
        for verb in ("UPDATE", "DELETE"):
            db.execute(
                f"CREATE TRIGGER {table}_{verb.lower()} BEFORE {verb} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
            )


MIGRATIONS = (_first, _requests_before_they_leave, _pairs_that_are_asked, _prompts_on_several_models)
WITH_INTENTS = 2  # the first version that has them
WITH_PAIRS = 3
WITH_MODELS = 4


def version_of(db: sqlite3.Connection, path: str) -> int:
    """How many migrations a database has seen.

    Raises:
        LedgerError: More than this program knows.
    """
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise LedgerError(
            f"{path} was written by a newer bestprompt (schema {version}, this program knows {len(MIGRATIONS)}). "
            "Upgrade with: pip install --upgrade bestprompt"
        )
    return version


def migrate(db: sqlite3.Connection, path: str, facts: Mapping[str, Any] | None = None) -> None:
    """Brings an open database to the newest schema, and writes the ``facts`` of a new run, in one transaction.

    A process that dies in here leaves either no run or one that can be continued.
    """
    steps = MIGRATIONS[version_of(db, path) :]
    if not steps and not facts:
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        for step in steps:
            step(db)
        db.executemany("INSERT INTO run VALUES (?, ?)", [(k, json.dumps(v)) for k, v in (facts or {}).items()])
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
