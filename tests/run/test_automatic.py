"""What ``auto`` means: where the prompts of a run come from, decided before anything is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
from bestprompt.errors import ConfigError
from bestprompt.ledger import Ledger
from bestprompt.run.automatic import as_recorded, decided
from bestprompt.run.preview import preview
from bestprompt.run.settings import Settings, load_settings
from bestprompt.types import Request

SHORT = ["Repeat the word.", "Write the word again."]


def task(examples: list[str] = SHORT, pairs: int = 20) -> bp.Task:
    return bp.Task.from_pairs([(f"word{i}", f"word{i}") for i in range(pairs)], examples, scorer="exact")


def echo(request: Request) -> str:
    return request.messages[-1].content.split()[-1]


LM = bp.lm.function(echo, name="echo")


def settings(**overrides: Any) -> Settings:
    return load_settings(None, {key.replace("__", "."): value for key, value in overrides.items()})


def kinds(settings: Settings) -> tuple[str, str]:
    return settings.search.source, settings.ideas.mode


@pytest.mark.parametrize(
    ("examples", "pairs", "changes", "expected"),
    [
        (SHORT, 20, {"budget__calls": 40}, ("examples", "off")),
        (SHORT, 20, {"budget__calls": 120}, ("examples", "on")),
        (SHORT, 8, {"budget__calls": 120}, ("examples", "off")),
        (SHORT, 20, {"budget__calls": 300}, ("latent", "on")),
        (["Wiederhole bitte das Wort.", "Schreib das Wort nochmals."], 20, {}, ("examples", "on")),
        (["Repeat the word.\n\n" + "- a rule about the answer\n" * 40], 20, {}, ("examples", "on")),
        (SHORT, 20, {"search__source": "examples"}, ("examples", "on")),
        (SHORT, 20, {"search__source": "latent", "budget__calls": 40}, ("latent", "off")),
        (SHORT, 20, {"ideas__mode": "off", "budget__calls": 120}, ("examples", "off")),
        (SHORT, 20, {"mode": "paper"}, ("latent", "off")),
        (SHORT, 20, {"refinement__mode": "m-ucb-r", "budget__calls": 120}, ("examples", "off")),
        (SHORT, 20, {"refinement__mode": "off", "budget__calls": 120}, ("examples", "off")),
    ],
)
def test_decisions(examples: list[str], pairs: int, changes: dict[str, Any], expected: tuple[str, str]) -> None:
    assert kinds(decided(task(examples, pairs), LM, settings(**changes))) == expected


def test_what_the_caller_gives_is_all_there_is_to_choose_from() -> None:
    assert kinds(decided(task(), LM, settings(), ["Echo."])) == ("examples", "off")


def test_ideas_that_cannot_be_had_are_refused() -> None:
    for changes in ({"mode": "paper", "ideas__mode": "on"}, {"refinement__mode": "psk-ei", "ideas__mode": "on"}):
        with pytest.raises(ConfigError, match="ideas"):
            decided(task(), LM, settings(**changes))
    several = bp.lm.Several([LM, bp.lm.function(echo, name="other")])
    with pytest.raises(ConfigError, match="several models"):
        decided(task(), several, settings(ideas__mode="on"))
    assert kinds(decided(task(), several, settings())) == ("examples", "off")


def test_a_run_is_continued_as_it_was_decided(tmp_path: Path) -> None:
    bp.optimize(task(), LM, budget=40, ledger=tmp_path)
    with Ledger.read(tmp_path) as ledger:
        facts = ledger.facts()
    assert (facts["settings"]["search"]["source"], facts["settings"]["ideas"]["mode"]) == ("examples", "off")
    # A larger budget would have decided otherwise; the run goes on as it was begun.
    assert bp.optimize(task(), LM, budget=400, ledger=tmp_path).candidates.prompts == tuple(SHORT)
    del facts["settings"]["ideas"]
    assert kinds(as_recorded(settings(), facts)) == ("examples", "off")


def test_what_may_be_used_is_said_before() -> None:
    seen = preview(task(), LM, settings(budget__calls=120))
    assert seen.ideas == 60
    assert "ideas that echo writes" in seen.sources
    plain = preview(task(), LM, settings(budget__calls=120, ideas__mode="off"))
    assert (plain.ideas, plain.sources) == (0, "your prompts")
    assert seen.most.calls == plain.most.calls == 120
    assert seen.most.tokens > plain.most.tokens
