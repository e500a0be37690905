"""What the form shows before a run is started, and the files it writes."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from bestprompt.errors import BestPromptError, ConfigError, TaskError
from bestprompt.tasks import Task
from bestprompt.ui import drafts
from bestprompt.ui.drafts import Draft, look, toml

DATA = b"input,output\ngood thing,positive\nbad thing,negative\n"
DRAFT = Draft(file="reviews.csv", data=DATA, prompts='Which is it?\nSay "one" word: \x7f é 😀', scorer="contains")


def test_a_draft_is_read_as_the_run_would_read_it(tmp_path: Path) -> None:
    seen = look(DRAFT)
    assert seen.count == 2
    assert seen.pairs[0].references == ("positive",)
    assert seen.request is not None
    assert seen.request.messages[-1].content == "Which is it?\n\ngood thing"
    task = Task.load(DRAFT.write(tmp_path))
    assert task.pairs == seen.pairs
    assert task.examples == seen.prompts == ("Which is it?", 'Say "one" word: \x7f é 😀')


def test_the_score_is_tried() -> None:
    chatty = look(DRAFT).scores[1]
    assert (chatty[0], chatty[1]) == ("The answer is positive.", 1.0)
    strict = look(Draft(**{**_fields(DRAFT), "scorer": "exact", "attempt": "Positive"})).scores
    assert [score for _, score, _ in strict][:2] == [1.0, 0.0]
    assert strict[2][0] == "Positive"
    assert look(Draft(**{**_fields(DRAFT), "scorer": "judge"})).scores == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"data": b"", "file": ""}, "Choose a file"),
        ({"prompts": "  \n"}, "at least one prompt"),
        ({"file": "reviews.xlsx"}, "unknown kind of file"),
        ({"max_tokens": "many"}, "not a whole number"),
        ({"template": "no place for anything"}, "template must contain"),
        ({"data": b"input,output\nx,1\nx,2\n"}, "line 3"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, object], said: str) -> None:
    with pytest.raises(BestPromptError, match=said):
        look(Draft(**{**_fields(DRAFT), **change}))  # type: ignore[arg-type]


def test_options_are_those_of_the_command_line() -> None:
    draft = Draft(budget="50", model="m, n", base_url="http://h/v1", incumbent="--help", latent="yes", demos="4")
    assert draft.options() == [
        "--budget",
        "50",
        "--model=m",
        "--model=n",
        "--demos",
        "4",
        "--base-url=http://h/v1",
        "--incumbent=--help",
        "--latent",
    ]
    with pytest.raises(ConfigError, match="Budget"):
        Draft(budget="-1").options()
    with pytest.raises(ConfigError, match="Pairs shown"):
        Draft(demos="some").options()
    with pytest.raises(TaskError):
        Draft(file="a.exe", data=b"x", prompts="p").table()


def test_prompts_of_several_lines_stand_between_rules() -> None:
    draft = Draft(**{**_fields(DRAFT), "prompts": "one\r\ntwo\r\n---\r\nthree\r\n"})  # type: ignore[arg-type]
    assert look(draft).prompts == ("one\ntwo", "three")


def test_toml_holds_any_text() -> None:
    for text in ('"', "\\", "\n\t\x00\x1f\x7f", "'''", "é😀\u2028", "[x]\ny = 1"):
        assert tomllib.loads(f"a = {toml(text)}") == {"a": text}


def _fields(draft: Draft) -> dict[str, object]:
    return {name: getattr(draft, name) for name in Draft.__slots__}


def test_the_form_asks_for_everything_a_draft_can_hold() -> None:
    page = (Path(drafts.__file__).parent / "templates" / "new.html.j2").read_text(encoding="utf-8")
    asked = set(re.findall(r'name="(\w+)"', page))
    # A file brings its name; a system message is for those who write a settings file.
    assert {each.name for each in fields(Draft)} - asked == {"file", "system"}
