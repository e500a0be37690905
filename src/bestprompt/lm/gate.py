"""How many requests are at a server at once: as many as it takes, fewer after rejections, none while it is down.

Notation (symbol → name):
    Q    requests at once that settings allow    → ``most``
    c    requests at once that may be there now  → ``limit``

A request that was turned away halves c, one that was answered while all places were taken adds 1/c (additive increase,
multiplicative decrease, as TCP shares a line). Requests that were under way when c was halved say nothing new, so one
burst of rejections counts once. ``BROKEN`` such bursts with no answer between them mean that the server is down or
closed: nothing is sent for a while, then a single request, and after its answer half of what was possible before.
The pauses grow as those of one request do (``patience.py``); when they are used up, all who wait are told.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bestprompt.errors import LMError
from bestprompt.lm.patience import Patience, costs_nothing
from bestprompt.types import Completion, Usage

BROKEN = 5
_LOOK = 0.5  # seconds between looks at whether the run was stopped
_TOLD = 1.0  # seconds in which all who wait are told that it is of no use


class Shut(Exception):
    """Nothing may be sent any more; ``args[0]`` is the error to pass on."""


class Gate:
    """Lets requests through to one server. Thread-safe.

    Args:
        most: Requests at once, at most.
        patience: Says how long to pause, and tells who listens.
    """

    def __init__(self, most: int, patience: Patience) -> None:
        self._most, self._patience = most, patience
        self._changed = threading.Condition()
        self._limit, self._there = float(most), 0
        self._halvings = 0  # generation: what began before the last one says nothing new
        self._bursts = self._pauses = 0
        self._before = float(most)  # c when the server went down
        self._closed_until = self._shut_until = 0.0
        self._last: LMError | None = None

    @property
    def limit(self) -> int:
        """Requests that may be at the server now."""
        return max(int(self._limit), 1)

    @contextmanager
    def place(self) -> Iterator[int]:
        """A place at the server while the block lasts; its value is to be passed on to :meth:`learn`.

        Raises:
            Shut: The server stayed down through all pauses.
        """
        with self._changed:
            while not self._free():
                self._changed.wait(_LOOK)
            if self._is_shut:
                raise Shut(self._last)
            self._there += 1
            began = self._halvings
        try:
            yield began
        finally:
            with self._changed:
                self._there -= 1
                self._changed.notify()

    def learn(self, answer: Completion | LMError, began: int) -> None:
        """What became of a request that got its place when ``began`` was the generation."""
        with self._changed:
            if isinstance(answer, Completion) or not answer.retryable:
                self._answered()
            elif costs_nothing(answer) and began == self._halvings:
                self._turned_away(answer)
            self._changed.notify_all()

    # ------------------------------------------------------------------------------------------------------ internals
    @property
    def _is_shut(self) -> bool:
        return time.monotonic() < self._shut_until

    def _free(self) -> bool:
        if self._is_shut or self._patience.over:
            return True  # whoever was let in finds out that the run is stopped
        return self._there < self.limit and time.monotonic() >= self._closed_until

    def _answered(self) -> None:
        if self._pauses:
            self._limit = max(self._before / 2.0, 1.0)
        elif self._there >= self.limit:
            self._limit = min(self._limit + 1.0 / self._limit, float(self._most))
        self._bursts = self._pauses = 0

    def _turned_away(self, error: LMError) -> None:
        if not self._bursts:
            self._before = self._limit
        self._halvings += 1
        self._bursts += 1
        self._limit = max(self._limit / 2.0, 1.0)
        if self._bursts < BROKEN or self._most == 1:  # a single request has its own patience
            return
        self._limit = 1.0
        why = LMError(f"paused, nothing was answered between {self._bursts} rejections: {error}", usage=Usage())
        why.retry_after = error.retry_after
        seconds = self._patience.wait_before(why, self._pauses)
        if seconds is None:
            self._last, self._shut_until = error, time.monotonic() + _TOLD
        else:
            self._pauses += 1
            self._closed_until = time.monotonic() + seconds
