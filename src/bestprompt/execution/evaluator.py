"""Turns proposals into observations: render → language model → score → ledger, never paying for the same call twice."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any

from bestprompt.errors import BudgetExhausted, LMError, LMRefused
from bestprompt.execution.budget import Budget, Spend, spent
from bestprompt.execution.jobs import Job, Prices
from bestprompt.execution.schedule import Schedule
from bestprompt.ledger import Entry, Ledger
from bestprompt.lm.abilities import give_up, in_process, patience
from bestprompt.types import (
    Completion,
    LanguageModel,
    Observation,
    Pair,
    Proposal,
    Request,
    Scorer,
    Usage,
)

Render = Callable[[str, Pair, int], Request]

# So many failures with no answer between them mean that the model is out of reach, not that a call was unlucky.
HOPELESS = 10


class Evaluator:
    """Evaluates proposals; the ledger is its memory.

    Args:
        prompts: The candidate prompts, by candidate index.
        pairs: The pairs evaluations draw from.
        render: Makes the request for (prompt, pair, sampling seed).
        lm: The language model.
        scorer: The score.
        ledger: Where every attempt is recorded; what it already holds is never asked again.
        budget: Refuses what does not fit. What the ledger records is charged to it on construction.
        schedule: Which pair and seed each replication uses.
        prices: For the dollars.
        same_answer: Whether the same question has the same answer: then it is asked once, and each further proposal of
            it is recorded with that answer and its score, free of charge.
        attempts: How often a call that may have been billed fails before the run stops. How often one that cost nothing
            is made again is up to the model.
        on_entry: Called after each attempt is recorded, e.g. by a progress bar.
        models: Which model answers each candidate, where there are several.
    """

    def __init__(
        self,
        *,
        prompts: Sequence[str],
        pairs: Sequence[Pair],
        render: Render,
        lm: LanguageModel,
        scorer: Scorer,
        ledger: Ledger,
        budget: Budget,
        schedule: Schedule,
        prices: Prices | None = None,
        same_answer: bool = False,
        attempts: int = 3,
        on_entry: Callable[[Entry], None] | None = None,
        models: Sequence[str] = (),
    ) -> None:
        self._prompts, self._pairs, self._render, self._models = list(prompts), pairs, render, models
        self._lm, self._scorer, self._ledger, self._budget = lm, scorer, ledger, budget
        self._schedule, self._prices, self._attempts = schedule, prices or Prices(), attempts
        self._on_entry, self._same_answer = on_entry, same_answer
        self._known: dict[str, Entry] = {}
        self._settled: dict[Proposal, float] = {}
        self._tries: dict[Proposal, int] = {}
        self._billed_failures: dict[Proposal, int] = {}
        self._unscored: dict[Proposal, Completion] = {}
        self._failures_in_a_row = 0
        self._in_process, self._patience = in_process(lm), patience(lm)
        # A proposal is looked at several times on its way.
        self._rendered = lru_cache(4096)(self._render_anew)
        self._question_of = lru_cache(4096)(lambda proposal: _question(self._rendered(proposal).as_record()))
        self._places = threading.BoundedSemaphore(lm.concurrency)
        self._stopping = False
        for entry in ledger.entries():
            self._remember(entry)
        budget.settle(Spend(), spent(ledger))

    def evaluate(self, proposals: Sequence[Proposal]) -> list[Observation]:
        """The observations of ``proposals``, in their order; recorded ones are looked up, the others are asked for.

        A call that failed is asked again up to ``attempts`` times.

        Raises:
            BudgetExhausted: If some proposals did not fit the budget; the others were evaluated and recorded first.
            LMError: If a call kept failing, or failed in a way that every call would; the rest is recorded.
        """
        missing = self._unknown(proposals)
        while missing:
            jobs, exhausted = self._reserve(self._different(missing))
            if not jobs and exhausted is not None:
                raise exhausted
            # Answers usually need less than was set aside for them, so what did not fit beside these may fit after.
            self._run(jobs)
            missing = self._unknown(missing)
        return self.recorded(proposals)

    def recorded(self, proposals: Sequence[Proposal]) -> list[Observation]:
        """The observations of those ``proposals`` that are settled; asks for nothing."""
        return [Observation(p.candidate, p.replication, self._settled[p]) for p in proposals if p in self._settled]

    def arrivals(self, pending: Collection[Proposal]) -> list[Observation]:
        """All of the ``pending``: nothing is told before the rest."""
        return self.evaluate(tuple(pending))

    def rounds(self) -> list[list[Proposal]]:
        """None are recorded: what was told together was asked for together."""
        return []

    def close(self) -> None:
        """Nothing is under way between two calls."""

    def admit(self, prompt: str) -> None:
        """One more candidate may be proposed from now on."""
        self._prompts.append(prompt)

    @property
    def spent(self) -> Spend:
        """What the run has used so far, earlier sessions included."""
        return self._budget.spent

    # ------------------------------------------------------------------------------------------------------ internals
    def _unknown(self, proposals: Sequence[Proposal]) -> list[Proposal]:
        """Those that have to be asked for; what another proposal has found out is recorded."""
        missing = [p for p in proposals if p not in self._settled]
        if not self._same_answer or not missing:
            return missing
        found = [(p, self._known[q]) for p in missing if (q := self._question_of(p)) in self._known]
        self._ledger.append(entries := [self._copied(p, known) for p, known in found])
        for entry in entries:
            self._remember(entry)
            if self._on_entry is not None:
                self._on_entry(entry)
        return [p for p in missing if p not in self._settled]

    def _different(self, proposals: Sequence[Proposal]) -> list[Proposal]:
        """``proposals`` without those that ask what an earlier one asks, where that is no news."""
        if not self._same_answer:
            return list(proposals)
        return list({self._question_of(p): p for p in reversed(proposals)}.values())[::-1]

    def _render_anew(self, proposal: Proposal) -> Request:
        pair = self._pairs[self._schedule.pair(proposal)]
        request = self._render(self._prompts[proposal.candidate], pair, self._schedule.sampling_seed(proposal))
        return dataclasses.replace(request, model=self._models[proposal.candidate]) if self._models else request

    def _copied(self, proposal: Proposal, known: Entry) -> Entry:
        return dataclasses.replace(
            known,
            candidate=proposal.candidate,
            replication=proposal.replication,
            attempt=0,
            pair=self._schedule.pair(proposal),
            request=self._rendered(proposal).as_record(),
            usage=Usage(),
            cost=0.0,
            latency=0.0,
        )

    def _reserve(self, proposals: Sequence[Proposal]) -> tuple[list[Job], BudgetExhausted | None]:
        # In proposal order and before anything is sent: what fits does not depend on the timing of threads.
        jobs: list[Job] = []
        for proposal in proposals:
            pair_index = self._schedule.pair(proposal)
            pair = self._pairs[pair_index]
            request = self._rendered(proposal)
            known = proposal in self._unscored
            answer = Usage() if known else Usage(1, self._lm.max_prompt_tokens(request), request.max_tokens)
            judging = self._scorer.max_usage(pair, request.max_tokens)
            job = Job(proposal, self._tries.get(proposal, 0), pair_index, request, answer, judging, self._prices)
            try:
                self._budget.reserve(job.reserved)
            except BudgetExhausted as error:
                return jobs, error
            jobs.append(job)
        return jobs, None

    def _run(self, jobs: Sequence[Job]) -> None:
        chunks = [jobs[i : i + self._lm.batch_size] for i in range(0, len(jobs), self._lm.batch_size)]
        if self._lm.concurrency == 1 or len(chunks) == 1:
            # In the calling thread, so that Ctrl-C reaches it between two batches.
            self._release_after(chunks)
            return
        with ThreadPoolExecutor(max_workers=self._lm.concurrency) as pool:
            futures: dict[Future[None], Sequence[Job]] = {}
            try:
                for chunk in chunks:
                    futures[pool.submit(self._run_chunk, chunk)] = chunk
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
            except BaseException:
                # What was not sent is not sent and gives its reservation back; what is under way was paid for, so
                # leaving the ``with`` waits until it is recorded. Ctrl-C may come before the last is in ``futures``.
                for future, chunk in futures.items():
                    if future.cancel():
                        self._release(chunk)
                give_up(self._lm, self._scorer)
                raise

    def _release_after(self, chunks: Sequence[Sequence[Job]]) -> None:
        pending = list(chunks)
        try:
            while pending:
                self._run_chunk(pending.pop(0))
        finally:
            for chunk in pending:
                self._release(chunk)

    def _release(self, chunk: Sequence[Job]) -> None:
        for job in chunk:
            self._budget.settle(job.reserved, Spend())

    def _run_chunk(self, chunk: Sequence[Job]) -> None:
        with self._places:
            if self._stopping:
                self._release(chunk)
                return
            try:
                intents = self._ledger.intend([i for job in chunk if (i := job.intent(self._in_process)) is not None])
            except BaseException:
                self._release(chunk)  # nothing leaves that is not on the record
                raise
            try:
                answers = self._answers(chunk)
            except BaseException:
                for job in chunk:  # nobody knows what became of them: the intents stand, and are charged
                    self._budget.settle(job.reserved, job.lost(self._in_process))
                raise
        try:
            entries = list(self._score(chunk, answers))
        except BaseException as error:
            # The answers were paid for: they are kept, and scored when the run continues.
            self._record(chunk, list(self._kept(chunk, answers, error)), intents)
            raise
        self._record(chunk, entries, intents)
        for job, answer in zip(chunk, answers, strict=True):
            if isinstance(answer, LMError) and not isinstance(answer, LMRefused):
                self._failures_in_a_row += 1
                if answer.systemic or not answer.retryable or self._hopeless(job, answer):
                    raise answer
            else:
                self._failures_in_a_row = 0

    def _hopeless(self, job: Job, error: LMError) -> bool:
        if error.unbilled and self._patience is not None:
            return True  # the model has tried again as often as it may
        failed = self._billed_failures.get(job.proposal, 0)
        return failed >= self._attempts or self._failures_in_a_row >= HOPELESS

    def _answers(self, chunk: Sequence[Job]) -> list[Completion | LMError]:
        """Asks the model, except for what it has answered already."""
        asked = [job for job in chunk if job.proposal not in self._unscored]
        fresh = iter(self._lm.complete([job.request for job in asked]) if asked else [])
        return [self._unscored.get(job.proposal) or next(fresh) for job in chunk]

    def _record(self, chunk: Sequence[Job], entries: Sequence[Entry], intents: Sequence[int]) -> None:
        self._ledger.append(entries, intents)
        for job, entry in zip(chunk, entries, strict=True):
            self._budget.settle(job.reserved, Spend(entry.usage.calls, entry.usage.tokens, entry.cost))
            self._remember(entry)
            if self._on_entry is not None:
                self._on_entry(entry)

    def _score(self, chunk: Sequence[Job], answers: Sequence[Completion | LMError]) -> Iterator[Entry]:
        answered = [(j, a) for j, a in zip(chunk, answers, strict=True) if isinstance(a, Completion)]
        scored = self._scorer.score([a.text for _, a in answered], [self._pairs[j.pair] for j, _ in answered])
        by_proposal = {j.proposal: s for (j, _), s in zip(answered, scored, strict=True)}
        for job, answer in zip(chunk, answers, strict=True):
            if isinstance(answer, Completion):
                yield job.success(answer, by_proposal[job.proposal])
            else:
                yield job.failure(answer)

    @staticmethod
    def _kept(chunk: Sequence[Job], answers: Sequence[Completion | LMError], error: BaseException) -> Iterator[Entry]:
        """Answers that could not be scored; what their judge used is in the error or, if it does not say, the most."""
        known = error.usage if isinstance(error, LMError) else None
        for job, answer in zip(chunk, answers, strict=True):
            if isinstance(answer, LMError):
                yield job.failure(answer)
                continue
            yield job.unscored(answer, error, job.judging if known is None else known)
            known = known and Usage()  # it is the sum over all of them, so the first one bears it

    def _remember(self, entry: Entry) -> None:
        proposal = Proposal(entry.candidate, entry.replication)
        self._tries[proposal] = max(self._tries.get(proposal, 0), entry.attempt + 1)
        if entry.status == "error" and entry.usage.calls:
            self._billed_failures[proposal] = self._billed_failures.get(proposal, 0) + 1
        if entry.status == "unscored":
            # Its calls and tokens are in the ledger already; asking nothing costs nothing.
            self._unscored[proposal] = Completion(entry.output or "", Usage(), entry.latency)
        if entry.final:
            assert entry.score is not None, "a settled evaluation has a score"
            self._settled[proposal] = entry.score
            if self._same_answer:
                self._known.setdefault(_question(entry.request), entry)


def _question(request: Mapping[str, Any]) -> str:
    """All of a request that decides its answer where chance does not."""
    return json.dumps({**request, "seed": 0}, sort_keys=True, default=list)
