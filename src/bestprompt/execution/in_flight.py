"""Evaluations that come back one by one: sent as soon as they are asked for, told as soon as any is answered.

The driver alone decides what is sent and reserves for it; threads carry it out. A slow answer holds up its own place at
the model and no other. Which evaluations were told together is recorded, because what was asked next depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from queue import SimpleQueue
from typing import Any

from bestprompt.errors import BudgetExhausted
from bestprompt.execution.evaluator import Evaluator
from bestprompt.execution.jobs import Job
from bestprompt.ledger import ROUND, Ledger
from bestprompt.lm.abilities import give_up
from bestprompt.types import Observation, Proposal

_Chunk = tuple[Job, ...]


def recorded_rounds(ledger: Ledger) -> list[list[Proposal]]:
    """Which evaluations were told together, oldest first."""
    return [[Proposal(*each) for each in payload["told"]] for payload in ledger.payloads(ROUND)]


class AsynchronousEvaluator(Evaluator):
    """An evaluator that also keeps evaluations under way; close it to end them."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        # Some threads more than places at the model: recording an answer takes a while, and needs no place.
        most = self._lm.concurrency
        self._pool = ThreadPoolExecutor(max_workers=most + math.ceil(most / 4), thread_name_prefix="evaluation")
        self._running: dict[int, tuple[_Chunk, Future[None]]] = {}
        self._numbers = count()
        self._questions: dict[Proposal, str | None] = {}  # of all that is under way
        self._ended: SimpleQueue[int] = SimpleQueue()

    def arrivals(self, pending: Collection[Proposal]) -> list[Observation]:
        """Those of the ``pending`` that are answered, at least one; sends what was not sent, as far as the budget goes.

        Where more is pending than the model has places, some answers are gathered: what waits for a place keeps it
        busy meanwhile, and asking once for several takes as long as asking for one.

        Raises:
            BudgetExhausted: None is answered or under way, and none fits the budget.
            LMError: As :meth:`evaluate` does.
        """
        enough = max((len(pending) - self._lm.concurrency * self._lm.batch_size) // 2, 1)
        while True:
            refused = self._send([p for p in pending if p not in self._questions])
            found = self.recorded([p for p in pending if p in self._settled])
            if len(found) >= enough or (found and not self._running):
                self._ledger.note(ROUND, told=[(o.candidate, o.replication) for o in found])
                return found
            if not self._running:
                raise refused or BudgetExhausted("Nothing is under way.")
            self._wait(math.ceil((enough - len(found)) / self._lm.batch_size))

    def rounds(self) -> list[list[Proposal]]:
        """As recorded."""
        return recorded_rounds(self._ledger)

    def close(self) -> None:
        """Sends nothing more; what is under way was paid for, so this waits until it is recorded."""
        self._stopping = True
        for chunk, future in self._running.values():
            if future.cancel():
                self._release(chunk)
        give_up(self._lm, self._scorer)  # Ctrl-C may have come before what was sent last is in ``_running``
        self._pool.shutdown(wait=True)

    # ------------------------------------------------------------------------------------------------------ internals
    def _send(self, proposals: Sequence[Proposal]) -> BudgetExhausted | None:
        """Sends what fits the budget, and is not being found out already."""
        asking = self._different(self._unknown(proposals))
        if self._same_answer:
            under_way = set(self._questions.values())
            asking = [p for p in asking if self._question_of(p) not in under_way]
        jobs, refused = self._reserve(asking)
        size = self._lm.batch_size
        for at in range(0, len(jobs), size):
            chunk = tuple(jobs[at : at + size])
            for job in chunk:
                self._questions[job.proposal] = self._question_of(job.proposal) if self._same_answer else None
            number = next(self._numbers)
            self._running[number] = chunk, self._pool.submit(self._carry_out, number, chunk)
        return refused

    def _carry_out(self, number: int, chunk: _Chunk) -> None:
        try:
            self._run_chunk(chunk)
        finally:
            self._ended.put(number)

    def _wait(self, chunks: int) -> None:
        """Until so many chunks have ended, answered or not, or all of them; and for all others that have."""
        ended = [self._ended.get() for _ in range(min(chunks, len(self._running)))]
        while not self._ended.empty():
            ended.append(self._ended.get())
        failed = []
        for number in ended:
            chunk, future = self._running.pop(number)
            for job in chunk:
                del self._questions[job.proposal]
            # That it has reported does not mean that the future is set already.
            if (error := future.exception()) is not None:
                failed.append(error)
        if failed:
            raise failed[0]
