"""What every worker shares, in the standard library alone: jobs from stdin, the metered model, the score.

A job is one line of JSON, its result another. A worker lives for many jobs: some peers take ten seconds to load.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

WRITER = {"max_tokens": 160, "temperature": 0.9}  # every method's requests for new prompts


class Refused(Exception):
    """The proxy answers no more: the budget of the run is spent."""


class Job:
    """One run: the user's data and a model that is counted elsewhere.

    Attributes:
        calls: Requests by our own count, refused ones included.
    """

    def __init__(self, told: dict[str, Any]) -> None:
        self.budget, self.seed = int(told["budget"]), int(told["seed"])
        self.examples, self.pairs = list(told["examples"]), list(told["pairs"])
        self.max_tokens, self.template = int(told["max_tokens"]), str(told["template"])
        self.description = str(told.get("description", ""))
        self.url, self.options, self.calls = str(told["url"]), dict(told.get("options", {})), 0
        self._host, self._path = urlsplit(self.url).netloc, urlsplit(self.url).path
        self._of_thread = threading.local()  # a connection each, kept open

    def render(self, prompt: str, question: str) -> str:
        """The user's message."""
        return self.template.replace("{prompt}", prompt.strip()).replace("{input}", question)

    def ask(self, messages: list[dict[str, str]], max_tokens: int | None = None, temperature: float = 0.0) -> str:
        """One call.

        Raises:
            Refused: It was one too many.
        """
        self.calls += 1
        body = {"model": "m", "messages": messages, "temperature": temperature}
        reply = self._post("/v1/chat/completions", {**body, "max_tokens": max_tokens or self.max_tokens})
        return str(reply["choices"][0]["message"]["content"])

    def answer(self, prompt: str, question: str) -> str:
        """The model's answer to a question under a prompt."""
        return self.ask([{"role": "user", "content": self.render(prompt, question)}])

    def write(self, request: str) -> str:
        """What the model writes when asked for a new prompt."""
        return self.ask([{"role": "user", "content": request}], **WRITER)

    def score(self, question: str, output: str) -> float:
        """What an answer to the question of a pair is worth; not counted."""
        return float(self._post("/score", {"input": question, "output": output})["score"])

    def evaluate(self, prompt: str, pair: dict[str, str]) -> float:
        """Asks and scores."""
        return self.score(pair["input"], self.answer(prompt, pair["input"]))

    def _post(self, route: str, body: dict[str, Any]) -> dict[str, Any]:
        if not hasattr(self._of_thread, "connection"):
            self._of_thread.connection = http.client.HTTPConnection(self._host, timeout=600)
        connection = self._of_thread.connection
        connection.request("POST", self._path + route, json.dumps(body), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        text = reply.read()
        if reply.status == 403:
            raise Refused
        if reply.status == 400:  # longer than the model's context: no answer, as from any server
            return {"choices": [{"message": {"content": ""}}]}
        if reply.status != 200:
            raise RuntimeError(f"status {reply.status}: {text[:200]!r}")
        return dict(json.loads(text))


def serve(choose: Callable[[Job], dict[str, Any]]) -> None:
    """Answers jobs until the input ends; what peers print goes to stderr."""
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        try:
            job = Job(json.loads(line))
            result = {"demos": [], **choose(job)}
            result.setdefault("own_calls", job.calls)
        except Exception as error:
            traceback.print_exc()
            result = {"error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps(result), file=out, flush=True)
