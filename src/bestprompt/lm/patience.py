"""Waiting before a request that cost nothing is sent again: as long as the server asks, visibly, and not in vain."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bestprompt.errors import LMError

# Seconds before the first further attempt, and how much longer each later wait is: four waits span a minute and a half.
FIRST_WAIT, GROWTH = 1.0, 4.0
# A server that asks for more than this is asked again when the run is continued, not while it stands still.
LONGEST_WAIT = 600.0

Heard = Callable[[LMError, float | None], None]
"""Is told of each attempt that cost nothing: why, and the seconds until the next one (``None``: there is none)."""


class Patience:
    """How often, and when, an attempt that cost nothing is made again. Thread-safe.

    Args:
        retries: Further attempts.
    """

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self._over = threading.Event()
        self._heard: Heard = _deaf

    @contextmanager
    def heard_by(self, heard: Heard) -> Iterator[None]:
        """Tells ``heard`` while the block lasts."""
        self._heard = heard
        try:
            yield
        finally:
            self._heard = _deaf
            self._over.clear()

    def give_up(self) -> None:
        """Ends all waiting for those who listen: the run stops."""
        if self._heard is not _deaf:
            self._over.set()

    @property
    def over(self) -> bool:
        """Whether the run stops."""
        return self._over.is_set()

    def pause(self, seconds: float) -> None:
        """Waits so long, or until the run stops."""
        self._over.wait(seconds)

    def again(self, error: LMError, attempt: int) -> bool:
        """Whether to ask again after the zero-based ``attempt`` failed with ``error``; returns when it is time."""
        if not costs_nothing(error):
            return False
        seconds = self.wait_before(error, attempt)
        return seconds is not None and not self._over.wait(seconds)

    def wait_before(self, error: LMError, attempt: int) -> float | None:
        """Seconds to wait after the zero-based ``attempt`` failed with ``error``; ``None``: no other is made."""
        seconds = _seconds(error.retry_after, attempt)
        last = attempt >= self._retries or seconds > LONGEST_WAIT or self._over.is_set()
        self._heard(error, None if last else seconds)
        return None if last else seconds


def costs_nothing(error: LMError) -> bool:
    """Whether a request may be sent again at no cost: it was turned away for now, or never left."""
    return error.unbilled and error.retryable


def _seconds(asked: float | None, attempt: int) -> float:
    if asked is not None:
        return asked
    # Not all at the same moment: those who were turned away together should not come back together.
    return FIRST_WAIT * GROWTH**attempt * random.uniform(0.75, 1.0)


def _deaf(_error: LMError, _seconds: float | None) -> None:
    """Nobody listens."""
