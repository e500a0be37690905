"""Several workers that answer as one model: each request goes to the one with most room, and elsewhere if that is lost.

A worker is a language model of its own, on this machine or another; workers may differ in speed, size and kind, not in
what they would answer. One that turns requests away, or is lost, rests until it can be reached again, while the others
go on. A request that cost nothing is asked elsewhere at once. One that may have been billed is not: it comes back as a
failure, is charged, and whoever keeps the budget asks again. Limits on requests and tokens hold for all together.
"""

from __future__ import annotations

import atexit
import hashlib
import threading
import time
import weakref
from collections.abc import Sequence

from bestprompt.errors import LMError
from bestprompt.lm.abilities import in_process, ping, weigher
from bestprompt.lm.limits import Rates
from bestprompt.lm.patience import Patience, costs_nothing
from bestprompt.types import Completion, FloatArray, LanguageModel, Request, Usage

# Seconds a worker rests before it is looked after, and the most that grows to.
FIRST_REST, LONGEST_REST = 0.5, 15.0
_LOOK = 0.5  # seconds between looks at whether the run was stopped
_LEAVING = 6.0  # seconds in which a look at a worker that cannot be reached has ended


class WorkerLost(LMError):
    """The worker, or the way to it, is gone; what it was asked may have been billed unless ``usage`` says otherwise."""


class _Worker:
    def __init__(self, model: LanguageModel) -> None:
        self.model, self.busy, self.rested = model, 0, True

    @property
    def load(self) -> float:
        return self.busy / self.model.concurrency


class Fleet:
    """Workers behind one ``LanguageModel``. Thread-safe.

    Args:
        workers: The models; at least one.
        name: What they are, where their own names differ.
        rates: Limits that hold for all of them together.
        patience: With which is waited while none of them can be reached.

    Raises:
        LMError: The workers' names differ and ``name`` does not say that they are the same model.
    """

    def __init__(
        self,
        workers: Sequence[LanguageModel],
        name: str | None = None,
        rates: Rates | None = None,
        patience: Patience | None = None,
    ) -> None:
        names = sorted({worker.name for worker in workers})
        if name is None and len(names) != 1:
            what = f"Workers answer as {' and '.join(names) or 'nothing'}: all must be one model. If they are, name it."
            raise LMError(what, retryable=False, systemic=True)
        self.name, self.patience = name or names[0], patience or Patience(4)
        self._workers, self._rates = [_Worker(worker) for worker in workers], rates or Rates()
        self._changed, self._left = threading.Condition(), threading.Event()
        self._looking: list[threading.Thread] = []
        # Before the way to the workers is closed, which was opened earlier: nobody may look for them after that.
        atexit.register(_leave, weakref.ref(self))
        prints = sorted({worker.fingerprint for worker in workers})
        # Other endpoints of the same model are the same model, so a run may go on with other workers.
        together = hashlib.sha256(self.name.encode()).hexdigest()[:16]
        self.fingerprint = prints[0] if len(prints) == 1 else f"fleet:{self.name}:{together}"
        self.batch_size = max(worker.batch_size for worker in workers)
        self.concurrency = sum(worker.concurrency for worker in workers)

    @property
    def in_process(self) -> bool:
        """Whether nobody can send a bill, whichever worker is lost."""
        return all(in_process(worker.model) for worker in self._workers)

    @property
    def weighs_texts(self) -> bool:
        """Whether a worker can say how likely it finds a text."""
        return any(weigher(worker.model) is not None for worker in self._workers)

    def mean_logprob(self, texts: Sequence[str], contexts: Sequence[str] | None = None) -> FloatArray:
        """(n,) as a worker that can says."""
        found = next(model for worker in self._workers if (model := weigher(worker.model)) is not None)
        return found.mean_logprob(texts, contexts)

    def max_prompt_tokens(self, request: Request) -> int:
        """The most that any worker says."""
        return max(worker.model.max_prompt_tokens(request) for worker in self._workers)

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        """Answers in the order of the requests, all by one worker unless some have to be asked elsewhere."""
        answers: dict[int, Completion | LMError] = {}
        left, tries = list(range(len(requests))), 0
        counted = self._rates.take(requests, self.patience.pause)
        while left:
            worker, why_not = self._place(answers.get(left[0]))
            if worker is None:
                answers |= dict.fromkeys(left, why_not)
                break
            found = self._asked(worker, [requests[i] for i in left])
            answers |= dict(zip(left, found, strict=True))
            left = [i for i, answer in zip(left, found, strict=True) if self._cost_nothing(answer)]
            tries += 1
            rounds, others = divmod(tries, len(self._workers))
            # Where there is another worker it is asked at once; after as many tries as workers it is time to wait.
            if left and not others and not self.patience.again(_error(answers[left[0]]), rounds - 1):
                break
        ordered = [answers[i] for i in range(len(requests))]
        self._rates.settle(counted, ordered)
        return ordered

    # ------------------------------------------------------------------------------------------------------ internals
    def _cost_nothing(self, answer: Completion | LMError) -> bool:
        return isinstance(answer, LMError) and costs_nothing(answer) and not self.patience.over

    def _place(self, last: Completion | LMError | None) -> tuple[_Worker | None, LMError]:
        """The worker with most room, when one has any; or why there is none."""
        why = last if isinstance(last, LMError) else LMError(f"No worker of {self.name} can be reached.", usage=Usage())
        waits, give_up_at = 0, 0.0
        with self._changed:
            while not self.patience.over:
                rested = [each for each in self._workers if each.rested]
                free = [each for each in rested if each.busy < each.model.concurrency]
                if free:
                    best = min(free, key=lambda each: each.load)
                    best.busy += 1
                    return best, why
                if not rested and time.monotonic() >= give_up_at:
                    seconds = self.patience.wait_before(why, waits)
                    if seconds is None:
                        return None, why
                    waits, give_up_at = waits + 1, time.monotonic() + seconds
                self._changed.wait(_LOOK)
        return None, LMError(f"{self.name} was not asked: the run was stopped.", retryable=False, usage=Usage())

    def _asked(self, worker: _Worker, requests: list[Request]) -> list[Completion | LMError]:
        try:
            answers = worker.model.complete(requests)
        except LMError as error:
            answers = [error] * len(requests)
        finally:
            with self._changed:
                worker.busy -= 1
                self._changed.notify()
        if any(isinstance(each, WorkerLost) or self._cost_nothing(each) for each in answers):
            self._rest(worker)
        return answers

    def _rest(self, worker: _Worker) -> None:
        with self._changed:
            if not worker.rested:
                return
            worker.rested = False
            looking = threading.Thread(target=self._look_after, args=(worker,), daemon=True, name="resting worker")
            looking.start()
            self._looking = [*(each for each in self._looking if each.is_alive()), looking]

    def close(self) -> None:
        """No worker that rests is looked after any more."""
        self._left.set()
        for each in self._looking:
            each.join(_LEAVING)

    def _look_after(self, worker: _Worker) -> None:
        """Until the worker can be reached again."""
        seconds = FIRST_REST
        while not self._left.wait(seconds):
            try:
                ping(worker.model)
            except LMError:
                seconds = min(2.0 * seconds, LONGEST_REST)
                continue
            with self._changed:
                worker.rested = True
                self._changed.notify_all()
            return


def _leave(fleet: weakref.ref[Fleet]) -> None:
    if (there := fleet()) is not None:
        there.close()


def _error(answer: Completion | LMError) -> LMError:
    assert isinstance(answer, LMError), "only failures are asked elsewhere"
    return answer
