"""The ledger: an append-only SQLite file, the only truth about a run.

Everything else (the selection state, the report, the recommendation) is a fold over it. One process writes; any number
may read meanwhile (WAL). The writer holds a lock that the operating system releases even after SIGKILL.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np

from bestprompt.errors import LedgerError
from bestprompt.ledger.commits import Commits
from bestprompt.ledger.files import (
    FILE_NAME,
    OUT_OF_REACH,
    existing,
    holds_a_run,
    made_for,
    opened_to_read,
    private,
    writer_lock,
)
from bestprompt.ledger.rows import EXTENDED, FINISHED, LOOK, Entry, Intent
from bestprompt.ledger.schema import WITH_INTENTS, WITH_MODELS, WITH_PAIRS, migrate, version_of
from bestprompt.ledger.soundness import check_file, from_record, reading
from bestprompt.types import ADDED, NewCandidate, Pair, SoftPromptSet, Usage

_COLUMNS = (
    "candidate, replication, attempt, pair, request, status, output, extracted, score, error, "
    "calls, prompt_tokens, completion_tokens, cost, latency, created"
)
_INSERT_EVALUATION = f"INSERT INTO evaluation ({_COLUMNS}) VALUES ({', '.join('?' * 16)})"
_INSERT_INTENT = "INSERT INTO intent (purpose, what, calls, tokens, dollars, created) VALUES (?, ?, ?, ?, ?, ?)"
_INSERT_CANDIDATE = "INSERT INTO candidate VALUES (?, ?, ?, ?, ?, ?, ?)"
_INSERT_EVENT = "INSERT INTO event (kind, payload, created) VALUES (?, ?, ?)"
_INSERT_OUTCOME = "INSERT INTO outcome VALUES (?, ?)"


class Ledger:
    """Reads and appends; use :meth:`create`, :meth:`open` or :meth:`read`, and close it (or use ``with``)."""

    def __init__(self, path: Path, *, writable: bool, facts: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self._mutex = threading.Lock()
        self._lock = writer_lock(path) if writable else None
        if writable:
            private(path)
        try:
            if not writable:
                self._db = opened_to_read(path)  # looking at a run can never change it
            else:
                # isolation_level=None: transactions are explicit, so each append is exactly one commit.
                self._db = sqlite3.connect(str(path), check_same_thread=False, isolation_level=None, timeout=30.0)
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = FULL")  # a recorded call survives a power cut
                migrate(self._db, str(path), facts)
                self._db.execute("PRAGMA foreign_keys = ON")  # afterwards: a migration may make a table anew
            self._version = version_of(self._db, str(path))
            with reading(path):
                check_file(self._db, self._version)
            self._commits = Commits(self._db, self._mutex)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # SQLite may fail to say what is wrong
            self.close()
            if getattr(error, "sqlite_errorname", "").startswith(OUT_OF_REACH):
                raise LedgerError(
                    f"{path} cannot be opened ({error}). Is there room on the disk, and may the folder be written to?"
                ) from None
            with reading(path):
                raise
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------------------------------- opening and closing
    @classmethod
    def create(cls, folder: Path, facts: Mapping[str, Any]) -> Self:
        """A new ledger in ``folder``; ``facts`` (configuration, fingerprints) are written once."""
        path = folder / FILE_NAME
        if holds_a_run(folder):
            raise LedgerError(
                f"{folder} already holds a run. Continue it with: bestprompt resume {folder}, or give a new --output."
            )
        made_for(folder)
        return cls(path, writable=True, facts=facts)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """An existing ledger, for appending."""
        return cls(existing(folder), writable=True)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """An existing ledger, for reading; works while another process writes."""
        return cls(existing(folder), writable=False)

    def close(self) -> None:
        """Releases the file and the writer's lock."""
        if self._lock is not None and hasattr(self, "_commits"):
            with suppress(LedgerError):  # what was noted last and led to nothing may be missing
                self._commits.flush()
        for handle in (getattr(self, "_db", None), self._lock):
            if handle is not None:
                handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------------------- writing
    def set_candidates(self, candidates: SoftPromptSet) -> None:
        """Stores the frozen candidate set, once per run."""
        rows = []
        for n, prompt in enumerate(candidates.prompts):
            x = None if candidates.X is None else candidates.X[n].astype("<f4").tobytes()
            z = candidates.Z[n].astype("<f8").tobytes()
            model = candidates.models[n] if candidates.models else ""
            rows.append((n, prompt, candidates.sources[n], int(candidates.parents[n]), z, x, model))
        details = json.dumps(dict(candidates.details))

        def write(db: sqlite3.Connection) -> None:
            db.executemany(_INSERT_CANDIDATE, rows)
            db.execute("INSERT INTO run VALUES ('candidate_details', ?)", (details,))

        self._commits.run(write)

    def set_pairs(self, pairs: Sequence[Pair]) -> None:
        """Stores what is asked and which answers are right, once per run, so that a reader needs no other file."""
        rows = [(n, pair.input, json.dumps(pair.references, ensure_ascii=False)) for n, pair in enumerate(pairs)]
        self._commits.run(lambda db: db.executemany("INSERT OR IGNORE INTO pair VALUES (?, ?, ?)", rows))

    def intend(self, intents: Sequence[Intent]) -> list[int]:
        """Records requests before they leave; what is appended with the numbers returned says how they ended."""
        if not intents:
            return []
        rows = [(i.purpose, json.dumps(i.what), i.calls, i.tokens, i.dollars, time.time()) for i in intents]
        return self._commits.run(lambda db: [int(db.execute(_INSERT_INTENT, row).lastrowid or 0) for row in rows])

    def append(self, entries: Iterable[Entry], intents: Iterable[int] = ()) -> None:
        """Appends entries, and that they are how ``intents`` ended, in one transaction: all is recorded, or nothing."""
        rows = [
            (
                e.candidate, e.replication, e.attempt, e.pair, json.dumps(e.request, ensure_ascii=False), e.status,
                e.output, e.extracted, e.score, e.error,
                e.usage.calls, e.usage.prompt_tokens, e.usage.completion_tokens, e.cost, e.latency, e.created,
            )
            for e in entries
        ]  # fmt: skip
        ended = _outcomes(intents)
        if not rows and not ended:
            return

        def write(db: sqlite3.Connection) -> None:
            db.executemany(_INSERT_EVALUATION, rows)
            db.executemany(_INSERT_OUTCOME, ended)

        self._commits.run(write)

    def event(self, kind: str, **payload: Any) -> None:
        """Records something that happened to the run: started, interrupted, finished."""
        self.record_event(kind, payload)

    def record_event(self, kind: str, payload: Mapping[str, Any], intents: Iterable[int] = ()) -> None:
        """Records something that happened, and that this is how ``intents`` ended: both, or neither."""
        event, ended = (kind, json.dumps(payload), time.time()), _outcomes(intents)

        def write(db: sqlite3.Connection) -> None:
            db.execute(_INSERT_EVENT, event)
            db.executemany(_INSERT_OUTCOME, ended)

        self._commits.run(write)

    def note(self, kind: str, **payload: Any) -> None:
        """Records something before whatever is recorded next, without waiting: it matters only to what follows."""
        event = (kind, json.dumps(payload), time.time())
        self._commits.later(lambda db: db.execute(_INSERT_EVENT, event))

    def record_look(self, payload: Mapping[str, Any], new: NewCandidate | None = None) -> None:
        """Records a look outside the set together with the candidate it added, if any: both, or neither."""

        def write(db: sqlite3.Connection) -> None:
            if new is not None:
                (n,) = db.execute("SELECT count(*) FROM candidate").fetchone()
                z, x = new.z.astype("<f8").tobytes(), None if new.x is None else new.x.astype("<f4").tobytes()
                db.execute(_INSERT_CANDIDATE, (n, new.prompt, new.source, new.parent, z, x, ""))
            db.execute(_INSERT_EVENT, (LOOK, json.dumps(payload), time.time()))

        self._commits.run(write)

    # ------------------------------------------------------------------------------------------------------- reading
    @from_record
    def facts(self) -> dict[str, Any]:
        """What was written at creation, and the candidates' details."""
        with self._mutex:
            return {k: json.loads(v) for k, v in self._db.execute("SELECT key, value FROM run")}

    @from_record
    def candidates(self) -> SoftPromptSet | None:
        """The set that was searched for, or ``None`` before that has ended; see also :meth:`added_candidates`."""
        rows = [row for row in self._candidate_rows() if row[1] not in ADDED]
        if not rows:
            return None
        prompts, sources, parents, z, x, models = zip(*rows, strict=True)
        return SoftPromptSet(
            prompts=prompts,
            Z=np.stack([np.frombuffer(row, "<f8") for row in z]),
            X=None if x[0] is None else np.stack([np.frombuffer(row, "<f4") for row in x]).astype(np.float64),
            parents=np.array(parents, dtype=np.int64),
            sources=sources,
            details=self.facts().get("candidate_details", {}),
            models=models if any(models) else (),
        )

    @from_record
    def added_candidates(self) -> list[NewCandidate]:
        """The candidates that were added while the run went on, oldest first."""
        return [
            NewCandidate(
                prompt,
                parent,
                np.frombuffer(z, "<f8"),
                None if x is None else np.frombuffer(x, "<f4").astype(np.float64),
                source,
            )
            for prompt, source, parent, z, x, _ in self._candidate_rows()
            if source in ADDED
        ]

    def _candidate_rows(self) -> list[Any]:
        model = "model" if self._version >= WITH_MODELS else "''"
        with self._mutex:
            return self._db.execute(
                f"SELECT prompt, source, parent, z, x, {model} FROM candidate ORDER BY n"
            ).fetchall()

    @from_record
    def pairs(self) -> dict[int, Pair]:
        """Number, as in :attr:`Entry.pair` → pair; empty where the run began before they were recorded."""
        if self._version < WITH_PAIRS:
            return {}
        with self._mutex:
            rows = self._db.execute("SELECT n, input, refs FROM pair ORDER BY n").fetchall()
        return {n: Pair(text, tuple(json.loads(references))) for n, text, references in rows}

    @from_record
    def entries(self) -> Iterator[Entry]:
        """Every attempt, in the order it was recorded."""
        with self._mutex:
            rows = self._db.execute(f"SELECT {_COLUMNS} FROM evaluation ORDER BY id").fetchall()
        return iter([_entry(dict(zip(_COLUMNS.split(", "), row, strict=True))) for row in rows])

    @from_record
    def charged(self) -> list[tuple[int, int, float]]:
        """(calls, tokens, dollars) of every attempt, in the order it was recorded."""
        with self._mutex:
            return self._db.execute(
                "SELECT calls, prompt_tokens + completion_tokens, cost FROM evaluation ORDER BY id"
            ).fetchall()

    def size(self) -> tuple[int, int]:
        """How many attempts and events are recorded."""
        with self._mutex:
            found = self._db.execute(
                "SELECT (SELECT count(*) FROM evaluation), (SELECT count(*) FROM event)"
            ).fetchone()
        return int(found[0]), int(found[1])

    @from_record
    def open_intents(self) -> list[Intent]:
        """Requests of which it is not recorded how they ended: under way, or lost with the process that sent them."""
        if self._version < WITH_INTENTS:
            return []
        query = (
            "SELECT purpose, what, calls, tokens, dollars FROM intent "
            "WHERE id NOT IN (SELECT intent FROM outcome) ORDER BY id"
        )
        with self._mutex:
            rows = self._db.execute(query).fetchall()
        return [Intent(purpose, json.loads(what), *most) for purpose, what, *most in rows]

    @from_record
    def events(self) -> list[tuple[str, dict[str, Any], float]]:
        """What happened to the run, oldest first."""
        self._commits.flush()
        with self._mutex:
            rows = self._db.execute("SELECT kind, payload, created FROM event ORDER BY id").fetchall()
        return [(kind, json.loads(payload), created) for kind, payload, created in rows]

    @from_record
    def payloads(self, kind: str) -> list[dict[str, Any]]:
        """What was recorded with the events of one kind, oldest first."""
        self._commits.flush()
        with self._mutex:
            rows = self._db.execute("SELECT payload FROM event WHERE kind = ? ORDER BY id", (kind,)).fetchall()
        return [json.loads(payload) for (payload,) in rows]

    def finished(self) -> dict[str, Any] | None:
        """What the run concluded, or ``None`` if it has not come to the end of its budget as it is now."""
        concluded = None
        for kind, payload, _ in self.events():
            concluded = payload if kind == FINISHED else None if kind == EXTENDED else concluded
        return concluded


def _entry(values: dict[str, Any]) -> Entry:
    usage = Usage(*(values.pop(name) for name in ("calls", "prompt_tokens", "completion_tokens")))
    return Entry(**{**values, "request": json.loads(values["request"]), "usage": usage})


def _outcomes(intents: Iterable[int]) -> list[tuple[int, float]]:
    return [(number, time.time()) for number in intents]
