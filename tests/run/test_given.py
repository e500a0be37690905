"""Candidates as objects: a ready set is used as it is, a source is asked once and must be the same to continue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bestprompt as bp
from bestprompt.errors import ConfigError, LedgerError
from bestprompt.ledger import Ledger
from bestprompt.report import write_report
from bestprompt.rng import stream
from bestprompt.run import load_settings, standing
from bestprompt.run.given import notes_on_prompts
from bestprompt.testing import check_source
from bestprompt.types import REFINED, Request, SoftPromptSet

GOOD = "Copy the word."


def answer(request: Request) -> str:
    prompt, word = request.messages[-1].content.split("\n\n")
    chance = 0.95 if prompt == GOOD else 0.4
    return word if stream(request.seed, "given", prompt, word).random() < chance else "wrong"


LM = bp.lm.function(answer, name="m")
TASK = bp.Task.from_pairs([(f"word{i}", f"word{i}") for i in range(40)], ["Repeat the word.", "Say it again."])


class Proposer:
    """Proposes a good prompt and repeats a known one."""

    def __init__(self, fingerprint: str = "proposer:1") -> None:
        self.fingerprint = fingerprint
        self.asked: list[tuple[list[str], int, int]] = []

    def propose(self, prompts: Sequence[str], n: int, seed: int) -> list[str]:
        self.asked.append((list(prompts), n, seed))
        return [GOOD, prompts[0], "Something else entirely."][:n]


def test_a_source_that_keeps_its_contract_is_told_from_one_that_does_not() -> None:
    check_source(Proposer(), TASK.examples)

    class Moody(Proposer):
        """Proposes something else each time."""

        def propose(self, prompts: Sequence[str], n: int, seed: int) -> list[str]:
            return [f"Number {len(self.asked)}.", *super().propose(prompts, n, seed)][:n]

    with pytest.raises(AssertionError, match="same proposals"):
        check_source(Moody(), TASK.examples)


def test_a_source_is_asked_once_and_its_prompts_may_win(tmp_path: Path) -> None:
    source = Proposer()
    rec = bp.optimize(TASK, LM, budget=90, seed=4, candidates=source, ledger=tmp_path)
    assert source.asked == [(list(TASK.examples), 58, 4)]
    assert rec.candidates.sources == ("example", "example", "proposed", "proposed")
    assert rec.prompt == GOOD
    again = bp.optimize(TASK, LM, budget=90, seed=4, candidates=source, ledger=tmp_path)
    assert len(source.asked) == 1, "the set is stored"
    assert again.as_dict() == rec.as_dict()
    with Ledger.read(tmp_path) as ledger:
        assert standing(ledger).as_dict() == rec.as_dict()


@pytest.mark.parametrize("other", [Proposer("proposer:2"), ()])
def test_another_source_cannot_continue_a_run(other: Any, tmp_path: Path) -> None:
    bp.optimize(TASK, LM, budget=20, candidates=Proposer(), ledger=tmp_path)
    with pytest.raises(LedgerError, match="the source of candidate prompts changed"):
        bp.optimize(TASK, LM, budget=20, candidates=other, ledger=tmp_path)


def ready(*prompts: str) -> SoftPromptSet:
    Z = np.arange(2.0 * len(prompts)).reshape(-1, 2)
    return SoftPromptSet(prompts, Z, None, np.full(len(prompts), -1), ("file",) * len(prompts))


def test_a_ready_set_is_used_as_it_is(tmp_path: Path) -> None:
    pool = ready(GOOD, "Write something.", "Think.")
    rec = bp.optimize(TASK, LM, budget=60, candidates=pool, ledger=tmp_path)
    assert rec.prompt == GOOD
    assert rec.candidates.prompts == pool.prompts
    assert np.array_equal(rec.candidates.Z, pool.Z)
    assert bp.optimize(TASK, LM, budget=60, candidates=pool, ledger=tmp_path).as_dict() == rec.as_dict()


def test_the_set_of_an_earlier_run_keeps_what_refinement_added() -> None:
    pool = replace(ready("Think.", GOOD), sources=("file", REFINED))
    rec = bp.optimize(TASK, LM, budget=60, candidates=pool)
    assert rec.candidates.prompts == pool.prompts
    assert rec.prompt == GOOD
    assert rec.refinement is None


def test_an_empty_set_is_refused() -> None:
    with pytest.raises(ConfigError, match="empty"):
        bp.optimize(TASK, LM, candidates=ready())


@pytest.mark.parametrize(
    ("setting", "message"),
    [({"selection.incumbent": "Not in the set."}, "selection.incumbent"), ({"search.rewrites": 2}, "search.rewrites")],
)
def test_what_a_ready_set_cannot_have_is_refused(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        bp.optimize(TASK, LM, candidates=ready(GOOD, "Think."), config=load_settings(None, setting))


def test_every_prompt_keeps_where_it_came_from(tmp_path: Path) -> None:
    run, ideas = tmp_path / "my-run", tmp_path / "ideas.txt"
    run.mkdir()
    (run / "candidates.json").write_text(json.dumps([{"system_prompt": GOOD}, {"system_prompt": "Think."}]))
    (run / "gepa_state.bin").write_bytes(b"")
    ideas.write_text("Think.\nWrite something.\n")
    rec = bp.optimize(TASK, LM, budget=90, prompts=[run, ideas], ledger=tmp_path / "run")
    assert rec.candidates.sources == ("example", "example", "GEPA: my-run", "GEPA: my-run", "file: ideas.txt")
    assert rec.prompt == GOOD
    assert "Of 3 sources, the winning prompt is from GEPA (my-run)." in rec.verdict
    result = rec.as_dict()
    assert result["source"] == result["leaderboard"][0]["source"] == result["sources"][0]["source"] == "GEPA: my-run"
    assert {row["source"]: row["prompts"] for row in result["sources"]} == {
        "GEPA: my-run": 2, "example": 2, "file: ideas.txt": 1
    }  # fmt: skip
    assert sum(row["calls"] for row in result["sources"]) == rec.calls
    with Ledger.read(tmp_path / "run") as ledger:
        assert standing(ledger).as_dict() == result
        page = write_report(tmp_path / "report.html", ledger, rec).read_text()
    assert "from GEPA (my-run)" in page
    assert bp.optimize(TASK, LM, budget=90, prompts=[run, ideas], ledger=tmp_path / "run").as_dict() == result


def test_a_prompt_that_holds_pairs_of_the_data_is_named(tmp_path: Path) -> None:
    task = bp.Task.from_pairs([(f"a ticket about number {n}", f"team {n}") for n in range(9)], ["Route."])
    (tmp_path / "a.json").write_text(
        json.dumps(["Route it.\n\nInput:\na ticket about number 3\nOutput:\nteam 3", "Go."])
    )
    notes = notes_on_prompts(task, load_settings(None, {"search.file": tmp_path / "a.json"}))
    assert any(note.startswith("one prompt holds pairs of your data") for note in notes)
