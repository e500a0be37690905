"""Any server that speaks the OpenAI protocol: hosted or on this machine, chat or legacy completions.

Retries, back-off and Retry-After are the SDK's. The key is read from the environment, lives only inside the SDK's
client, and is removed from every message this module passes on.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from bestprompt.errors import LMAuthError, LMError, LMRefused, LMTimeout
from bestprompt.lm.limits import RateLimit
from bestprompt.lm.settings import BackEnd, ModelSettings
from bestprompt.types import Completion, Request, Usage

if TYPE_CHECKING:
    from openai import OpenAI

_NO_KEY = "not-needed"  # the SDK insists on a key; servers on one's own machine do not
_MESSAGE_OVERHEAD = 16  # role, separators and opening of the answer, in the templates in use
_BYTES_PER_TOKEN = 4  # only to pace requests; settled with the true count afterwards
_PING_TIMEOUT = 5.0
_REFUSALS = {"content_filter", "content_policy_violation"}


class OpenAIModel:
    """A model behind an OpenAI-compatible URL; see ``openai``."""

    def __init__(
        self,
        client: OpenAI,
        model: str,
        api: Literal["chat", "completions"],
        concurrency: int,
        requests: RateLimit,
        tokens: RateLimit,
        extra_body: Mapping[str, Any],
    ) -> None:
        self.name, self.batch_size, self.concurrency = model, 1, concurrency
        self._client, self._api, self._extra = client, api, dict(extra_body)
        self._requests, self._tokens = requests, tokens
        self._slots = threading.BoundedSemaphore(concurrency)
        url = urlsplit(str(client.base_url))
        self._hosted = url.hostname == "api.openai.com"
        # Host and path only: a URL may carry credentials.
        where = f"{url.hostname}:{url.port or url.scheme}{url.path}"
        extra = json.dumps(self._extra, sort_keys=True)
        self.fingerprint = f"openai:{api}:{model}@{where}:{hashlib.sha256(extra.encode()).hexdigest()[:8]}"

    def __repr__(self) -> str:
        return f"OpenAIModel({self.fingerprint})"

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        """Answers in the order of the requests, at most ``concurrency`` of them under way at once over all threads."""
        if len(requests) <= 1:
            return [self._one(request) for request in requests]
        with ThreadPoolExecutor(min(len(requests), self.concurrency)) as pool:
            return list(pool.map(self._one, requests))

    def max_prompt_tokens(self, request: Request) -> int:
        """An upper bound: byte-level tokenisers never make more tokens than bytes, plus what a chat template adds."""
        return (
            sum(len(message.content.encode()) + _MESSAGE_OVERHEAD for message in request.messages) + _MESSAGE_OVERHEAD
        )

    def ping(self) -> None:
        """Returns if the server answers and accepts the key.

        Raises:
            LMError: It does not; the message says why.
        """
        import openai as sdk

        try:
            self._client.with_options(timeout=_PING_TIMEOUT, max_retries=0).models.list()
        except sdk.NotFoundError:
            return  # reachable; not every server lists its models
        except sdk.OpenAIError as error:
            raise self._as_error(error) from None

    def _one(self, request: Request) -> Completion | LMError:
        import openai as sdk

        prompt_bytes = sum(len(message.content.encode()) for message in request.messages)
        reserved = prompt_bytes / _BYTES_PER_TOKEN + request.max_tokens
        with self._slots:
            self._requests.acquire()
            self._tokens.acquire(reserved)
            started = time.perf_counter()
            try:
                response = self._send(request)
            except sdk.OpenAIError as error:
                return self._as_error(error)
        completion = self._read(response, request, time.perf_counter() - started)
        if isinstance(completion, Completion):
            self._tokens.settle(completion.usage.tokens - reserved)
        return completion

    def _send(self, request: Request) -> Any:
        options: dict[str, Any] = {
            "model": self.name,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "seed": request.seed,
            "extra_body": self._extra,
        }
        if request.stop:
            options["stop"] = list(request.stop)
        if self._api == "completions":
            prompt = "\n\n".join(message.content for message in request.messages)
            return self._client.completions.create(prompt=prompt, max_tokens=request.max_tokens, **options)
        messages: Any = [{"role": message.role, "content": message.content} for message in request.messages]
        # OpenAI's newer models accept only the long name, most other servers know only the short one.
        options["max_completion_tokens" if self._hosted else "max_tokens"] = request.max_tokens
        return self._client.chat.completions.create(messages=messages, **options)

    def _read(self, response: Any, request: Request, seconds: float) -> Completion | LMError:
        if not getattr(response, "choices", None):
            return LMError(f"{self.name} answered without any choice.")
        choice = response.choices[0]
        finish = choice.finish_reason or "stop"
        text = choice.text if self._api == "completions" else choice.message.content
        refusal = None if self._api == "completions" else getattr(choice.message, "refusal", None)
        if finish in _REFUSALS or refusal:
            return LMRefused(f"{self.name} declined to answer: {self._scrub(refusal or 'content filter')}")
        text = text or ""
        used = response.usage
        usage = (
            Usage(1, used.prompt_tokens, used.completion_tokens)
            if used is not None
            else Usage(1, self.max_prompt_tokens(request), min(request.max_tokens, len(text.encode())))
        )
        return Completion(text, usage, seconds, finish)

    def _as_error(self, error: Exception) -> LMError:
        import openai as sdk

        text = self._scrub(str(error))
        if isinstance(error, sdk.APITimeoutError):
            return LMTimeout(f"{self.name} did not answer within {self._client.timeout} s.")
        if isinstance(error, sdk.APIConnectionError):
            cause = self._scrub(str(error.__cause__ or error))
            return LMError(f"Cannot reach the server of {self.name}: {cause}")
        if isinstance(error, (sdk.AuthenticationError, sdk.PermissionDeniedError)):
            return LMAuthError(f"The server of {self.name} rejected the key: {text}")
        if isinstance(error, sdk.NotFoundError):
            return LMError(f"The server knows no {self.name!r}: {text}", retryable=False, systemic=True)
        if isinstance(error, sdk.APIStatusError):
            if error.code in _REFUSALS:
                return LMRefused(f"{self.name} declined to answer: {text}")
            if error.code == "insufficient_quota":
                return LMError(f"The account has no quota left: {text}", retryable=False, systemic=True)
            retryable = error.status_code in (408, 409, 429) or error.status_code >= 500
            return LMError(f"{self.name}: {text}", retryable=retryable)
        return LMError(f"{self.name}: {text}")

    def _scrub(self, text: str) -> str:
        key = self._client.api_key
        return text.replace(key, "***") if key and key != _NO_KEY else text


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
    extra_body: Mapping[str, Any] | None = None,
) -> OpenAIModel:
    """A model behind any URL that speaks the OpenAI protocol.

    Args:
        model: The server's name for the model.
        base_url: E.g. ``"http://localhost:8000/v1"``; OpenAI's own by default (or ``$OPENAI_BASE_URL``).
        api: ``"chat"``, or ``"completions"`` for the legacy endpoint, which gets the messages as one plain text.
        api_key_env: Environment variable that holds the key. A server with a ``base_url`` may do without.
        timeout: Seconds to wait for one attempt.
        max_retries: Further attempts after a rate limit, a server error or a lost connection; waits as long as the
            server's Retry-After says (up to two minutes), else backs off.
        concurrency: Requests under way at once.
        requests_per_second: At most so many requests start in a second; retries inside the SDK are not counted.
        tokens_per_second: At most so many tokens, prompt and answer; estimated first, corrected by the server's count.
        extra_body: Further fields of the request body, for servers that know more, e.g. ``{"top_k": 1}``.

    Raises:
        LMAuthError: No key where one is needed.
    """
    from openai import OpenAI

    for name, value in (("concurrency", concurrency), ("timeout", timeout)):
        if value <= 0:
            raise LMError(f"{name} must be above zero, not {value}", retryable=False, systemic=True)
    for name, rate in (("requests_per_second", requests_per_second), ("tokens_per_second", tokens_per_second)):
        if rate is not None and rate <= 0:
            raise LMError(f"{name} must be above zero, not {rate}", retryable=False, systemic=True)
    url = base_url or os.environ.get("OPENAI_BASE_URL")
    key = os.environ.get(api_key_env)
    if not key and not url:
        raise LMAuthError(f"No API key: set the environment variable {api_key_env}, or give the base_url of a server.")
    client = OpenAI(api_key=key or _NO_KEY, base_url=url, timeout=timeout, max_retries=max_retries)
    limits = RateLimit(requests_per_second), RateLimit(tokens_per_second)
    return OpenAIModel(client, model, api, concurrency, *limits, extra_body or {})


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
    )


BACK_END = BackEnd(_from_settings, needs=("name",))
