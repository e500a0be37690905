"""Answers kept on disk: a model that is asked only what it was never asked before."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from os import PathLike
from pathlib import Path

from bestprompt.errors import LMError
from bestprompt.types import Completion, LanguageModel, Request, Usage

_SCHEMA = """CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, text TEXT NOT NULL, prompt_tokens INTEGER, completion_tokens INTEGER, finish_reason TEXT)"""


class CachedModel:
    """A model and its answers so far; see ``cached``."""

    def __init__(self, model: LanguageModel, path: Path) -> None:
        self._model, self._path = model, path
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(self._open()) as database:
            database.execute("PRAGMA journal_mode = WAL")  # many threads and processes at once
            database.execute(_SCHEMA)

    @property
    def wrapped(self) -> LanguageModel:
        """The model; what else it can do (embed and weigh texts) is asked of it directly."""
        return self._model

    @property
    def name(self) -> str:
        """The model's."""
        return self._model.name

    @property
    def fingerprint(self) -> str:
        """The model's: the answers are its own."""
        return self._model.fingerprint

    @property
    def batch_size(self) -> int:
        """The model's."""
        return self._model.batch_size

    @property
    def concurrency(self) -> int:
        """The model's."""
        return self._model.concurrency

    def max_prompt_tokens(self, request: Request) -> int:
        """The model's."""
        return self._model.max_prompt_tokens(request)

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        """Answers in the order of the requests; equal ones are asked for once."""
        keys = [self._key(request) for request in requests]
        with closing(self._open()) as database:
            found: dict[str, Completion | LMError] = {
                key: known for key in set(keys) if (known := _stored(database, key))
            }
            missing = {key: request for key, request in zip(keys, requests, strict=True) if key not in found}
            replies = self._model.complete(list(missing.values())) if missing else []
            for key, reply in zip(missing, replies, strict=True):
                found[key] = reply
                if isinstance(reply, Completion):  # a failure may be gone the next time
                    usage = reply.usage
                    row = (key, reply.text, usage.prompt_tokens, usage.completion_tokens, reply.finish_reason)
                    database.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)", row)
        return [found[key] for key in keys]

    def _key(self, request: Request) -> str:
        """By model, request and replication: every replication has a sampling seed of its own.

        At temperature 0 the seed decides nothing, and runs with other seeds share their answers.
        """
        asked = replace(request, seed=0) if request.temperature == 0 else request
        return hashlib.sha256(f"{self._model.fingerprint}{asked!r}".encode()).hexdigest()

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, timeout=60, isolation_level=None)
        database.execute("PRAGMA synchronous = OFF")  # what is lost is asked again
        return database


def cached(model: LanguageModel, path: str | PathLike[str]) -> CachedModel:
    """Keeps the answers of ``model`` in an SQLite file and never asks for one twice.

    Runs with other budgets or settings then share what they have in common, at temperature 0 also those with other
    seeds; otherwise each replication has an answer of its own. A stored answer still counts against a run's budget, so
    results do not depend on what happens to be stored.

    Args:
        model: The language model.
        path: The file; made when missing. Several models and processes may share one.
    """
    return CachedModel(model, Path(path))


def _stored(database: sqlite3.Connection, key: str) -> Completion | None:
    row = database.execute(
        "SELECT text, prompt_tokens, completion_tokens, finish_reason FROM answers WHERE key = ?", (key,)
    )
    for text, prompt_tokens, completion_tokens, finish_reason in row:
        return Completion(text, Usage(1, prompt_tokens, completion_tokens), 0.0, finish_reason)
    return None
