"""What the first answers show, why all may score 0, and how runs go on that began before a score was proposed."""

from __future__ import annotations

from pathlib import Path

import pytest

import bestprompt as bp
from bestprompt.ledger import Entry
from bestprompt.run import Run, open_ledger, run_facts
from bestprompt.run.pilot import likely_cause, read_answers
from bestprompt.run.settings import load_settings
from bestprompt.types import Pair, Usage

PAIRS = [Pair("a", "red"), Pair("b", "blue"), Pair("c", "red"), Pair("d", "blue")]


def entries(outputs: list[str], extracted: str | None = None, tokens: int = 3, scores: list[float] | None = None):
    return [
        Entry(0, n, 0, n, {}, "ok", output, extracted, (scores or [0.0] * 4)[n], None, Usage(1, 5, tokens))
        for n, output in enumerate(outputs)
    ]


@pytest.mark.parametrize(
    ("scorer", "outputs", "tokens", "said"),
    [
        ("exact", ["It is red.", "It is blue.", "It is red.", "blue, I say"], 3, "--scorer auto, label or contains"),
        ("label", ["No.", "No.", "Well", "Hm"], 3, "--system 'Answer with one of: red, blue.'"),
        ("label", ["Well, let me think"] * 4, 32, "--max-tokens 128"),
        ("contains", ["", " ", "", ""], 0, "The answers are empty"),
        ("number", ["none"] * 4, 3, "hold no number"),
        ("contains", ["green"] * 4, 3, "can be read and are wrong"),
    ],
)
def test_the_likely_cause_and_what_mends_it(scorer: str, outputs: list[str], tokens: int, said: str) -> None:
    task = bp.Task.from_pairs(PAIRS, ["Colour?"], scorer=scorer)
    assert said in likely_cause(entries(outputs, tokens=tokens), PAIRS, task)


def test_a_right_and_a_wrong_answer_are_shown() -> None:
    seen = entries(["no", "no", "no", "It is blue"], "x", scores=[0.0, 0.0, 0.0, 1.0])
    shown = read_answers(seen, PAIRS, ["Colour?"])
    assert [(a.input, a.expected, a.score) for a in shown] == [
        ("d", "blue", 1.0),
        ("a", "red", 0.0),
        ("b", "blue", 0.0),
    ]


def test_a_run_that_began_before_scores_were_proposed_goes_on_as_it_was(tmp_path: Path) -> None:
    words = [(f"w{n}", "yes" if n % 2 else "no") for n in range(12)]
    task = bp.Task.from_pairs(words, ["Is it odd?", "Odd, {input}?"])
    assert task.proposed["scorer"]["kind"] == "label"
    asked: list[str] = []

    def answer(request: bp.types.Request) -> str:
        asked.append(request.messages[-1].content)
        return ("yes", "I say no")[len(asked) % 2]

    lm, settings = bp.lm.function(answer, name="m"), load_settings(None, {"budget.calls": 10, "selection.stop_gain": 0})
    then = task.as_proposed(None)
    facts = run_facts(then, lm, settings)
    former = {name: value for name, value in facts.items() if name not in ("proposed", "task_parts")}
    with open_ledger(tmp_path, former) as ledger:
        Run(then, lm, settings, ledger).execute()
    rec = bp.optimize(task, lm, budget=16, config=settings, ledger=tmp_path)
    assert rec.calls == 16
    scored = zip(*(bp.calls(tmp_path)[name] for name in ("answer", "score")), strict=True)
    assert all(score == 0.0 for said, score in scored if said == "I say no"), "by exact match, as before"
    assert any("Odd, {input}?\n\nw" in text for text in asked), "braces in prompts mean nothing, as before"
