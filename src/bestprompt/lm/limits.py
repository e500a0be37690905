"""A rate limit shared by threads: so many units a second, averaged over a short burst."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


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


def slower(per_second: float | None, per_minute: float | None) -> float | None:
    """Units a second by the tighter of two limits; ``None`` where there is none."""
    given = [rate for rate in (per_second, per_minute and per_minute / 60.0) if rate is not None]
    return min(given, default=None)
