"""A small world shared by the tests of whole runs: a latent space of three words, and a model that knows its best.

A small HTTP server on loopback that answers, or fails to, as it is told.
A run with texts that would act if they could, for whatever shows it.
And a counter of XLA compilations, and ``--reseed``: other draws for every test that draws.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import bestprompt as bp
from bestprompt import rng
from bestprompt.kriging.projection import ProjectionKriging
from bestprompt.ledger.files import FILE_NAME
from bestprompt.ledger.schema import MIGRATIONS
from bestprompt.refinement import RefinerConfig
from bestprompt.rng import stream
from bestprompt.run import explorer
from bestprompt.run.settings import Settings
from bestprompt.types import FloatArray, Request


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--reseed", type=int, default=0, metavar="N", help="other draws in all tests; 0: the usual ones")


def pytest_configure(config: pytest.Config) -> None:
    """One thread for each of several processes, and other seeds: before collection, because modules draw as well."""
    if config.getoption("numprocesses", None):
        # The processes started from here inherit it. Threads that wait for each other's cores made the suite twice as
        # long; these are XLA's, OpenBLAS's and the embedded model's.
        for variable in ("NPROC", "OPENBLAS_NUM_THREADS", "BESTPROMPT_THREADS"):
            os.environ.setdefault(variable, "1")
    if n := config.getoption("--reseed"):
        usual, digest = np.random.default_rng, rng._digest

        def reseeded(seed: Any = None) -> np.random.Generator:
            return usual([n, *np.atleast_1d(seed).tolist()] if isinstance(seed, int | list | np.integer) else seed)

        np.random.default_rng = reseeded
        rng._digest = lambda seed, stage, key: digest(seed, stage, (*key, n))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--reseed"):
        recorded = pytest.mark.skip(reason="compares with what the usual draws gave")
        for item in items:
            if item.get_closest_marker("golden"):
                item.add_marker(recorded)


_compilations: list[str] = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, _seconds, **_: _compilations.append(event) if event.endswith("backend_compile_duration") else None
)


@pytest.fixture
def compilations() -> list[str]:
    """The list of compilations so far; its length grows by one with each."""
    return _compilations


SLOTS = (
    ("Repeat", "Copy", "Return", "Print", "Echo", "Translate"),
    ("word", "term", "token", "input", "answer", "letter"),
    ("exactly", "again", "below", "politely", "slowly", "backwards"),
)
WIDTH = 4


class WordSpace:
    """A text autoencoder for sentences "Verb the noun adverb.": each word is a point, decoding takes the nearest."""

    latent_dim = len(SLOTS) * WIDTH
    max_tokens = 16

    def __init__(self) -> None:
        rng = stream(0, "word space")
        self._points = [0.8 * rng.uniform(-1, 1, size=(len(words), WIDTH)) for words in SLOTS]

    def fits(self, text: str) -> bool:
        parts = text.rstrip(".").split()
        return len(parts) == 4 and all(p in words for p, words in zip((parts[0], *parts[2:]), SLOTS, strict=True))

    def encode(self, texts: Sequence[str]) -> FloatArray:
        rows = []
        for text in texts:
            verb, _, noun, adverb = text.rstrip(".").split()
            chosen = zip((verb, noun, adverb), SLOTS, self._points, strict=True)
            rows.append(np.concatenate([points[words.index(word)] for word, words, points in chosen]))
        return np.array(rows)

    def decode(self, X: FloatArray) -> list[str]:
        texts = []
        for row in np.atleast_2d(X):
            parts = zip(row.reshape(len(SLOTS), WIDTH), SLOTS, self._points, strict=True)
            verb, noun, adverb = (words[int(((points - x) ** 2).sum(1).argmin())] for x, words, points in parts)
            texts.append(f"{verb} the {noun} {adverb}.")
        return texts

    def hypotheses(self, X: FloatArray) -> list[list[str]]:
        return [[text] for text in self.decode(X)] if len(X) else []

    def paraphrases(self) -> tuple[FloatArray, FloatArray]:
        return np.zeros((0, self.latent_dim)), np.zeros((0, self.latent_dim))

    def fine_tune(self, texts: Sequence[str], progress: object = None) -> WordSpace:
        return self


@dataclass(frozen=True)
class World:
    """A latent space, a task with examples in it, and how good each prompt is."""

    space: WordSpace
    task: bp.Task

    def quality(self, prompt: str) -> float:
        verb, _, noun, adverb = prompt.rstrip(".").split()
        ranks = [words.index(word) for word, words in zip((verb, noun, adverb), SLOTS, strict=True)]
        return 0.95 - 0.06 * sum(ranks)

    def answer(self, request: Request) -> str:
        prompt, word = request.messages[-1].content.split("\n\n")
        return word if stream(request.seed, "model", prompt, word).random() < self.quality(prompt) else "wrong"

    @property
    def lm(self) -> bp.types.LanguageModel:
        return bp.lm.function(self.answer, name="m")


EXAMPLES = [
    "Copy the term again.", "Return the input below.", "Print the token politely.",
    "Echo the term slowly.", "Return the token again.",
]  # fmt: skip


@pytest.fixture(scope="session")
def world() -> World:
    task = bp.Task.from_pairs([(f"word{i}", f"word{i}") for i in range(60)], EXAMPLES, scorer="exact")
    return World(WordSpace(), task)


@pytest.fixture(scope="module")
def small_network() -> Iterator[None]:
    """Runs refine with a small network and little training: how a run goes is tested, not how well it predicts."""
    recipe = ProjectionKriging(grid=(8,), inputs=8, hidden=8, frequencies=16, splits=2, stretches=1, capacity=64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explorer, "RefinerConfig", partial(RefinerConfig, kriging=recipe, starts=6))
        yield


RESET, TRUNCATED = "reset", "truncated"  # what may stand instead of a status: the work is done, the answer is lost
Reply = Callable[[int, Any], tuple[int | str, dict[str, str], Any]]
"""(attempt, zero-based; JSON of the request) → (status, headers, JSON or bytes of the answer)."""


@contextmanager
def _serve(reply: Reply, host: str = "127.0.0.1") -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    seen: list[tuple[str, Any]] = []
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.loads(sent) if sent else None
            with lock:
                attempt = len(seen)
                seen.append((self.path, body))
            status, headers, content = reply(attempt, body)
            if status == RESET:
                # Lingering for zero seconds: the connection ends with a reset instead of a farewell.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
                return
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            missing = 50 if status == TRUNCATED else 0
            try:
                self.send_response(200 if missing else int(status))
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data) + missing))
                self.end_headers()
                self.wfile.write(data)
                self.close_connection = bool(missing)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client gave up waiting, as a timeout test wants

        do_GET = do_POST = _answer

        def finish(self) -> None:
            if self.connection.fileno() >= 0:
                super().finish()

        def log_message(self, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128  # with the usual five, many clients at once find some of their connections reset

    server = Server((host, 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}/v1", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def serve() -> Any:
    """A small HTTP server that answers each attempt as told and records what it was sent."""
    return lambda reply: _serve(lambda attempt, _body: reply(attempt))


@pytest.fixture
def serve_requests() -> Any:
    """The same, told what was asked besides."""
    return _serve


@pytest.fixture
def chat_answer() -> Any:
    """The JSON of an answer."""

    def made(text: str | None, finish: str = "stop", **message: Any) -> dict[str, Any]:
        return {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [
                {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
            ],
            "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
        }

    return made


HOSTILE = "Name <b>it</b> </script><script>document.title='owned'</script> \x1b[31m \u2028 & {{ 7*7 }}"
LONG = "You are a careful reader.\nRepeat the word below.\n" + "Write nothing else, neither before nor after it. " * 20
QUALITY = {"Repeat the word.": 0.9, "Say the word.": 0.6, "Word?": 0.3, HOSTILE: 0.4, LONG.strip(): 0.75}


def hostile_model(request: Request) -> str:
    """Right as often as the prompt deserves; an answer holds markup."""
    prompt, word = request.messages[-1].content.rsplit("\n\n", 1)
    right = stream(1, "model", prompt, word).random() < QUALITY[prompt]
    return f"{word if right else 'nothing'} <img src=x onerror=\"document.title='owned'\">"


@pytest.fixture(scope="session")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with an incumbent, held-out pairs and texts that would act if they could."""
    folder = tmp_path_factory.mktemp("report") / "run"
    task = bp.Task.from_pairs([(f"w{i} <i>", f"w{i} <i>") for i in range(40)], list(QUALITY), scorer="contains")
    config = Settings.model_validate(
        {
            "selection": {"incumbent": "Word?", "stop_gain": 0},
            "holdout": 0.2,
            "prices": {"m": {"input": 1.0}},
            "ideas": {"mode": "off"},
        }
    )
    bp.optimize(task, bp.lm.function(hostile_model, name="m"), budget=120, ledger=folder, config=config)
    return folder


@pytest.fixture(scope="session")
def hostile() -> str:
    """A prompt of that run that would act if it could."""
    return HOSTILE


@pytest.fixture(scope="session")
def long() -> str:
    """A prompt of that run that does not fit into a line."""
    return LONG.strip()


@contextmanager
def _pages(folder: Path, token: str | None = None, host: str = "127.0.0.1") -> Iterator[tuple[str, str]]:
    import uvicorn

    from bestprompt.ui.app import create_app
    from bestprompt.ui.guard import Guard

    app = Guard(create_app(folder, "our own"), host=host, token=token, names=("known.example",), csrf="our own")
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws="none", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", "our own"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="session")
def serve_pages() -> Any:
    """``with serve_pages(folder) as (url, csrf)``: the pages of ``bestprompt ui``, really served."""
    return _pages


@pytest.fixture
def written_by_version() -> Callable[[Path, int], None]:
    """Makes the record in a folder one of an earlier schema: its tables and columns, with all that they can hold."""

    def rewritten(folder: Path, version: int) -> None:
        newer, former = folder / FILE_NAME, folder / "former.db"
        with closing(sqlite3.connect(former, isolation_level=None)) as db:
            for step in MIGRATIONS[:version]:
                step(db)
            db.execute("ATTACH ? AS newer", (str(newer),))
            for (table,) in db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'").fetchall():
                columns = ", ".join(row[1] for row in db.execute(f"PRAGMA main.table_info({table})"))
                db.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM newer.{table}")
            db.execute(f"PRAGMA user_version = {version}")
        for path in folder.glob(f"{FILE_NAME}-*"):
            path.unlink()
        former.replace(newer)

    return rewritten


@pytest.fixture(scope="session")
def timeless() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A result without how long the answers took."""
    return lambda result: {**result, "leaderboard": [{**row, "latency": None} for row in result["leaderboard"]]}
