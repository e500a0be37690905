"""Whole runs on a Python function as the model: the winner, the budget, continuing, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
from bestprompt.errors import BudgetExhausted, ConfigError, LedgerError, LMError, NothingScored
from bestprompt.ledger import Entry, Ledger
from bestprompt.rng import stream
from bestprompt.run import Run, open_ledger, run_facts, standing
from bestprompt.run.settings import Settings, load_settings
from bestprompt.types import Request

QUALITY = {"Do it well.": 0.9, "Do it.": 0.5, "Perhaps do it?": 0.4, "Something else.": 0.1, "Do the thing now.": 0.55}


SPEND_ALL = Settings.model_validate({"selection": {"stop_gain": 0}, "ideas": {"mode": "off"}})


def model(request: Request) -> str:
    """Answers right as often as the prompt deserves; the same request gets the same answer."""
    prompt, word = request.messages[-1].content.split("\n\n")
    return word if stream(request.seed, "model", prompt, word).random() < QUALITY[prompt] else "wrong"


def task() -> bp.Task:
    return bp.Task.from_pairs([(f"word{i}", f"word{i}") for i in range(60)], list(QUALITY), scorer="exact")


class Listener:
    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.entries: list[Entry] = []
        self.stages: list[str] = []

    def stage(self, name: str, total: int | None) -> None:
        self.stages.append(name)

    def advance(self, done: int) -> None: ...

    def evaluated(self, entry: Entry) -> None:
        self.entries.append(entry)

    def warn(self, message: str) -> None:
        self.warnings.append(message)


def test_the_best_prompt_wins_within_the_budget(tmp_path: Path) -> None:
    listener = Listener()
    rec = bp.optimize(
        task(), bp.lm.function(model), budget=120, seed=1, ledger=tmp_path / "run", observer=listener, config=SPEND_ALL
    )
    assert rec.prompt == "Do it well."
    assert rec.calls == len(listener.entries) == 120
    # The interval misses one time in twenty; four standard errors of a mean of so many right and wrong answers do not.
    assert rec.score == pytest.approx(0.9, abs=4 * math.sqrt(0.9 * 0.1 / rec.choice.counts.max()))
    assert rec.interval[0] < rec.score < rec.interval[1]
    assert rec.probability_best > 0.9
    assert "This prompt scores" in rec.verdict
    assert listener.warnings == []
    assert (tmp_path / "run" / "ledger.db").exists()


def test_same_seed_same_run_and_another_seed_another(tmp_path: Path) -> None:
    def trace(seed: int, name: str) -> list[tuple[int, int, int]]:
        bp.optimize(task(), bp.lm.function(model), budget=40, seed=seed, ledger=tmp_path / name)
        with Ledger.read(tmp_path / name) as ledger:
            return [(e.candidate, e.replication, e.pair) for e in ledger.entries()]

    assert trace(1, "a") == trace(1, "b")
    assert trace(1, "a2") != trace(2, "c")


def test_concurrency_does_not_change_the_run(timeless: Any) -> None:
    one = bp.optimize(task(), bp.lm.function(model), budget=60)
    many = bp.optimize(task(), bp.lm.function(model, concurrency=16), budget=60)
    assert timeless(one.as_dict()) == timeless(many.as_dict())


def test_a_run_that_breaks_off_continues_and_ends_the_same(tmp_path: Path) -> None:
    whole = bp.optimize(task(), bp.lm.function(model, name="m"), budget=80, ledger=tmp_path / "whole", config=SPEND_ALL)
    calls = {"left": 33, "made": 0}

    def breaking(request: Request) -> str:
        if calls["left"] == 0:
            raise LMError("the endpoint went away", systemic=True)
        calls["left"] -= 1
        calls["made"] += 1
        return model(request)

    lm = bp.lm.function(breaking, name="m")
    with pytest.raises(LMError, match="went away"):
        bp.optimize(task(), lm, budget=80, ledger=tmp_path / "broken", config=SPEND_ALL)
    with Ledger.read(tmp_path / "broken") as ledger:
        partial = standing(ledger)
    assert partial.stopped_because == "not finished yet"
    calls["left"] = 1000
    continued = bp.optimize(task(), lm, budget=80, ledger=tmp_path / "broken", config=SPEND_ALL)
    # The failed attempt counts as a call, so one evaluation less fits.
    assert calls["made"] == 79
    assert continued.prompt == whole.prompt
    assert continued.calls == 80


def test_a_finished_run_is_answered_from_its_record(tmp_path: Path) -> None:
    first = bp.optimize(task(), bp.lm.function(model, name="m"), budget=50, ledger=tmp_path, config=SPEND_ALL)
    again = bp.optimize(task(), bp.lm.function(model, name="m"), budget=50, ledger=tmp_path, config=SPEND_ALL)
    with Ledger.read(tmp_path) as ledger:
        assert standing(ledger).as_dict() == first.as_dict() == again.as_dict()
        assert len(list(ledger.entries())) == 50


def test_a_run_is_continued_only_with_what_it_was_started_with(tmp_path: Path) -> None:
    bp.optimize(task(), bp.lm.function(model), budget=30, ledger=tmp_path)
    with pytest.raises(LedgerError, match=r"the setting seed \(0 then, 9 now\) changed since the run"):
        bp.optimize(task(), bp.lm.function(model), budget=30, seed=9, ledger=tmp_path)
    other = bp.Task.from_pairs([(f"w{i}", "w") for i in range(60)], list(QUALITY), scorer="exact")
    with pytest.raises(LedgerError, match=r"^your data file changed since the run"):
        bp.optimize(other, bp.lm.function(model), budget=30, ledger=tmp_path)
    scored = bp.Task.from_pairs(task().pairs, task().examples, scorer="contains")
    with pytest.raises(LedgerError, match=r"^the score changed since the run"):
        bp.optimize(scored, bp.lm.function(model), budget=30, ledger=tmp_path)


def test_token_and_dollar_budgets_are_never_exceeded(tmp_path: Path) -> None:
    prices = {"m": {"input": 1e6, "output": 1e6}}  # a dollar a token
    settings = load_settings(None, {"budget.dollars": 300.0, "prices": prices, "selection.stop_gain": 0})
    settings = settings.model_copy(update={"budget": settings.budget.model_copy(update={"calls": None})})
    rec = bp.optimize(task(), bp.lm.function(model, name="m"), config=settings)
    assert rec.dollars == rec.tokens <= 300
    # An evaluation needs about five tokens, far below the worst case of max_tokens: the plan must notice.
    assert rec.calls > 40
    assert "budget" in rec.stopped_because


def test_a_budget_for_less_than_one_evaluation_is_refused() -> None:
    settings = load_settings(None, {"budget.tokens": 3})
    with pytest.raises(ConfigError, match="does not allow one evaluation"):
        bp.optimize(task(), bp.lm.function(model), config=settings)


def test_an_endpoint_that_never_answers_ends_the_run_before_the_budget() -> None:
    calls: list[Request] = []

    def dead(request: Request) -> str:
        calls.append(request)
        raise LMError("connection refused")

    with pytest.raises(LMError, match="connection refused"):
        bp.optimize(task(), bp.lm.function(dead, concurrency=8), budget=190)
    assert len(calls) <= 24
    with pytest.raises(BudgetExhausted, match="not one evaluation"):
        bp.optimize(task(), bp.lm.function(dead), budget=2)


def test_a_tiny_budget_still_gets_an_honest_answer() -> None:
    rec = bp.optimize(task(), bp.lm.function(model), budget=3)
    assert rec.calls == 3
    assert rec.probability_best < 0.9
    assert math.isfinite(rec.score)


def test_a_task_on_the_floor_is_said_before_the_budget_is_spent(tmp_path: Path) -> None:
    listener = Listener()
    seen: list[int] = []
    warn = listener.warn
    listener.warn = lambda message: (seen.append(len(listener.entries)), warn(message))[0]  # type: ignore[method-assign]
    lm = bp.lm.function(lambda request: "never right", name="m")
    with pytest.raises(NothingScored, match=r"All 24 answers so far scored 0.*can be read and are wrong"):
        bp.optimize(task(), lm, budget=30, observer=listener, ledger=tmp_path / "stopped")
    assert any("on the floor" in message for message in listener.warnings)
    assert seen[0] <= 24
    # Whoever calls again wants to go on, and so does whoever says so at once.
    assert bp.optimize(task(), lm, budget=30, ledger=tmp_path / "stopped").calls == 30
    assert bp.optimize(task(), lm, budget=30, config=Settings(all_zero="continue"), observer=listener).calls == 30
    assert "can be read and are wrong" in listener.warnings[-1]


def test_candidates_may_be_given_besides_the_examples() -> None:
    few = bp.Task.from_pairs([(f"word{i}", f"word{i}") for i in range(60)], ["Do it."], scorer="exact")
    rec = bp.optimize(few, bp.lm.function(model), budget=100, candidates=["Do it well.", "Something else."])
    assert rec.prompt == "Do it well."
    assert len(rec.candidates.prompts) == 3


def test_a_run_from_before_repeated_questions_were_known_goes_on_as_it_was_recorded(tmp_path: Path) -> None:
    """It asks its 36 pairs again, each time in another order, and takes every answer for news."""
    lm, settings = bp.lm.function(model, name="m"), Settings.model_validate({"budget": {"calls": 250}})
    facts = run_facts(task(), lm, settings)
    facts["items"] = 36
    del facts["repeats"]
    with open_ledger(tmp_path, facts) as ledger:
        rec = Run(task(), lm, settings, ledger).execute()
        entries = list(ledger.entries())
    assert rec.calls == len(entries) == 250
    assert len({(e.candidate, e.pair) for e in entries}) < 250
    assert rec.choice.on_these_items is None
    with Ledger.read(tmp_path) as ledger:
        assert standing(ledger).as_dict() == rec.as_dict()


def test_a_task_without_prompts_is_refused() -> None:
    empty = bp.Task.from_pairs([(f"w{i}", "w") for i in range(9)], [], scorer="exact")
    with pytest.raises(ConfigError, match="no prompts to choose from"):
        bp.optimize(empty, bp.lm.function(model), budget=10)


def test_the_incumbent_is_kept_when_nothing_beats_it() -> None:
    settings = load_settings(None, {"selection.incumbent": "Do it well.", "budget.calls": 100})
    rec = bp.optimize(task(), bp.lm.function(model), config=settings)
    assert rec.prompt == "Do it well."
    assert "keep your current prompt" in rec.verdict


def test_a_judge_counts_in_the_budget_and_in_the_price(tmp_path: Path) -> None:
    def grade(request: Request) -> str:
        text = request.messages[-1].content
        answer = text.split("Answer to grade:\n")[1].split("\n")[0]
        return "Grade: 10" if answer in text.split("Right answer:\n")[1].split("\n")[0] else "Grade: 0"

    judged = bp.Task.from_pairs(
        [(f"word{i}", f"word{i}") for i in range(60)], list(QUALITY), scorer="judge", lm=bp.lm.function(grade, name="j")
    )
    rec = bp.optimize(judged, bp.lm.function(model, name="m"), budget=100, ledger=tmp_path, config=SPEND_ALL)
    assert rec.calls <= 100
    with Ledger.read(tmp_path) as ledger:
        entries = list(ledger.entries())
    assert rec.calls == sum(e.usage.calls for e in entries) == 2 * len(entries)
    assert {e.score for e in entries} == {0.0, 1.0}


def test_a_larger_budget_extends_a_finished_run(tmp_path: Path) -> None:
    first = bp.optimize(task(), bp.lm.function(model, name="m"), budget=40, ledger=tmp_path, config=SPEND_ALL)
    with Ledger.read(tmp_path) as ledger:
        before = list(ledger.entries())
    more = bp.optimize(task(), bp.lm.function(model, name="m"), budget=100, ledger=tmp_path, config=SPEND_ALL)
    assert (first.calls, more.calls) == (40, 100)
    with Ledger.read(tmp_path) as ledger:
        assert list(ledger.entries())[:40] == before
        assert standing(ledger).as_dict() == more.as_dict()
        assert "100" in more.stopped_because
    again = bp.optimize(task(), bp.lm.function(model, name="m"), budget=100, ledger=tmp_path, config=SPEND_ALL)
    assert again.as_dict() == more.as_dict()


def test_a_run_extended_twice_and_broken_off_in_each_part_ends_the_same(tmp_path: Path, timeless: Any) -> None:
    calls = {"left": 0}

    def breaking(request: Request) -> str:
        if calls["left"] == 0:
            raise KeyboardInterrupt
        calls["left"] -= 1
        return model(request)

    def carry_out(name: str, *parts: tuple[int, int]) -> tuple[dict[str, object], list[tuple[int, int, int]]]:
        for budget, before_the_break in parts:
            calls["left"] = before_the_break
            try:
                lm = bp.lm.function(breaking, name="m")
                lm.in_process = True  # else the call that is broken off may have been billed, and is charged
                result = bp.optimize(task(), lm, budget=budget, ledger=tmp_path / name, config=SPEND_ALL).as_dict()
            except KeyboardInterrupt:
                with Ledger.read(tmp_path / name) as ledger:
                    assert standing(ledger).stopped_because == "not finished yet"
        with Ledger.read(tmp_path / name) as ledger:
            return timeless(result), sorted((e.candidate, e.replication, e.pair) for e in ledger.entries())

    whole = carry_out("whole", (40, 999), (80, 999), (120, 999))
    # The second break comes before the first budget is used up: its plan is carried out before the next one's.
    cut = carry_out("cut", (40, 25), (80, 11), (80, 23), (80, 999), (120, 7), (120, 999))
    assert cut == whole
    assert whole[0]["calls"] == 120


def test_a_budget_is_raised_never_lowered(tmp_path: Path) -> None:
    bp.optimize(task(), bp.lm.function(model, name="m"), budget=40, ledger=tmp_path, config=SPEND_ALL)
    with pytest.raises(LedgerError, match="has used 40 calls; a budget of 30 is less"):
        bp.optimize(task(), bp.lm.function(model, name="m"), budget=30, ledger=tmp_path, config=SPEND_ALL)
    bp.optimize(task(), bp.lm.function(model, name="m"), budget=60, ledger=tmp_path, config=SPEND_ALL)
    with pytest.raises(LedgerError, match="has used 60 calls"):
        bp.optimize(task(), bp.lm.function(model, name="m"), budget=40, ledger=tmp_path, config=SPEND_ALL)


@pytest.mark.parametrize(
    ("selection", "reason"),
    [
        ({"surrogate": "gp", "acquisition": "ei", "stop_loss": 0.05}, "the expected loss 0.0"),
        ({"stop_loss": 0.02}, "the expected loss 0.0"),
        ({"gain_per_call": 0.0005}, "a further call is expected to gain less"),
        ({"policy": "random"}, "the budget of 90 evaluations is spent"),
        pytest.param(
            {"mode": "paper", "surrogate": "blr", "acquisition": "thompson", "maximizer": "reinforce"},
            "the budget of 90",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_run_follows_its_selection_settings(tmp_path: Path, selection: dict[str, object], reason: str) -> None:
    """One prompt is always right and the others never, so that no draw decides which is chosen."""

    def certain(request: Request) -> str:
        prompt, word = request.messages[-1].content.split("\n\n")
        return word if prompt == "Do it well." else "wrong"

    settings = Settings.model_validate({"selection": {"stop_gain": 0, **selection}, "budget": {"calls": 90}})
    rec = bp.optimize(task(), bp.lm.function(certain, name="m"), config=settings, ledger=tmp_path)
    assert rec.stopped_because.startswith(reason)
    assert rec.prompt == "Do it well."
    with Ledger.open(tmp_path) as ledger:
        assert standing(ledger).as_dict() == rec.as_dict()


def test_a_run_from_before_items_were_rotated_is_read_and_continued_in_its_order(tmp_path: Path) -> None:
    lm = bp.lm.function(model, name="m")
    settings = Settings.model_validate({"budget": {"calls": 60}})
    facts = run_facts(task(), lm, settings)
    del facts["items"], facts["repeats"], facts["next_item"]
    with open_ledger(tmp_path, facts) as ledger:
        old = Run(task(), lm, settings, ledger).execute()
    with Ledger.open(tmp_path) as ledger:
        assert standing(ledger).as_dict() == old.as_dict()
        met = {n: sorted(e.replication for e in ledger.entries() if e.candidate == n) for n in range(5)}
        assert all(replications == list(range(len(replications))) for replications in met.values())
        assert {e.pair for e in ledger.entries()} <= set(range(36)), "two fifths of the pairs were kept aside"
    more = bp.optimize(task(), lm, budget=80, ledger=tmp_path)
    assert more.calls == 80
    bp.optimize(task(), lm, budget=60, ledger=tmp_path / "new")
    with Ledger.open(tmp_path / "new") as ledger:
        first = {n: next(e.replication for e in ledger.entries() if e.candidate == n) for n in range(5)}
    assert first == {n: n for n in range(5)}
