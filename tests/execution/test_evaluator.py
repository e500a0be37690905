"""Evaluations are paid for once, failures are recorded and retried, and nothing is lost when a run stops."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bestprompt import lm as models
from bestprompt.errors import BudgetExhausted, LedgerError, LMAuthError, LMError, LMRefused
from bestprompt.execution import UNLIMITED, Budget, Evaluator, Prices, Schedule, Spend
from bestprompt.execution.budget import Price
from bestprompt.ledger import Intent, Ledger
from bestprompt.scoring import build_scorer
from bestprompt.types import Message, Pair, Proposal, Request, SoftPromptSet, Usage

PAIRS = [Pair(f"word{i}", (f"word{i}",)) for i in range(10)]
PROMPTS = ("repeat", "shout")


def render(prompt: str, pair: Pair, seed: int) -> Request:
    return Request((Message("user", f"{prompt} {pair.input}"),), max_tokens=5, seed=seed)


def echo(request: Request) -> str:
    return request.messages[0].content.split()[-1]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.create(tmp_path, {})
    made.set_candidates(SoftPromptSet(PROMPTS, np.zeros((2, 1)), None, np.full(2, -1), ("example", "example")))
    return made


def evaluator(ledger: Ledger, f: Callable[[Request], str], limits: Spend = UNLIMITED, threads: int = 1) -> Evaluator:
    return Evaluator(
        prompts=PROMPTS, pairs=PAIRS, render=render, lm=models.function(f, concurrency=threads),
        scorer=build_scorer("exact"), ledger=ledger, budget=Budget(limits), schedule=Schedule(len(PAIRS), seed=0),
        prices=Prices(Price(1e6, 1e6)),
    )  # fmt: skip


def proposals(n: int) -> list[Proposal]:
    return [Proposal(i % 2, i // 2) for i in range(n)]


def test_scores_arrive_in_order_and_are_recorded(ledger: Ledger) -> None:
    observations = evaluator(ledger, echo).evaluate(proposals(6))
    assert [(o.candidate, o.replication, o.score) for o in observations] == [(i % 2, i // 2, 1.0) for i in range(6)]
    entries = list(ledger.entries())
    assert len(entries) == 6
    assert entries[0].output == PAIRS[entries[0].pair].input
    assert entries[0].cost == pytest.approx(3.0), "two prompt words and one answer word at a dollar each"


def test_nothing_is_paid_twice_and_replications_are_separate_calls(ledger: Ledger) -> None:
    calls: Counter[str] = Counter()

    def counting(request: Request) -> str:
        calls[request.messages[0].content] += 1
        return echo(request)

    evaluator(ledger, counting).evaluate(proposals(4))
    evaluator(ledger, counting).evaluate(proposals(6))  # as after a restart: the ledger is the memory
    assert sum(calls.values()) == 6
    # One pair only: five replications of one request are five answers, never one served five times.
    single = Evaluator(
        prompts=PROMPTS, pairs=PAIRS[:1], render=render, lm=models.function(counting), scorer=build_scorer("exact"),
        ledger=ledger, budget=Budget(UNLIMITED), schedule=Schedule(1, seed=0),
    )  # fmt: skip
    before = sum(calls.values())
    single.evaluate([Proposal(0, r) for r in range(20, 25)])
    assert sum(calls.values()) - before == 5


def test_a_failed_call_is_recorded_and_tried_again(ledger: Ledger) -> None:
    failures = iter([True, True, False])

    def flaky(request: Request) -> str:
        if next(failures):
            raise LMError("503 from the endpoint")
        return echo(request)

    assert evaluator(ledger, flaky).evaluate(proposals(1))[0].score == 1.0
    assert [(e.attempt, e.status) for e in ledger.entries()] == [(0, "error"), (1, "error"), (2, "ok")]


def test_a_call_that_keeps_failing_stops_the_run(ledger: Ledger) -> None:
    def broken(request: Request) -> str:
        raise LMError("503 from the endpoint")

    with pytest.raises(LMError, match="503"):
        evaluator(ledger, broken).evaluate(proposals(1))
    assert len(list(ledger.entries())) == 3


def test_a_systemic_failure_stops_at_once(ledger: Ledger) -> None:
    calls = []

    def denied(request: Request) -> str:
        calls.append(request)
        raise LMAuthError("the key was rejected")

    with pytest.raises(LMAuthError):
        evaluator(ledger, denied).evaluate(proposals(8))
    assert len(calls) == 1


def test_a_refusal_scores_zero_and_is_final(ledger: Ledger) -> None:
    def prudish(request: Request) -> str:
        raise LMRefused("content filter")

    assert evaluator(ledger, prudish).evaluate(proposals(1))[0].score == 0.0
    assert [e.status for e in ledger.entries()] == ["refused"]


def test_an_answer_that_could_not_be_scored_is_kept_and_not_paid_for_again(ledger: Ledger) -> None:
    calls: list[Request] = []

    def counting(request: Request) -> str:
        calls.append(request)
        return echo(request)

    def broken(output: str, pair: Pair) -> float:
        raise ValueError("no such column")

    work = evaluator(ledger, counting)
    healthy, work._scorer = work._scorer, build_scorer(broken)
    with pytest.raises(Exception, match="no such column"):
        work.evaluate(proposals(2))
    assert [e.status for e in ledger.entries()] == ["unscored"]
    assert len(calls) == 1
    again = evaluator(ledger, counting)
    assert [o.score for o in again.evaluate(proposals(2))] == [1.0, 1.0]
    assert again._scorer.fingerprint == healthy.fingerprint
    assert len(calls) == 2
    assert again.spent.calls == 2
    assert [(e.candidate, e.status) for e in ledger.entries()] == [(0, "unscored"), (0, "ok"), (1, "ok")]


def test_an_intent_is_on_the_record_before_the_request_leaves(ledger: Ledger) -> None:
    seen: list[int] = []

    def watching(request: Request) -> str:
        seen.append(len(ledger.open_intents()))
        return echo(request)

    evaluator(ledger, watching).evaluate(proposals(3))
    assert seen == [1, 1, 1]
    assert ledger.open_intents() == []


def test_what_was_under_way_when_the_process_died_is_charged_at_its_worst_case(ledger: Ledger) -> None:
    ledger.intend([Intent("evaluation", {}, 1, 7, 7.0)] * 2)
    work = evaluator(ledger, echo, Spend(calls=5, tokens=math.inf, dollars=math.inf))
    assert work.spent == Spend(2, 14, 14.0)
    with pytest.raises(BudgetExhausted):
        work.evaluate(proposals(8))
    assert len(list(ledger.entries())) == 3


def test_a_failure_of_unknown_cost_is_charged_in_full_and_a_rejection_is_free(ledger: Ledger) -> None:
    failures = iter([LMError("lost"), LMError("503", usage=Usage()), LMError("503", usage=Usage()), None])

    def flaky(request: Request) -> str:
        if (failure := next(failures)) is not None:
            raise failure
        return echo(request)

    assert evaluator(ledger, flaky).evaluate(proposals(1))[0].score == 1.0
    assert [e.usage for e in ledger.entries()] == [Usage(1, 2, 5), Usage(), Usage(), Usage(1, 2, 1)]
    assert next(ledger.entries()).cost == pytest.approx(7.0)


def test_no_request_leaves_that_cannot_be_recorded(ledger: Ledger) -> None:
    asked: list[Request] = []

    def counting(request: Request) -> str:
        asked.append(request)
        return "long " * 5

    (pages,) = ledger._db.execute("PRAGMA page_count").fetchone()
    ledger._db.execute(f"PRAGMA max_page_count = {pages}")  # what a full disk looks like to SQLite
    with pytest.raises(LedgerError, match="Make room"):
        evaluator(ledger, counting).evaluate([Proposal(0, r) for r in range(2000)])
    # The one whose answer did not fit any more is charged when the run goes on.
    assert len(asked) == len(list(ledger.entries())) + len(ledger.open_intents())
    assert evaluator(ledger, counting).spent.calls == len(asked)


@pytest.mark.parametrize("threads", [1, 32])
def test_the_budget_holds_and_what_fits_is_evaluated(ledger: Ledger, threads: int) -> None:
    budget = Spend(calls=7, tokens=math.inf, dollars=math.inf)
    work = evaluator(ledger, echo, budget, threads)
    with pytest.raises(BudgetExhausted):
        work.evaluate(proposals(16))
    assert len(list(ledger.entries())) == 7
    with pytest.raises(BudgetExhausted):  # also after a restart
        evaluator(ledger, echo, budget, threads).evaluate(proposals(16))
    assert len(list(ledger.entries())) == 7


@pytest.mark.parametrize("threads", [1, 8])
def test_what_the_last_batch_lacks_has_failed_and_found_no_budget_left(ledger: Ledger, threads: int) -> None:
    """Nothing else is missing, also after a restart: the batch is as it was asked for, without what failed."""
    failing = {2, 5}

    def breaks(request: Request) -> str:
        if (number := asked.index(request.messages[0].content)) in failing:
            raise LMError(f"{number} was cut off", usage=Usage(1, 2, 5))
        return echo(request)

    batch = proposals(8)
    schedule = Schedule(len(PAIRS), seed=0)
    asked = [f"{PROMPTS[p.candidate]} {PAIRS[schedule.pair(p)].input}" for p in batch]
    budget = Spend(calls=8, tokens=math.inf, dollars=math.inf)
    for _ in range(2):
        work = evaluator(ledger, breaks, budget, threads)
        with pytest.raises(BudgetExhausted):
            work.evaluate(batch)
        told = [(o.candidate, o.replication) for o in work.recorded(batch)]
        assert told == [(p.candidate, p.replication) for n, p in enumerate(batch) if n not in failing]
    assert work.spent.calls == 8


def test_threads_change_nothing_but_the_time(tmp_path: Path, ledger: Ledger) -> None:
    def slow(request: Request) -> str:
        time.sleep((request.seed % 7) / 500)
        return echo(request) if request.seed % 3 else "wrong"

    parallel = evaluator(ledger, slow, threads=16).evaluate(proposals(18))
    other = Ledger.create(tmp_path / "other", {})
    other.set_candidates(ledger.candidates())  # type: ignore[arg-type]
    assert evaluator(other, slow).evaluate(proposals(18)) == parallel
    assert {o.score for o in parallel} == {0.0, 1.0}


def test_an_interrupt_records_what_is_under_way_and_gives_the_rest_back(ledger: Ledger) -> None:
    started = threading.Event()

    def interrupted(request: Request) -> str:
        if not started.is_set():
            started.set()
            raise KeyboardInterrupt
        time.sleep(0.05)
        return echo(request)

    budget = Budget(Spend(calls=100, tokens=math.inf, dollars=math.inf))
    work = evaluator(ledger, interrupted, threads=2)
    work._budget = budget
    with pytest.raises(KeyboardInterrupt):
        work.evaluate(proposals(18))
    recorded = len(list(ledger.entries()))
    assert recorded < 18
    (lost,) = ledger.open_intents()  # what became of the one that was interrupted nobody knows, so it is charged
    assert lost.calls == 1
    budget.reserve(Spend(calls=99 - recorded))  # fits exactly: nothing stays reserved for calls that were not made
    with pytest.raises(BudgetExhausted):
        budget.reserve(Spend(calls=1))


def test_common_pairs_are_shared_and_cover_all_before_repeating() -> None:
    schedule = Schedule(10, seed=3, pairs="common")
    first = [schedule.pair(Proposal(0, r)) for r in range(20)]
    assert first == [schedule.pair(Proposal(1, r)) for r in range(20)]
    assert sorted(first[:10]) == sorted(first[10:]) == list(range(10))
    assert schedule.sampling_seed(Proposal(0, 4)) == schedule.sampling_seed(Proposal(1, 4))
    assert schedule.sampling_seed(Proposal(0, 4)) != schedule.sampling_seed(Proposal(0, 5))


def test_independent_pairs_are_uniform() -> None:
    schedule = Schedule(10, seed=3, pairs="independent")
    drawn = Counter(schedule.pair(Proposal(c, r)) for c in range(20) for r in range(100))
    assert all(130 < count < 280 for count in drawn.values()), "about 200 each"
    assert schedule.sampling_seed(Proposal(0, 4)) != schedule.sampling_seed(Proposal(1, 4))
