"""Why scores differ, read off the record of whole runs on a Python function as the model."""

from __future__ import annotations

from pathlib import Path

import pytest
from markupsafe import escape

import bestprompt as bp
from bestprompt.cli.console import output
from bestprompt.cli.showing import show_result
from bestprompt.ledger import Entry, Ledger
from bestprompt.report import write_report
from bestprompt.report.assurance import causes
from bestprompt.rng import stream
from bestprompt.run import standing
from bestprompt.run.settings import load_settings
from bestprompt.run.variation import LEAST, in_words, variation
from bestprompt.types import Request

PROMPTS = ["Do it well.", "Do it.", "Perhaps do it?", "Something else."]
WARM = {"model.temperature": 0.7}


def spelled(request: Request) -> tuple[str, str]:
    prompt, word = request.messages[-1].content.split("\n\n")
    return prompt, word


def by_item(request: Request) -> str:
    """Half of the items are easy, half are hopeless, whatever the prompt."""
    _, word = spelled(request)
    return word if int(word[4:]) % 2 else "wrong"


def by_prompt(request: Request) -> str:
    """Half of the prompts work, half do not, whatever the item."""
    prompt, word = spelled(request)
    return word if prompt.startswith("Do") else "wrong"


def by_chance(request: Request) -> str:
    """A coin, thrown anew for each sampling seed."""
    prompt, word = spelled(request)
    return word if stream(request.seed, "coin", prompt, word).random() < 0.5 else "wrong"


def by_both(request: Request) -> str:
    """Each prompt suits its own half of the items."""
    prompt, word = spelled(request)
    return word if stream(0, "suits", prompt, word).random() < 0.5 else "wrong"


def run(answer, budget=160, folder=None, **overrides) -> bp.Recommendation:
    task = bp.Task.from_pairs([(f"word{i}", f"word{i}") for i in range(60)], PROMPTS, scorer="exact")
    config = load_settings(None, {"ideas.mode": "off", **{k.replace("__", "."): v for k, v in overrides.items()}})
    return bp.optimize(task, bp.lm.function(answer, name="m"), budget=budget, config=config, ledger=folder)


@pytest.mark.parametrize(("answer", "source"), [(by_item, "item"), (by_prompt, "prompt"), (by_both, "interaction")])
def test_the_source_of_the_scatter_is_found(answer, source) -> None:
    found = run(answer).variation
    assert found is not None
    assert set(found) == {"prompt", "item", "interaction"}  # computed scores of answers at temperature 0
    assert found[source] > 0.5, "more than all else together"
    assert sum(found.values()) == pytest.approx(1.0)


def test_repeated_items_show_the_models_own_randomness() -> None:
    found = run(by_chance, **WARM, selection__repeat_items=0.5).variation
    assert found is not None
    assert found["model"] > 0.7
    once = run(by_chance, budget=60, **WARM).variation  # as many calls as items: none is asked twice of a prompt
    assert once is not None
    assert set(once) == {"prompt", "item", "interaction + model"}
    # 60 scores tell the parts apart to some .08 (four runs: .85 to 1); more than all the rest is five of these down.
    assert once["interaction + model"] > 0.5


def test_a_model_that_varies_at_temperature_0_is_seen_to() -> None:
    """Two answers to one question, as a record may hold them, are chance."""
    entries = [
        Entry(
            candidate=n, replication=r, attempt=0, pair=r % 20, request={"temperature": 0.0}, status="ok",
            output=str(r), score=float(stream(0, "coin", n, r).random() < 0.5),
        )
        for n in range(4) for r in range(40)
    ]  # fmt: skip
    found = variation(entries)
    assert found is not None
    assert found["model"] > 0.7


def test_a_judges_part_is_named() -> None:
    def grader(request: Request) -> str:
        return "Grade: 10" if "Answer to grade:\nword" in request.messages[-1].content else "Grade: 0"

    task = bp.Task.from_pairs(
        [(f"word{i}", f"word{i}") for i in range(60)], PROMPTS, scorer=bp.scoring.Judge(bp.lm.function(grader))
    )
    found = bp.optimize(task, bp.lm.function(by_item), budget=190).variation
    assert found is not None
    assert set(found) == {"prompt", "item", "interaction + judge"}
    assert found["item"] > 0.8


def test_little_or_no_scatter_is_not_explained() -> None:
    assert run(by_item, budget=LEAST - 1).variation is None
    assert run(lambda request: "wrong", all_zero="continue").variation is None


def test_it_is_said_wherever_the_verdict_is(tmp_path: Path) -> None:
    rec = run(by_item, folder=tmp_path)
    assert rec.variation is not None
    sentence = in_words(rec.variation)
    assert sentence.startswith("Why single scores differ: ")
    assert rec.as_dict()["variation"] == rec.variation
    with Ledger.read(tmp_path) as ledger:
        assert standing(ledger).as_dict() == rec.as_dict()
        page = write_report(tmp_path / "report.html", ledger, rec).read_text(encoding="utf-8")
        assert all(escape(cause) in page for cause, _ in causes(rec))
    with output.capture() as shown:
        show_result(rec.as_dict(), "words")
    assert sentence in shown.get()
    assert f"expected to gain {rec.as_dict()['value_of_more']:.3f}" in shown.get()


def test_a_share_of_nothing_is_not_called_nothing() -> None:
    assert in_words({"prompt": 0.0, "item": 0.16, "interaction": 0.84}) == (
        "Why single scores differ: 84 % prompts that suit some inputs and not others, 16 % easy and hard inputs; "
        "too little to be seen here: the prompt."
    )
    assert in_words({"item": 0.4, "prompt": 0.6}) == (
        "Why single scores differ: 60 % the prompt, 40 % easy and hard inputs."
    )
