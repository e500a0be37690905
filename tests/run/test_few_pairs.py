"""Whole runs on few pairs: questions are counted at the model, and pairs are held out only where that is asked for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import bestprompt as bp
from bestprompt.errors import ConfigError, TaskError
from bestprompt.ledger import Ledger
from bestprompt.report import write_report
from bestprompt.rng import stream
from bestprompt.run import standing
from bestprompt.run.settings import load_settings
from bestprompt.types import Request

QUALITY = {"Do it well.": 0.8, "Do it.": 0.5, "Perhaps do it?": 0.3}


class Model:
    """Right as often as the prompt deserves, always the same answer to the same question; counts what it is asked."""

    def __init__(self, varies: bool = False) -> None:
        self.asked: Counter[str] = Counter()
        self._varies = varies

    def __call__(self, request: Request) -> str:
        question = request.messages[-1].content
        self.asked[question] += 1
        prompt, word = question.split("\n\n")
        key = (request.seed,) if self._varies else ()
        return word if stream(0, "model", question, *key).random() < QUALITY[prompt] else "wrong"


def task(pairs: int = 20, **more) -> bp.Task:
    return bp.Task.from_pairs([(f"word{i}", f"word{i}") for i in range(pairs)], list(QUALITY), scorer="exact", **more)


GIVEN_ALONE = {"search.source": "examples", "ideas.mode": "off"}  # what is left to ask is settled by the prompts given


def run(model: Model, budget: int = 200, pairs: int = 20, deterministic: bool = False, **overrides):
    changes = {k.replace("__", "."): v for k, v in overrides.items() if k != "ledger"}
    config = load_settings(None, {**GIVEN_ALONE, **changes})
    lm = bp.lm.function(model, name="m", deterministic=deterministic)
    return bp.optimize(task(pairs), lm, budget=budget, config=config, ledger=overrides.get("ledger"))


def test_no_question_is_asked_twice_and_the_rest_of_the_budget_is_left() -> None:
    model = Model()
    found = run(model, selection__stop_gain=0)
    assert model.asked.total() == len(model.asked) == found.calls == 60
    assert found.stopped_because == "every prompt has met all 20 pairs: there is nothing left to ask"
    assert found.as_dict()["on_these_pairs"]["probability_best"] in (0.0, 1.0)
    settled = Model()
    assert run(settled).calls == settled.asked.total() <= 60


def test_a_model_that_varies_may_be_asked_again_one_that_says_it_does_not_is_not() -> None:
    varying = Model(varies=True)
    run(varying, model__temperature=0.7, selection__stop_gain=0)
    assert varying.asked.total() == 200
    assert max(varying.asked.values()) > 1
    fixed = Model()
    run(fixed, deterministic=True, model__temperature=0.7, selection__stop_gain=0)
    assert fixed.asked.total() == len(fixed.asked) == 60


def test_paper_mode_draws_pairs_with_replacement_but_pays_for_each_answer_once(tmp_path: Path) -> None:
    model = Model()
    found = run(model, 90, pairs=8, selection__mode="paper", selection__surrogate="blr", ledger=tmp_path)
    assert model.asked.total() == len(model.asked) == found.calls <= 24
    with Ledger.read(tmp_path) as ledger:
        entries = list(ledger.entries())
        assert len(entries) == 90 == found.choice.counts.sum()
        assert sum(e.usage.calls for e in entries) == found.calls
        by_question: dict[tuple[int, int], set[float | None]] = {}
        for e in entries:
            by_question.setdefault((e.candidate, e.pair), set()).add(e.score)
        assert all(len(scores) == 1 for scores in by_question.values())
        assert standing(ledger).as_dict() == found.as_dict()


def test_all_pairs_are_used_unless_some_are_to_be_held_out(tmp_path: Path) -> None:
    model = Model()
    run(model, selection__stop_gain=0)
    assert {question.split("\n\n")[1] for question in model.asked} == {f"word{i}" for i in range(20)}

    held = Model()
    found = run(held, holdout=0.25, selection__stop_gain=0, selection__incumbent="Do it.", ledger=tmp_path)
    look = found.last_look
    assert look is not None
    assert (look.pairs, look.rival) == (5, "Do it." if found.prompt != "Do it." else None)
    by_word = Counter(question.split("\n\n")[1] for question in held.asked)
    assert sorted(by_word.values()) == [2] * 5 + [3] * 15, "five pairs met the winner and the incumbent alone"
    assert held.asked.total() == len(held.asked) == found.calls == 55
    assert "pairs that were held out it scores" in found.verdict
    with Ledger.read(tmp_path) as ledger:
        assert standing(ledger).as_dict() == found.as_dict()
        page = write_report(tmp_path / "report.html", ledger, found).read_text(encoding="utf-8")
    assert "pairs that were held out it scores" in page
    settings = load_settings(None, {**GIVEN_ALONE, "selection.stop_gain": 0, "selection.incumbent": "Do it."})
    lm = bp.lm.function(held, name="m")
    again = bp.optimize(task(), lm, budget=200, ledger=tmp_path, holdout=0.25, config=settings)
    assert again.as_dict() == found.as_dict()
    assert held.asked.total() == 55


def test_the_last_look_is_within_the_budget() -> None:
    model = Model()
    assert run(model, 30, holdout=0.5).calls == model.asked.total() <= 30
    with pytest.raises(ConfigError, match="hold fewer pairs out"):
        run(Model(), 20, holdout=0.5)
    with pytest.raises(TaskError, match="none is left to choose on"):
        run(Model(), 20, holdout=0.99)


def test_given_splits_stay_as_given() -> None:
    everything = task().pairs
    splits = bp.tasks.Splits(everything[:10], everything[10:12], everything[12:])
    given = bp.Task.from_pairs(everything, list(QUALITY), scorer="exact", fixed_splits=splits)
    model = Model()
    everything_asked = load_settings(None, {**GIVEN_ALONE, "selection.stop_gain": 0})
    bp.optimize(given, bp.lm.function(model, name="m"), budget=100, config=everything_asked)
    assert {question.split("\n\n")[1] for question in model.asked} == {f"word{i}" for i in range(10)}
    model = Model()
    found = bp.optimize(given, bp.lm.function(model, name="m"), budget=100, holdout=0.1)
    assert found.last_look is not None
    assert found.last_look.pairs == 8


def test_a_reference_may_be_plain_text() -> None:
    assert bp.Pair("2 + 2", "four").references == ("four",)
    assert bp.Pair("2 + 2", ["4", "four"]).references == ("4", "four")
    assert bp.Pair("2 + 2", ("4",)).reference == "4"


def test_what_is_needed_is_said() -> None:
    found = run(Model(), selection__stop_gain=0)
    reach = found.as_dict()["reach"]
    assert reach["items"] == 20
    assert 0.05 < reach["difference"] < 0.35
    assert "20 pairs cannot show differences below" in found.outlook
