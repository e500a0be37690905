"""Any server that speaks the OpenAI protocol: hosted or on this machine, chat or legacy completions.

Each attempt is one request (``connections.py``). One that was turned away or never left cost nothing and is made again
after a wait (``patience.py``); one that may have been billed is not: whoever keeps the budget decides. The key is read
from the environment, lives only inside the connections, and is removed from every message this module passes on.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal

from bestprompt.errors import LMAuthError, LMError, LMTimeout
from bestprompt.lm.attempts import TooLate, Unwanted, attempted
from bestprompt.lm.bounds import most_prompt_tokens
from bestprompt.lm.failures import cannot_be_sent, failure, rejection
from bestprompt.lm.gate import Gate, Shut
from bestprompt.lm.limits import Rates
from bestprompt.lm.patience import Patience, costs_nothing
from bestprompt.lm.replies import read_reply
from bestprompt.lm.secrets import Scrubber, read_key
from bestprompt.lm.settings import BackEnd, ModelSettings
from bestprompt.types import Completion, Request, Usage

if TYPE_CHECKING:
    from bestprompt.lm.connections import Connections

_VENDOR = "https://api.openai.com/v1"
_PING_TIMEOUT = 5.0
# Seconds for a connection to be made, besides those for the answer: one that is not made in time has cost nothing.
_CONNECTING = 10.0


class OpenAIModel:
    """A model behind an OpenAI-compatible URL; see ``openai``."""

    def __init__(
        self,
        server: Connections,
        model: str,
        api: Literal["chat", "completions"],
        concurrency: int,
        rates: Rates,
        patience: Patience,
        extra_body: Mapping[str, Any],
        timeout: float,
    ) -> None:
        self.name, self.batch_size, self.concurrency = model, 1, concurrency
        self._server, self._api, self._extra = server, api, dict(extra_body)
        self._rates, self.patience, self._timeout = rates, patience, timeout
        self._gate = Gate(concurrency, patience)
        weakref.finalize(self, server.close).atexit = False  # connections end with the model
        self._scrub = Scrubber(*server.secrets)
        self._hosted = server.host == "api.openai.com"
        extra = hashlib.sha256(json.dumps(self._extra, sort_keys=True).encode()).hexdigest()[:8]
        self.fingerprint = f"openai:{api}:{model}@{server.where}{server.path}:{extra}"

    def __repr__(self) -> str:
        return f"OpenAIModel({self.fingerprint})"

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        """Answers in the order of the requests, at most ``concurrency`` of them under way at once over all threads."""
        if len(requests) <= 1:
            return [self._one(request) for request in requests]
        left = threading.Event()
        with ThreadPoolExecutor(min(len(requests), self.concurrency)) as pool:
            try:
                return list(pool.map(lambda request: self._one(request, left), requests))
            except BaseException:
                left.set()  # Ctrl-C: whoever asked has left, and what is under way is not waited for
                raise

    def max_prompt_tokens(self, request: Request) -> int:
        """An upper bound."""
        return most_prompt_tokens(request)

    def ping(self) -> None:
        """Returns if the server answers and accepts the key.

        Raises:
            LMError: It does not; the message says why.
        """
        try:
            reply = self._server.get("models", _PING_TIMEOUT)
        except Exception as error:
            raise self._failure(error, _PING_TIMEOUT) from None
        if reply.status >= 300 and reply.status != 404:  # reachable; not every server lists its models
            raise rejection(reply, self.name, self._server.way, self._scrub)

    def _one(self, request: Request, left: threading.Event | None = None) -> Completion | LMError:
        attempt = 0

        def unwanted() -> bool:
            return self.patience.over or (left is not None and left.is_set())

        try:
            while isinstance(answer := self._attempt(request, unwanted), LMError):
                if not self.patience.again(answer, attempt):
                    break
                attempt += 1
        except Shut as shut:
            return LMError(str(shut.args[0]), usage=Usage())
        if isinstance(answer, LMError) and costs_nothing(answer) and attempt and not unwanted():
            tried = (
                f"{answer} (asked {attempt + 1} times; `max_retries` allows more, a lower `concurrency` needs fewer)"
            )
            return LMError(tried, usage=Usage(), retry_after=answer.retry_after)
        return answer

    def _attempt(self, request: Request, unwanted: Callable[[], bool]) -> Completion | LMError:
        """One request to the server, and no other, as soon as there is a place for it."""
        with self._gate.place() as began:
            counted = self._rates.take([request], self.patience.pause)
            answer = self._sent(request, unwanted)
            self._rates.settle(counted, [answer])
            self._gate.learn(answer, began)
            return answer

    def _sent(self, request: Request, unwanted: Callable[[], bool]) -> Completion | LMError:
        if unwanted():
            return LMError(f"{self.name} was not asked: the run was stopped.", retryable=False, usage=Usage())
        path, content = self._content(request)
        try:
            body = json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, TypeError) as error:
            return cannot_be_sent(error, self.name, self._scrub)
        started = time.perf_counter()
        try:
            reply = attempted(lambda: self._server.post(path, body), self._timeout + _CONNECTING, unwanted)
        except TooLate:
            return LMTimeout(f"{self.name} did not answer within {self._timeout:g} s.")
        except Unwanted:
            return LMError(f"{self.name} had not answered when the run was stopped.")
        except Exception as error:
            return self._failure(error, self._timeout)
        if not 200 <= reply.status < 300:
            return rejection(reply, self.name, self._server.way, self._scrub)

        def uncounted(text: str) -> Usage:
            return Usage(1, self.max_prompt_tokens(request), min(request.max_tokens, len(text.encode())))

        seconds = time.perf_counter() - started
        return read_reply(reply.body, self._api, self.name, seconds, uncounted, self._scrub)

    def _content(self, request: Request) -> tuple[str, dict[str, Any]]:
        """Where to send ``request``, and what to send."""
        content: dict[str, Any] = {
            "model": self.name,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "seed": request.seed,
        }
        if request.stop:
            content["stop"] = list(request.stop)
        if self._api == "completions":
            content["prompt"] = "\n\n".join(message.content for message in request.messages)
            content["max_tokens"] = request.max_tokens
            return "completions", {**content, **self._extra}
        content["messages"] = [{"role": message.role, "content": message.content} for message in request.messages]
        # OpenAI's newer models accept only the long name, most other servers know only the short one.
        content["max_completion_tokens" if self._hosted else "max_tokens"] = request.max_tokens
        return "chat/completions", {**content, **self._extra}

    def _failure(self, error: Exception, timeout: float) -> LMError:
        return failure(error, self.name, self._server.way, timeout, self._scrub)


def openai(
    model: str,
    base_url: str | None = None,
    *,
    api: Literal["chat", "completions"] = "chat",
    api_key_env: str = "OPENAI_API_KEY",
    timeout: float = 60.0,
    max_retries: int = 4,
    concurrency: int = 8,
    requests_per_second: float | None = None,
    tokens_per_second: float | None = None,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
) -> OpenAIModel:
    """A model behind any URL that speaks the OpenAI protocol.

    Args:
        model: The server's name for the model.
        base_url: E.g. ``"http://localhost:8000/v1"``; OpenAI's own by default (or ``$OPENAI_BASE_URL``).
        api: ``"chat"``, or ``"completions"`` for the legacy endpoint, which gets the messages as one plain text.
        api_key_env: Environment variable that holds the key. A server with a ``base_url`` may do without.
        timeout: Seconds to wait for one attempt.
        max_retries: Further attempts at a request that cost nothing: a rate limit, a server error, a connection never
            made. Waits as long as the server's Retry-After says (up to ten minutes), else longer each time.
        concurrency: Requests under way at once, at most: fewer after the server has turned some away.
        requests_per_second: At most so many requests start in a second, further attempts included.
        tokens_per_second: At most so many tokens, prompt and answer; estimated first, corrected by the server's count.
        requests_per_minute: The same as vendors state it.
        tokens_per_minute: The same as vendors state it.
        extra_body: Further fields of the request body, for servers that know more, e.g. ``{"top_k": 1}``.

    Raises:
        LMAuthError: No key where one is needed.
        LMError: The URL, or a proxy or certificates in the environment, cannot be used.
    """
    from bestprompt.lm.connections import Connections  # here, because loading it takes a while

    for name, value in (("concurrency", concurrency), ("timeout", timeout)):
        if value <= 0:
            raise LMError(f"{name} must be above zero, not {value}", retryable=False, systemic=True)
    rates = Rates(requests_per_second, tokens_per_second, requests_per_minute, tokens_per_minute)
    url = base_url or os.environ.get("OPENAI_BASE_URL")
    key = read_key(api_key_env)
    if not key and not url:
        raise LMAuthError(f"No API key: set the environment variable {api_key_env}, or give the base_url of a server.")
    server = Connections(url or _VENDOR, key, timeout, _CONNECTING, kept=concurrency)
    return OpenAIModel(server, model, api, concurrency, rates, Patience(max_retries), extra_body or {}, timeout)


def _from_settings(settings: ModelSettings) -> OpenAIModel:
    return openai(
        settings.name or "",
        settings.base_url,
        api=settings.api,
        api_key_env=settings.api_key_env,
        timeout=settings.timeout,
        max_retries=settings.max_retries,
        concurrency=settings.concurrency,
        requests_per_second=settings.requests_per_second,
        tokens_per_second=settings.tokens_per_second,
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
    )


BACK_END = BackEnd(_from_settings, needs=("name",))
