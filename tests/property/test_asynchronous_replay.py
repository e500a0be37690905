"""A run that asks as answers arrive is replayed from its record, cut off anywhere, and goes on from there."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bestprompt as bp
from bestprompt.execution import recorded_rounds
from bestprompt.ledger import PLANNED, ROUND, Ledger
from bestprompt.rng import stream
from bestprompt.run.replay import standing
from bestprompt.run.settings import load_settings
from bestprompt.types import Request

PROMPTS = [f"Prompt number {word}." for word in ("one", "two", "three", "four", "five", "six", "seven", "eight")]
BUDGET, IN_FLIGHT = 60, 6


class Model:
    """Answers out of order, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, request: Request) -> str:
        prompt, word = request.messages[-1].content.split("\n\n")
        self.asked.append(request.messages[-1].content)
        chance = stream(request.seed, "m", prompt, word)
        time.sleep(0.004 * chance.random())
        return word if chance.random() < 0.1 + 0.1 * PROMPTS.index(prompt) else "no"


def run(folder: Path, model: Model) -> dict[str, object]:
    task = bp.Task.from_pairs([(f"w{i}", f"w{i}") for i in range(50)], PROMPTS, scorer="exact")
    config = load_settings(None, {"budget.calls": BUDGET, "selection.in_flight": IN_FLIGHT, "selection.stop_gain": 0.0})
    lm = bp.lm.function(lambda request: model(request), name="m", concurrency=IN_FLIGHT)
    return bp.optimize(task, lm, config=config, ledger=folder).as_dict()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    folder = tmp_path_factory.mktemp("whole")
    return folder, run(folder, Model())


def test_the_record_says_what_the_run_said(whole: tuple[Path, dict[str, object]]) -> None:
    folder, said = whole
    with Ledger.read(folder) as ledger:
        assert standing(ledger).as_dict() == said
        told = [each for round_ in recorded_rounds(ledger) for each in round_]
        assert len(told) == len(set(told)) == BUDGET
    silent = Model()
    assert run(folder, silent) == said
    assert silent.asked == []


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(cut=st.integers(0, BUDGET - 1))
def test_cut_off_and_continued(whole: tuple[Path, dict[str, object]], cut: int) -> None:
    folder, _ = whole
    with tempfile.TemporaryDirectory() as scratch, Ledger.read(folder) as record:
        copy = Path(scratch) / "run"
        kept = list(record.entries())[:cut]
        done = {(e.candidate, e.replication) for e in kept}
        rounds = [payload for payload in record.payloads(ROUND) if all(tuple(each) in done for each in payload["told"])]
        facts = {k: v for k, v in record.facts().items() if k != "candidate_details"}
        with Ledger.create(copy, facts) as ledger:
            candidates = record.candidates()
            assert candidates is not None
            ledger.set_candidates(candidates)
            for payload in record.payloads(PLANNED):
                ledger.event(PLANNED, **payload)
            ledger.append(kept)
            for payload in rounds:
                ledger.event(ROUND, **payload)
        model = Model()
        said = run(copy, model)
        with Ledger.read(copy) as ledger:
            assert standing(ledger).as_dict() == said
            assert [list(map(_pair, r)) for r in recorded_rounds(ledger)][: len(rounds)] == [
                [tuple(each) for each in payload["told"]] for payload in rounds
            ]
            entries = list(ledger.entries())
        assert [(e.candidate, e.replication) for e in entries][:cut] == [(e.candidate, e.replication) for e in kept]
        assert len(entries) == len({(e.candidate, e.replication) for e in entries}) == BUDGET
        assert len(model.asked) == BUDGET - cut, "nothing that is recorded is asked again"


def _pair(proposal: object) -> tuple[int, int]:
    return proposal.candidate, proposal.replication  # type: ignore[attr-defined]
