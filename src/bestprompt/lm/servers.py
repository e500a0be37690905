"""Which llama.cpp server answers a request, so that all cores are used and no thread waits for another in vain.

Requests that come together are shared out among servers with a core each, which never wait for one another; a request
that comes alone gets a server on all cores. The threads of one server wait for each other at every step, which is slow
where another program holds a core, so there a lone request keeps to one core too.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bestprompt.lm.llamacpp import LlamaCpp

MOST_SERVERS = 4
SLOTS_EACH = 4
CROWDED = 0.5
"""Cores that other programs use, above which the threads of one server would wait for each other in vain."""
PATIENCE = 20.0
"""Seconds after which a lone request tries all cores again."""


class Servers:
    """The servers of one GGUF file; thread-safe.

    Args:
        path: The file.
        context: Most tokens of one prompt and its answer together.
        threads: CPU threads of all together.

    Attributes:
        first: One of them, for questions that any can answer.
        slots: Requests that are answered at once.
    """

    def __init__(self, path: Path, context: int, threads: int) -> None:
        self._path, self._context, self._threads = path, context, threads
        count = min(threads, MOST_SERVERS)
        servers = [LlamaCpp(path, context, SLOTS_EACH, threads // count) for _ in range(count)]
        self.first, self.slots = servers[0], count * SLOTS_EACH
        self._free = queue.SimpleQueue[LlamaCpp]()  # each server as often as it has free slots
        for server in servers * SLOTS_EACH:
            self._free.put(server)
        self._wide: LlamaCpp | None = None  # made when first needed: many runs never send a lone request
        self._wide_in_use, self._crowded_until = threading.Lock(), 0.0

    @contextmanager
    def one_slot(self) -> Iterator[LlamaCpp]:
        """A server with a free slot, for one of many requests; waits for it."""
        server = self._free.get()
        try:
            yield server
        finally:
            self._free.put(server)

    @contextmanager
    def all_cores(self) -> Iterator[LlamaCpp]:
        """The server on all cores, for a lone request; one as for many, if that is in use or cores are scarce."""
        scarce = self._threads == 1 or time.monotonic() < self._crowded_until
        if scarce or not self._wide_in_use.acquire(blocking=False):
            with self.one_slot() as server:
                yield server
            return
        try:
            if self._wide is None:
                self._wide = LlamaCpp(self._path, self._context, 1, self._threads)
            before, started = _used_by_others(), time.monotonic()
            yield self._wide
            now = time.monotonic()
            if _used_by_others() - before > CROWDED * (now - started):
                self._crowded_until = now + PATIENCE
        finally:
            self._wide_in_use.release()


def _used_by_others() -> float:
    """Processor seconds that other programs, those that give way aside, have used; unknown, hence 0, but on Linux."""
    try:
        user, _, system = map(int, Path("/proc/stat").read_text(encoding="ascii").split(maxsplit=4)[1:4])
    except OSError:
        return 0.0
    own = os.times()
    return (user + system) / os.sysconf("SC_CLK_TCK") - own.user - own.system
