"""Rate limits shared by threads: so many units a second, averaged over a short burst."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from bestprompt.errors import LMError
from bestprompt.types import Completion, Request

_BYTES_PER_TOKEN = 4  # only to pace requests; settled with the true count afterwards


class RateLimit:
    """A token bucket that goes into debt: each caller reserves at once and then sleeps until its debt is paid.

    Reserving at once keeps callers in the order they came, and lets one ask for more than a burst holds.

    Args:
        per_second: Units a second; ``None`` for no limit.
        burst: Units that may be used at once after a pause; one second's worth by default, and at least one unit.
    """

    def __init__(self, per_second: float | None, burst: float | None = None) -> None:
        self._rate = per_second
        self._burst = max(1.0, burst if burst is not None else per_second or 1.0)
        self._available = self._burst
        self._refilled = time.monotonic()
        self._lock = threading.Lock()

    def acquire(self, amount: float = 1.0, sleep: Callable[[float], object] = time.sleep) -> float:
        """Waits, by ``sleep``, until ``amount`` units may be used; returns the seconds waited."""
        if self._rate is None:
            return 0.0
        with self._lock:
            now = time.monotonic()
            self._available = min(self._burst, self._available + (now - self._refilled) * self._rate)
            self._refilled = now
            self._available -= amount
            wait = max(0.0, -self._available / self._rate)
        if wait:
            sleep(wait)
        return wait

    def settle(self, difference: float) -> None:
        """Corrects an estimate: ``difference`` more units (or fewer, if negative) were used than acquired."""
        with self._lock:
            self._available = min(self._burst, self._available - difference)


class Rates:
    """Limits on requests and on tokens, which are estimated first and corrected by the answers.

    Args:
        requests_per_second: ``None`` for no limit; likewise the others.
        tokens_per_second: Prompt and answer together.
        requests_per_minute: The same as vendors state it; the tighter of two limits holds.
        tokens_per_minute: Likewise.

    Raises:
        LMError: A limit is not above zero.
    """

    def __init__(
        self,
        requests_per_second: float | None = None,
        tokens_per_second: float | None = None,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
    ) -> None:
        given = {
            "requests_per_second": requests_per_second,
            "tokens_per_second": tokens_per_second,
            "requests_per_minute": requests_per_minute,
            "tokens_per_minute": tokens_per_minute,
        }
        for name, rate in given.items():
            if rate is not None and rate <= 0:
                raise LMError(f"{name} must be above zero, not {rate}", retryable=False, systemic=True)
        self.requests = RateLimit(_slower(requests_per_second, requests_per_minute))
        self.tokens = RateLimit(_slower(tokens_per_second, tokens_per_minute))

    def take(self, requests: Sequence[Request], sleep: Callable[[float], object] = time.sleep) -> float:
        """Waits until ``requests`` may be sent; the tokens that were counted for them."""
        self.requests.acquire(len(requests), sleep)
        prompts = sum(len(message.content.encode()) for request in requests for message in request.messages)
        counted = prompts / _BYTES_PER_TOKEN + sum(request.max_tokens for request in requests)
        self.tokens.acquire(counted, sleep)
        return counted

    def settle(self, counted: float, answers: Sequence[Completion | LMError]) -> None:
        """Corrects what was ``counted`` by the ``answers``; a failure that may have been billed counts as estimated."""
        if all(isinstance(each, Completion) or each.unbilled for each in answers):
            used = sum(each.usage.tokens for each in answers if each.usage is not None)
            self.tokens.settle(used - counted)


def _slower(per_second: float | None, per_minute: float | None) -> float | None:
    given = [rate for rate in (per_second, per_minute and per_minute / 60.0) if rate is not None]
    return min(given, default=None)
