"""Evaluations come back one by one: no straggler holds up the others, and what holds for batches holds here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from bestprompt import lm as models
from bestprompt.errors import BudgetExhausted, LMAuthError, LMError
from bestprompt.execution import UNLIMITED, AsynchronousEvaluator, Budget, Prices, Schedule, Spend, recorded_rounds
from bestprompt.execution.budget import Price
from bestprompt.ledger import Ledger
from bestprompt.scoring import build_scorer
from bestprompt.types import Message, Pair, Proposal, Request, SoftPromptSet

PAIRS = [Pair(f"word{i}", (f"word{i}",)) for i in range(40)]
PROMPTS = ("repeat", "shout")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.create(tmp_path, {}) as made:
        made.set_candidates(SoftPromptSet(PROMPTS, np.zeros((2, 1)), None, np.full(2, -1), ("example", "example")))
        yield made


@pytest.fixture
def build(ledger: Ledger) -> Iterator[Callable[..., AsynchronousEvaluator]]:
    made: list[AsynchronousEvaluator] = []

    def evaluator(
        f: Callable[[Request], str], limits: Spend = UNLIMITED, threads: int = 4, same_answer: bool = False
    ) -> AsynchronousEvaluator:
        made.append(
            AsynchronousEvaluator(
                prompts=PROMPTS,
                pairs=PAIRS,
                render=render,
                lm=models.function(f, concurrency=threads),
                scorer=build_scorer("exact"),
                ledger=ledger,
                budget=Budget(limits),
                schedule=Schedule(len(PAIRS), 0),
                prices=Prices(Price(1e6, 1e6)),
                same_answer=same_answer,
            )
        )
        return made[-1]

    yield evaluator
    for each in made:
        each.close()


def render(prompt: str, pair: Pair, seed: int) -> Request:
    return Request((Message("user", f"{prompt} {pair.input}"),), max_tokens=5, seed=seed)


def echo(request: Request) -> str:
    return request.messages[0].content.split()[-1]


def proposals(n: int) -> list[Proposal]:
    return [Proposal(i % 2, i // 2) for i in range(n)]


def all_of(work: AsynchronousEvaluator, pending: list[Proposal]) -> list[list[Proposal]]:
    """The rounds in which ``pending`` came back."""
    rounds = []
    while pending:
        rounds.append([Proposal(o.candidate, o.replication) for o in work.arrivals(pending)])
        pending = [p for p in pending if p not in rounds[-1]]
    return rounds


def test_a_straggler_holds_up_no_other_place(build: Callable[..., AsynchronousEvaluator]) -> None:
    others, first = threading.Semaphore(0), threading.Lock()

    def slow_once(request: Request) -> str:
        if first.acquire(blocking=False):
            for _ in range(30):  # as long as it takes to answer thirty others
                assert others.acquire(timeout=60)
        else:
            others.release()
        return echo(request)

    rounds = all_of(build(slow_once), proposals(31))
    assert sum(map(len, rounds)) == 31
    assert len(rounds) >= 2, "in lock-step all of them would have waited for the slow one"


def test_rounds_are_recorded_as_they_are_told(build: Callable[..., AsynchronousEvaluator], ledger: Ledger) -> None:
    assert all_of(build(echo), proposals(20)) == recorded_rounds(ledger)


def test_no_more_calls_than_the_model_can_take(build: Callable[..., AsynchronousEvaluator]) -> None:
    under_way, most = [0], [0]
    lock = threading.Lock()

    def counting(request: Request) -> str:
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        threading.Event().wait(0.002)
        with lock:
            under_way[0] -= 1
        return echo(request)

    all_of(build(counting, threads=3), proposals(40))
    assert most[0] <= 3


def test_a_failed_call_is_asked_again_and_stays_pending(build: Callable[..., AsynchronousEvaluator]) -> None:
    failing = {"repeat word0", "shout word3"}

    def flaky(request: Request) -> str:
        if (text := request.messages[0].content) in failing:
            failing.remove(text)
            raise LMError("503 from the endpoint")
        return echo(request)

    work = build(flaky)
    assert sorted(p for round_ in all_of(work, proposals(80)) for p in map(_key, round_)) == sorted(
        map(_key, proposals(80))
    )
    assert work.spent.calls == 82


def test_a_systemic_failure_stops_and_keeps_what_was_answered(
    build: Callable[..., AsynchronousEvaluator], ledger: Ledger
) -> None:
    denied, answered = threading.Event(), threading.Event()

    def model(request: Request) -> str:
        if not answered.is_set():
            answered.set()
            assert denied.wait(60)
            return echo(request)
        denied.set()
        raise LMAuthError("the key was rejected")

    work = build(model, threads=2)
    with pytest.raises(LMAuthError):
        all_of(work, proposals(10))
    work.close()
    assert [e.status for e in ledger.entries()].count("ok") == 1
    assert work._budget._reserved == Spend(), "what was not sent gave its reservation back"


@pytest.mark.parametrize("calls", [1, 7, 20])
def test_the_budget_refuses_before_it_spends(build: Callable[..., AsynchronousEvaluator], calls: int) -> None:
    asked: list[Request] = []

    def counting(request: Request) -> str:
        asked.append(request)
        return echo(request)

    work = build(counting, Spend(calls, 1e9, 1e9))
    with pytest.raises(BudgetExhausted):
        all_of(work, proposals(30))
    assert len(asked) == calls == work.spent.calls


def test_what_fits_after_others_have_settled_is_sent(build: Callable[..., AsynchronousEvaluator]) -> None:
    # 2 + 5 tokens are reserved and 3 used by each: of 17 tokens the first two reserve 14, and five are had in the end.
    work = build(echo, Spend(100, 19, 1e9))
    with pytest.raises(BudgetExhausted):
        all_of(work, proposals(30))
    assert work.spent.tokens == 15


def test_the_same_question_is_asked_once(build: Callable[..., AsynchronousEvaluator]) -> None:
    asked: list[str] = []

    def counting(request: Request) -> str:
        asked.append(request.messages[0].content)
        return echo(request)

    # Forty pairs: replications 0 and 40 ask the same.
    twice = [Proposal(0, 0), Proposal(0, 40), Proposal(0, 1), Proposal(0, 41)]
    rounds = all_of(build(counting, same_answer=True), twice)
    assert sum(map(len, rounds)) == 4
    assert len(asked) == len(set(asked)) == 2


def test_what_is_recorded_is_not_asked_again(build: Callable[..., AsynchronousEvaluator]) -> None:
    all_of(build(echo), proposals(10))

    def new_only(request: Request) -> str:
        assert request.messages[0].content.split()[-1] not in old, "asked again"
        return echo(request)

    work = build(new_only)
    old = {PAIRS[work._schedule.pair(p)].input for p in proposals(10)}
    assert [len(r) for r in [work.arrivals(proposals(20))]] >= [10]


def _key(p: Proposal) -> tuple[int, int]:
    return p.candidate, p.replication
