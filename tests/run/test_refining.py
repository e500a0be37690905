"""Runs that look beyond their candidate set: what they record, return and say, and when they do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bestprompt as bp
from bestprompt.ledger import Ledger
from bestprompt.rng import stream
from bestprompt.run import standing
from bestprompt.run.settings import Settings, load_settings
from bestprompt.types import REFINED, Request

BUDGET = 90
pytestmark = pytest.mark.usefixtures("small_network")


def settings(**changes: Any) -> Settings:
    values = {
        "search.source": "latent", "search.candidates": 12, "budget.calls": BUDGET, "selection.batch": 8,
        "selection.surrogate": "average",
    }  # fmt: skip
    return load_settings(None, {**values, **{key.replace("__", "."): value for key, value in changes.items()}})


def optimize(world: Any, folder: Path | None = None, **changes: Any) -> bp.Recommendation:
    return bp.optimize(world.task, world.lm, config=settings(**changes), ledger=folder, autoencoder=world.space)


@pytest.mark.parametrize("mode", ["default", "m-ucb-r", "psk-ei"])
def test_refined_prompts_are_candidates_like_the_others(world: Any, tmp_path: Path, mode: str) -> None:
    rec = optimize(world, tmp_path, refinement__mode=mode)
    refinement = rec.refinement
    assert rec.calls == BUDGET
    assert refinement is not None
    assert refinement.tried
    sources = np.array(rec.candidates.sources)
    assert (sources == REFINED).sum() == len(refinement.tried)
    assert len(rec.choice.counts) == len(sources)
    assert len(set(rec.candidates.prompts)) == len(sources)
    assert all(world.space.fits(r.prompt) and r.evaluations >= 1 for r in refinement.tried)
    assert refinement.uncertainty == pytest.approx(sum(r.std**2 for r in refinement.tried))
    assert refinement.sentence in rec.verdict
    with Ledger.read(tmp_path) as ledger:
        assert standing(ledger).as_dict() == rec.as_dict()
        assert [n.prompt for n in ledger.added_candidates()] == [r.prompt for r in refinement.tried]
        original = ledger.candidates()
    assert original is not None
    assert len(original.prompts) == (len(world.task.examples) if mode == "psk-ei" else 12)


def test_m_ucb_r_adds_prompts_with_the_last_calls_only(world: Any, tmp_path: Path) -> None:
    rec = optimize(world, tmp_path, refinement__mode="m-ucb-r", refinement__additional=30)
    with Ledger.read(tmp_path) as ledger:
        original = ledger.candidates()
        entries = list(ledger.entries())
    assert original is not None
    first = next(i for i, e in enumerate(entries) if e.candidate >= len(original.prompts))
    assert first >= BUDGET - 30
    assert rec.refinement is not None
    assert all(look.at >= BUDGET - 30 for look in rec.refinement.looks)
    assert "Refinement tried" in rec.verdict


def test_direct_search_evaluates_new_prompts_after_the_pilot(world: Any, tmp_path: Path) -> None:
    rec = optimize(world, tmp_path, refinement__mode="psk-ei", budget__calls=48)
    with Ledger.read(tmp_path) as ledger:
        later = list(ledger.entries())[24:]
    first = len(world.task.examples)
    assert {e.candidate for e in later if e.candidate >= first} == set(range(first, len(rec.candidates.prompts)))
    assert len(rec.candidates.prompts) > first


@pytest.mark.parametrize("outside", [1.0, 0.0], ids=["better", "worse"])
def test_what_is_returned_beat_the_best_of_the_set_or_the_set_keeps_its_best(world: Any, outside: float) -> None:
    """Prompts of the set are right half of the time, all others always or never: no draw hides which are better."""

    def answer(request: Request) -> str:
        prompt, word = request.messages[-1].content.split("\n\n")
        quality = 0.5 if prompt in world.task.examples else outside
        return word if stream(request.seed, "model", prompt, word).random() < quality else "wrong"

    config = settings(search__source="examples", budget__calls=200, refinement__mode="default", refinement__share=0.6)
    rec = bp.optimize(world.task, bp.lm.function(answer, name="m"), config=config, autoencoder=world.space)
    assert rec.refinement is not None
    assert rec.refinement.tried
    winners = [r for r in rec.refinement.tried if r.returned]
    if outside > 0.5:
        assert [winner.prompt for winner in winners] == [rec.prompt]
        assert winners[0].comparison.better
        assert "it is better than the best prompt of the set" in rec.verdict
    else:
        assert not winners
        assert rec.candidates.sources[rec.choice.candidate] != REFINED
        assert f"kept “{rec.prompt}”" in rec.verdict


def test_a_fixed_share_of_nothing_is_selection_alone(world: Any) -> None:
    off = optimize(world, refinement__mode="off")
    none = optimize(world, refinement__mode="default", refinement__share=0.0)
    assert off.refinement is None
    assert none.prompt == off.prompt
    assert none.choice.counts.tolist() == off.choice.counts.tolist()


def test_off_with_given_prompts_and_on_with_invented_ones() -> None:
    assert load_settings().refining == "off"
    assert load_settings(None, {"search.source": "latent"}).refining == "default"
    assert load_settings(None, {"search.source": "latent", "refinement.mode": "off"}).refining == "off"


def test_given_prompts_can_be_refined_when_asked_for(world: Any) -> None:
    rec = optimize(world, search__source="examples", refinement__mode="m-ucb-r")
    assert rec.refinement is not None
    assert rec.refinement.skipped is None
    assert rec.refinement.looks  # what they find depends on the scores


def test_prompts_without_a_place_in_the_latent_space_are_selected_only(world: Any, tmp_path: Path) -> None:
    warnings: list[str] = []

    class Listener(bp.run.Silent):
        def warn(self, message: str) -> None:
            warnings.append(message)

    task = bp.Task.from_pairs([(f"w{i}", f"w{i}") for i in range(40)], ["Whatever you like, but do", "Say it"])
    rec = bp.optimize(
        task,
        bp.lm.function(lambda request: request.messages[-1].content.split()[-1]),
        config=load_settings(None, {"refinement.mode": "default", "budget.calls": 40}),
        ledger=tmp_path,
        autoencoder=world.space,
        observer=Listener(),
    )
    assert rec.refinement is not None
    assert rec.refinement.skipped
    assert "Refinement was skipped" in rec.verdict
    assert any("no refinement" in message for message in warnings)
    with Ledger.read(tmp_path) as ledger:
        assert standing(ledger).as_dict() == rec.as_dict()


def test_paper_mode_refines_too(world: Any) -> None:
    rec = optimize(world, selection__mode="paper", selection__surrogate="gp", refinement__mode="m-ucb-r")
    # Pairs are drawn with replacement, and paid for once.
    assert rec.choice.counts.sum() == BUDGET + 20 >= rec.calls
    assert rec.refinement is not None
    assert rec.refinement.looks  # what they find depends on the scores


@pytest.mark.slow
def test_the_stage_is_shown(world: Any) -> None:
    stages: list[str] = []

    class Listener(bp.run.Silent):
        def stage(self, name: str, total: int | None) -> None:
            stages.append(name)

    bp.optimize(
        world.task, world.lm, config=settings(refinement__mode="default"), autoencoder=world.space, observer=Listener()
    )
    assert stages[0] == "searching"
    assert "refining" in stages
    assert stages[-1] == "evaluating"
