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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from bestprompt.errors import LedgerError
from bestprompt.ledger.files import FILE_NAME, existing, holds_a_run, private, writer_lock
from bestprompt.ledger.schema import WITH_INTENTS, WITH_PAIRS, migrate, version_of
from bestprompt.types import REFINED, NewCandidate, Pair, SoftPromptSet, Usage

Status = Literal["ok", "refused", "error", "unscored"]
# Kinds of event, with what each records:
PLANNED = "planned"  # how many evaluations a budget allows
EXTENDED = "extended"  # a larger budget
WRITTEN = "written"  # a call that was to write a candidate
REFINING = "refinement"  # whether a run that should refine can
LOOK = "look"  # a look outside the set
FINISHED = "finished"  # what the run concluded
TURNED_AWAY = "turned away"  # an attempt that cost nothing: a rejection, or a connection that was not made


@dataclass(frozen=True, slots=True)
class Entry:
    """One attempt at one evaluation, with all it takes to check or repeat it.

    ``unscored`` is an answer that the scorer failed on: it was paid for, so it is kept and scored later.
    ``score`` is set when ``status`` is ``"ok"``, and 0 when ``"refused"``: a prompt that gets no answer has failed.
    """

    candidate: int
    replication: int
    attempt: int
    pair: int
    request: Mapping[str, Any]
    status: Status
    output: str | None = None
    extracted: str | None = None
    score: float | None = None
    error: str | None = None
    usage: Usage = Usage()
    cost: float = 0.0
    latency: float = 0.0
    created: float = field(default_factory=time.time)

    @property
    def final(self) -> bool:
        """Whether this attempt settles its evaluation."""
        return self.status in ("ok", "refused")


@dataclass(frozen=True, slots=True)
class Intent:
    """Requests that are about to leave, and the most that may be billed for them."""

    purpose: Literal["evaluation", "writing"]
    what: Mapping[str, Any]
    calls: float
    tokens: float
    dollars: float


_COLUMNS = (
    "candidate, replication, attempt, pair, request, status, output, extracted, score, error, "
    "calls, prompt_tokens, completion_tokens, cost, latency, created"
)
_INSERT_CANDIDATE = "INSERT INTO candidate VALUES (?, ?, ?, ?, ?, ?)"
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
            # isolation_level=None: transactions are explicit, so each append is exactly one commit.
            # A reader opens read-only, so looking at a run can never change it.
            target = str(path) if writable else f"{path.resolve().as_uri()}?mode=ro"
            self._db = sqlite3.connect(
                target, uri=not writable, check_same_thread=False, isolation_level=None, timeout=30.0
            )
            if writable:
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = FULL")  # a recorded call survives a power cut
                self._db.execute("PRAGMA foreign_keys = ON")
                migrate(self._db, str(path), facts)
            self._version = version_of(self._db, str(path))
            self._db.execute("SELECT count(*) FROM run")
        except sqlite3.DatabaseError as error:
            self.close()
            raise LedgerError(f"{path} is not a bestprompt ledger ({error}).") from None
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
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)  # prompts and answers are their owner's alone
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
        for handle in (getattr(self, "_db", None), self._lock):
            if handle is not None:
                handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _transaction(self) -> _Transaction:
        return _Transaction(self._db, self._mutex)

    # ------------------------------------------------------------------------------------------------------- writing
    def set_candidates(self, candidates: SoftPromptSet) -> None:
        """Stores the frozen candidate set, once per run."""
        rows = []
        for n, prompt in enumerate(candidates.prompts):
            x = None if candidates.X is None else candidates.X[n].astype("<f4").tobytes()
            z = candidates.Z[n].astype("<f8").tobytes()
            rows.append((n, prompt, candidates.sources[n], int(candidates.parents[n]), z, x))
        with self._transaction() as db:
            db.executemany(_INSERT_CANDIDATE, rows)
            db.execute("INSERT INTO run VALUES ('candidate_details', ?)", (json.dumps(dict(candidates.details)),))

    def set_pairs(self, pairs: Sequence[Pair]) -> None:
        """Stores what is asked and which answers are right, once per run, so that a reader needs no other file."""
        rows = [(n, pair.input, json.dumps(pair.references, ensure_ascii=False)) for n, pair in enumerate(pairs)]
        with self._transaction() as db:
            db.executemany("INSERT OR IGNORE INTO pair VALUES (?, ?, ?)", rows)

    def intend(self, intents: Sequence[Intent]) -> list[int]:
        """Records requests before they leave; what is appended with the numbers returned says how they ended."""
        with self._transaction() as db:
            return [
                int(
                    db.execute(
                        "INSERT INTO intent (purpose, what, calls, tokens, dollars, created) VALUES (?, ?, ?, ?, ?, ?)",
                        (i.purpose, json.dumps(i.what), i.calls, i.tokens, i.dollars, time.time()),
                    ).lastrowid
                    or 0
                )
                for i in intents
            ]

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
        marks = ", ".join("?" * 16)
        with self._transaction() as db:
            db.executemany(f"INSERT INTO evaluation ({_COLUMNS}) VALUES ({marks})", rows)
            db.executemany(_INSERT_OUTCOME, [(number, time.time()) for number in intents])

    def event(self, kind: str, **payload: Any) -> None:
        """Records something that happened to the run: started, interrupted, finished."""
        self.record_event(kind, payload)

    def record_event(self, kind: str, payload: Mapping[str, Any], intents: Iterable[int] = ()) -> None:
        """Records something that happened, and that this is how ``intents`` ended: both, or neither."""
        with self._transaction() as db:
            db.execute(_INSERT_EVENT, (kind, json.dumps(payload), time.time()))
            db.executemany(_INSERT_OUTCOME, [(number, time.time()) for number in intents])

    def record_look(self, payload: Mapping[str, Any], new: NewCandidate | None = None) -> None:
        """Records a look outside the set together with the candidate it added, if any: both, or neither."""
        with self._transaction() as db:
            if new is not None:
                (n,) = db.execute("SELECT count(*) FROM candidate").fetchone()
                z, x = new.z.astype("<f8").tobytes(), new.x.astype("<f4").tobytes()
                db.execute(_INSERT_CANDIDATE, (n, new.prompt, REFINED, new.parent, z, x))
            db.execute(_INSERT_EVENT, (LOOK, json.dumps(payload), time.time()))

    # ------------------------------------------------------------------------------------------------------- reading
    def facts(self) -> dict[str, Any]:
        """What was written at creation, and the candidates' details."""
        with self._mutex:
            return {k: json.loads(v) for k, v in self._db.execute("SELECT key, value FROM run")}

    def candidates(self) -> SoftPromptSet | None:
        """The set that was searched for, or ``None`` before that has ended; see also :meth:`added_candidates`."""
        rows = [row for row in self._candidate_rows() if row[1] != REFINED]
        if not rows:
            return None
        prompts, sources, parents, z, x = zip(*rows, strict=True)
        return SoftPromptSet(
            prompts=prompts,
            Z=np.stack([np.frombuffer(row, "<f8") for row in z]),
            X=None if x[0] is None else np.stack([np.frombuffer(row, "<f4") for row in x]).astype(np.float64),
            parents=np.array(parents, dtype=np.int64),
            sources=sources,
            details=self.facts().get("candidate_details", {}),
        )

    def added_candidates(self) -> list[NewCandidate]:
        """The candidates that were added while the run went on, oldest first."""
        return [
            NewCandidate(prompt, parent, np.frombuffer(z, "<f8"), np.frombuffer(x, "<f4").astype(np.float64))
            for prompt, source, parent, z, x in self._candidate_rows()
            if source == REFINED
        ]

    def _candidate_rows(self) -> list[Any]:
        with self._mutex:
            return self._db.execute("SELECT prompt, source, parent, z, x FROM candidate ORDER BY n").fetchall()

    def pairs(self) -> dict[int, Pair]:
        """Number, as in :attr:`Entry.pair` → pair; empty where the run began before they were recorded."""
        if self._version < WITH_PAIRS:
            return {}
        with self._mutex:
            rows = self._db.execute("SELECT n, input, refs FROM pair ORDER BY n").fetchall()
        return {n: Pair(text, tuple(json.loads(references))) for n, text, references in rows}

    def entries(self) -> Iterator[Entry]:
        """Every attempt, in the order it was recorded."""
        with self._mutex:
            rows = self._db.execute(f"SELECT {_COLUMNS} FROM evaluation ORDER BY id").fetchall()
        for row in rows:
            values = dict(zip(_COLUMNS.split(", "), row, strict=True))
            usage = Usage(*(values.pop(name) for name in ("calls", "prompt_tokens", "completion_tokens")))
            yield Entry(**{**values, "request": json.loads(values["request"]), "usage": usage})

    def size(self) -> tuple[int, int]:
        """How many attempts and events are recorded."""
        with self._mutex:
            found = self._db.execute(
                "SELECT (SELECT count(*) FROM evaluation), (SELECT count(*) FROM event)"
            ).fetchone()
        return int(found[0]), int(found[1])

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

    def events(self) -> list[tuple[str, dict[str, Any], float]]:
        """What happened to the run, oldest first."""
        with self._mutex:
            rows = self._db.execute("SELECT kind, payload, created FROM event ORDER BY id").fetchall()
        return [(kind, json.loads(payload), created) for kind, payload, created in rows]

    def payloads(self, kind: str) -> list[dict[str, Any]]:
        """What was recorded with the events of one kind, oldest first."""
        return [payload for found, payload, _ in self.events() if found == kind]

    def finished(self) -> dict[str, Any] | None:
        """What the run concluded, or ``None`` if it has not come to the end of its budget as it is now."""
        concluded = None
        for kind, payload, _ in self.events():
            concluded = payload if kind == FINISHED else None if kind == EXTENDED else concluded
        return concluded


class _Transaction:
    """Serialises threads, and commits all or nothing."""

    def __init__(self, db: sqlite3.Connection, mutex: threading.Lock) -> None:
        self._db, self._mutex = db, mutex

    def __enter__(self) -> sqlite3.Connection:
        self._mutex.acquire()
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._mutex.release()
            raise
        return self._db

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self._db.execute("COMMIT" if kind is None else "ROLLBACK")
        except sqlite3.OperationalError as failed:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            error = error or failed
        finally:
            self._mutex.release()
        if error is not None and _no_space(error):
            raise LedgerError(
                f"The record cannot be written ({error}). Make room, then continue with: bestprompt resume"
            ) from error
        if kind is None and error is not None:
            raise error


def _no_space(error: BaseException) -> bool:
    # SQLite itself rolls back when the disk is full, and then has no transaction left to end.
    name = getattr(error, "sqlite_errorname", "")
    return isinstance(error, sqlite3.OperationalError) and name.startswith(("SQLITE_FULL", "SQLITE_IOERR"))
