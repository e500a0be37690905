"""One switch runs the published method as a whole, and runs recorded before it did go on as they were begun."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
from bestprompt.errors import ConfigError
from bestprompt.execution import Evaluator, Questions
from bestprompt.ledger import Ledger
from bestprompt.run import Run, open_ledger, run_facts
from bestprompt.run.preview import preview
from bestprompt.run.settings import Settings, in_mode, load_settings
from bestprompt.types import Observation, Proposal

pytestmark = pytest.mark.usefixtures("small_network")

SMALL = {"search.candidates": 10, "budget.calls": 40, "selection.surrogate": "blr"}


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many evaluations were asked for at a time."""
    sizes: list[int] = []
    usual = Evaluator.evaluate

    def evaluate(self: Evaluator, proposals: Sequence[Proposal]) -> list[Observation]:
        sizes.append(len(proposals))
        return usual(self, proposals)

    monkeypatch.setattr(Evaluator, "evaluate", evaluate)
    return sizes


def test_optimize_in_paper_mode_searches_warms_up_and_evaluates_one_at_a_time(
    world: Any, tmp_path: Path, rounds: list[int]
) -> None:
    rec = bp.optimize(
        world.task, world.lm, mode="paper", config=load_settings(None, SMALL), ledger=tmp_path, autoencoder=world.space
    )
    assert rec.candidates.sources.count("latent") == len(rec.candidates.prompts) - len(world.task.examples) > 0
    assert set(rounds) == {1}
    assert len(rounds) == 40
    assert rec.refinement is None
    with Ledger.read(tmp_path) as ledger:
        warmed = [e.candidate for e in ledger.entries()][: 5 * len(world.task.examples)]
        settings = ledger.facts()["settings"]
    assert sorted(warmed) == sorted(5 * list(range(len(world.task.examples))))
    assert (settings["search"]["mode"], settings["selection"]["mode"]) == ("paper", "paper")


def test_a_batch_of_one_holds_in_refinement_too(world: Any, rounds: list[int]) -> None:
    config = load_settings(None, {**SMALL, "refinement.mode": "default", "refinement.share": 0.4})
    bp.optimize(world.task, world.lm, mode="paper", config=config, autoencoder=world.space)
    assert set(rounds) == {1}


def test_the_switch_stands_above_a_file_and_below_what_is_said_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "project.toml"
    file.write_text('[search]\nsource = "examples"\n[refinement]\nmode = "m-ucb-r"\n')
    by_call = load_settings(file, {"mode": "paper"})
    assert (by_call.search.source, by_call.selection.batch, by_call.refining) == ("latent", 1, "m-ucb-r")
    assert load_settings(None, {"mode": "paper"}).refining == "off"
    assert load_settings(None, {"mode": "paper", "selection.batch": 3}).selection.batch == 3
    file.write_text('mode = "paper"\n[search]\nsource = "examples"\n')
    in_file = load_settings(file)
    assert (in_file.search.source, in_file.search.mode, in_file.selection.mode) == ("examples", "paper", "paper")
    assert in_mode(Settings(), "paper") == load_settings(None, {"mode": "paper"})
    assert load_settings(None, {"mode": "default"}) == Settings()
    with pytest.raises(ConfigError, match="choose one of default, paper"):
        load_settings(None, {"mode": "papper"})


def test_a_run_recorded_before_goes_on_by_the_first_edition() -> None:
    assert Questions.of({"items": 4, "repeats": "never", "next_item": "in-turn"}).edition == "first"
    assert Questions(4, "never").edition == "second"


@pytest.mark.slow
def test_m_ucb_r_evaluates_each_of_its_additional_prompts_once_on_top_of_the_budget(
    world: Any, tmp_path: Path, rounds: list[int]
) -> None:
    config = load_settings(None, {**SMALL, "refinement.mode": "m-ucb-r", "refinement.additional": 6})
    rec = bp.optimize(world.task, world.lm, mode="paper", config=config, ledger=tmp_path, autoencoder=world.space)
    assert rec.refinement is not None
    assert [look.at for look in rec.refinement.looks] == list(range(40, 46))
    assert [r.evaluations for r in rec.refinement.tried] == 6 * [1]
    assert rec.choice.counts[:-6].sum() == 40
    assert set(rounds) == {1}
    assert rec.choice.means[rec.choice.candidate] == rec.choice.means.max()
    assert preview(world.task, world.lm, in_mode(config, "paper")).evaluations == 46
    again = bp.optimize(world.task, world.lm, mode="paper", config=config, ledger=tmp_path, autoencoder=world.space)
    assert again.as_dict() == rec.as_dict()
    assert len(rounds) == 2 * 46


def test_m_ucb_r_of_the_first_edition_takes_its_calls_from_the_budget(world: Any, tmp_path: Path) -> None:
    settings = load_settings(None, {**SMALL, "mode": "paper", "refinement.mode": "m-ucb-r", "selection.batch": 8})
    facts = run_facts(world.task, world.lm, settings)
    del facts["edition"]
    with open_ledger(tmp_path, facts) as ledger:
        rec = Run(world.task, world.lm, settings, ledger, autoencoder=world.space).execute()
    assert rec.choice.counts.sum() == 40
