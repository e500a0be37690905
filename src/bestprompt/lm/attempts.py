"""One attempt, bounded in time, and once nobody wants the answer any more.

A thread that waits for a server cannot be interrupted, and a server that sends a byte now and then never lets it time
out. So an attempt is made in another thread, which nothing waits for longer than it should, not even the end of the
program.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar, cast

T = TypeVar("T")

# After a run was stopped, what is under way and may have been paid for gets this long to arrive.
GRACE = 2.0
_KEPT = 10.0  # seconds that a thread waits for another attempt to make
_LOOK = 0.5  # seconds between looks at whether the answer is still wanted


class TooLate(Exception):
    """There was no answer in time."""


class Unwanted(Exception):
    """There was no answer before the run was stopped."""


class _Crew:
    """Threads that make attempts, kept for a while for the next ones; the end of the program waits for none of them."""

    def __init__(self) -> None:
        self._gather()
        os.register_at_fork(after_in_child=self._gather)  # threads stay with the parent

    def _gather(self) -> None:
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._idle = threading.Semaphore(0)

    def do(self, work: Callable[[], None]) -> None:
        """Has ``work`` done at once, whatever the others do."""
        self._work.put(work)
        if not self._idle.acquire(blocking=False):
            threading.Thread(target=self._serve, daemon=True, name="attempt").start()

    def _serve(self) -> None:
        while True:
            try:
                self._work.get(timeout=_KEPT)()
            except Empty:
                if self._idle.acquire(blocking=False):
                    return
                continue  # there is work for it on the way
            self._idle.release()


_CREW = _Crew()


def attempted(work: Callable[[], T], seconds: float, unwanted: Callable[[], bool]) -> T:
    """What ``work`` returns or raises.

    Args:
        work: Makes the attempt.
        seconds: How long to wait for it.
        unwanted: Whether the run was stopped.

    Raises:
        TooLate: It took longer.
        Unwanted: The run was stopped, and a moment later it had not ended.
    """
    outcome: list[tuple[T, None] | tuple[None, BaseException]] = []
    under_way = threading.Lock()  # a bare lock: what there is for futures takes as long as sending the request
    under_way.acquire()

    def run() -> None:
        try:
            outcome.append((work(), None))
        except BaseException as error:
            outcome.append((None, error))
        finally:
            under_way.release()

    _CREW.do(run)
    deadline, stopped = time.monotonic() + seconds, False
    while not under_way.acquire(timeout=max(min(deadline - time.monotonic(), _LOOK), 0.0)):
        if time.monotonic() >= deadline:
            raise Unwanted if stopped else TooLate
        if not stopped and unwanted():
            stopped, deadline = True, min(deadline, time.monotonic() + GRACE)
    result, error = outcome[0]
    if error is not None:
        raise error
    return cast(T, result)
