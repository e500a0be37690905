"""A metered server on loopback that speaks the OpenAI protocol in front of one model.

Every run has a URL of its own, ``/runs/NAME/v1``. Calls and tokens are counted there; once the budget is spent each
further call is refused with status 403, which no client tries again, and noted as an overshoot. Above temperature 0
the k-th sampled call of a run has the k-th seed of its problem. So a run gets the same answers whenever it is repeated,
and methods that ask a problem's writer the same thing, at whatever budget, are handed the same prompts. What the model
answered is kept by whoever made the model (``bp.lm.cached``): a question costs compute once in the whole comparison,
and counts in every run that asks it; how long the model took is noted for the calls that it did answer.
``/runs/NAME/score`` says what an answer is worth, so that all methods are scored by one function; it is not counted.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bestprompt.errors import LMError
from bestprompt.rng import integer
from bestprompt.types import Completion, LanguageModel, Message, Request

MOST_TOKENS = 160  # of an answer to a request that sets no limit


@dataclass
class Meter:
    """What one run may use and has used.

    Attributes:
        name: Of the run.
        budget: T.
        lm: Who answers.
        score: (input, output) → what an answer is worth.
        draws: Names the seeds of sampled calls; runs on one problem share them.
        calls: Answered calls.
        refused: Calls after the budget was spent.
        unusable: Requests the model could not take, too long for it most often; as with hosted models, not counted.
        waited: Seconds during which at least one request was with the model.
        fresh: Calls that the model itself answered, and not the store of earlier answers.
        served: Seconds it took for these.
    """

    name: str
    budget: int
    lm: LanguageModel
    score: Callable[[str, str], float]
    draws: str
    log: Path | None = None
    calls: int = 0
    refused: int = 0
    unusable: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    waited: float = 0.0
    fresh: int = 0
    served: float = 0.0
    _sampled: int = 0
    _under_way: int = 0
    _since: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def complete(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and answer of one chat request."""
        with self._lock:
            if self.calls >= self.budget:
                self.refused += 1
                return 403, _fault(f"the budget of {self.budget} calls is spent", "budget_spent")
            self.calls += 1  # before it is answered, so that requests side by side cannot pass the budget
            number = self.calls
            request = self._request(body)
        with self._waiting():
            (answer,) = self.lm.complete([request])
        with self._lock:
            if isinstance(answer, LMError):
                self.calls -= 1
                self.unusable += 1
                return 400, _fault(str(answer), "context_length_exceeded")
            self.fresh += answer.latency > 0
            self.served += answer.latency
            self.prompt_tokens += answer.usage.prompt_tokens
            self.completion_tokens += answer.usage.completion_tokens
            if self.log is not None:
                with self.log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"call": number, "asked": body, "answer": answer.text}) + "\n")
        return 200, _reply(answer)

    def _request(self, body: dict[str, Any]) -> Request:
        temperature = float(body.get("temperature") or 0.0)
        self._sampled += temperature > 0
        stop = body.get("stop") or ()
        return Request(
            tuple(Message(each["role"], _text(each["content"])) for each in body["messages"]),
            int(body.get("max_tokens") or body.get("max_completion_tokens") or MOST_TOKENS),
            temperature,
            float(body.get("top_p") or 1.0),
            integer(0, "peers", self.draws, self._sampled) if temperature else 0,
            (stop,) if isinstance(stop, str) else tuple(stop),
        )

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        with self._lock:
            if self._under_way == 0:
                self._since = time.monotonic()
            self._under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1
                if self._under_way == 0:
                    self.waited += time.monotonic() - self._since


def _text(content: Any) -> str:
    """A message's text; some clients send it in parts."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _fault(message: str, code: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": code}}


def _reply(answer: Completion) -> dict[str, Any]:
    usage = answer.usage
    message = {"role": "assistant", "content": answer.text}
    return {
        "id": "1", "object": "chat.completion", "created": 0, "model": "m",
        "choices": [{"index": 0, "finish_reason": answer.finish_reason or "stop", "message": message}],
        "usage": {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens,
                  "total_tokens": usage.tokens},
    }  # fmt: skip


class Proxy:
    """The server; use as a context manager."""

    def __init__(self) -> None:
        self._meters: dict[str, Meter] = {}
        meters = self._meters

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1  # head and body in one packet

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                _, _, name, route = self.path.split("/", 3)
                meter = meters.get(name)
                if meter is None:
                    self._answer(404, _fault(f"there is no run {name!r}", "unknown_run"))
                elif route == "score":
                    self._answer(200, {"score": meter.score(body["input"], body["output"])})
                else:
                    self._answer(*meter.complete(body))

            def _answer(self, status: int, body: dict[str, Any]) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                """Silent: calls are logged with their answers."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def open(self, meter: Meter) -> str:
        """The URL of a run, which ``close`` takes back."""
        self._meters[meter.name] = meter
        return f"http://127.0.0.1:{self._server.server_address[1]}/runs/{meter.name}"

    def close(self, name: str) -> None:
        """From here on the run is unknown."""
        self._meters.pop(name, None)
