"""The ledger's schema as an ordered list of migrations; ``PRAGMA user_version`` counts how many were applied."""

from __future__ import annotations

import sqlite3

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
    # Append-only is a promise to whoever audits a run, so the database itself keeps it.
    for table in ("run", "candidate", "evaluation", "event"):
        for verb in ("UPDATE", "DELETE"):
            db.execute(
                f"CREATE TRIGGER {table}_{verb.lower()} BEFORE {verb} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
            )


MIGRATIONS = (_first,)


def migrate(db: sqlite3.Connection, path: str) -> None:
    """Brings an open database to the newest schema, each step in its own transaction."""
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise LedgerError(
            f"{path} was written by a newer bestprompt (schema {version}, this program knows {len(MIGRATIONS)}). "
            "Upgrade with: pip install --upgrade bestprompt"
        )
    for number, step in enumerate(MIGRATIONS[version:], start=version + 1):
        db.execute("BEGIN IMMEDIATE")
        try:
            step(db)
            db.execute(f"PRAGMA user_version = {number}")
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")
