from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from bestprompt import lm
from bestprompt.lm import weights
from bestprompt.types import Message, Request

SERVER_KEY = "sk-test-0123456789"


def ask(text: str, **settings: Any) -> Request:
    return Request((Message("user", text),), **{"max_tokens": 8, **settings})


@pytest.fixture(scope="session")
def model_path() -> str:
    return str(weights.fetch())


@pytest.fixture(scope="session")
def jax_model(model_path: str) -> Any:
    return lm.embedded(model_path, threads=1)


@pytest.fixture(scope="session")
def llamacpp_model(model_path: str) -> Any:
    return lm.embedded(model_path, engine="llama.cpp", context=512, batch_size=4, threads=1)


@pytest.fixture(scope="session")
def server_url(model_path: str) -> Iterator[str]:
    """A real OpenAI-compatible HTTP server on loopback with the embedded weights, which insists on a key."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model_path
    params.n_ctx, params.n_parallel = 2048, 4
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity, params.warmup = 1, False
    params.api_keys = [SERVER_KEY]
    server = xllamacpp.Server(params)
    yield server.listening_address + "/v1"
    del server


@pytest.fixture(scope="session")
def served_model(server_url: str) -> Any:
    os.environ["BESTPROMPT_TEST_KEY"] = SERVER_KEY
    return lm.openai("served", server_url, api_key_env="BESTPROMPT_TEST_KEY", concurrency=4)


Reply = Callable[[int], tuple[int, dict[str, str], Any]]
"""(attempt, zero-based) → (status, headers, JSON body)."""


@contextmanager
def _serve(reply: Reply) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    seen: list[tuple[str, Any]] = []
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with lock:
                attempt = len(seen)
                seen.append((self.path, json.loads(body) if body else None))
            status, headers, content = reply(attempt)
            data = json.dumps(content).encode()
            try:
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client gave up waiting, as a timeout test wants

        do_GET = do_POST = _answer

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def serve() -> Any:
    """A small HTTP server that answers each attempt as told and records what it was sent."""
    return _serve


@pytest.fixture(name="ask")
def _ask() -> Any:
    return ask


def chat_answer(text: str | None, finish: str = "stop", **message: Any) -> dict[str, Any]:
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


@pytest.fixture(name="chat_answer")
def _chat_answer() -> Any:
    return chat_answer
