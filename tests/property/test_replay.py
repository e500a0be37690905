"""A run cut off after any number of recorded evaluations, then continued, ends as if it had not been."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bestprompt as bp
from bestprompt.ledger import Entry, Ledger
from bestprompt.rng import stream
from bestprompt.types import Request

PROMPTS = [f"Prompt number {word}." for word in ("one", "two", "three", "four", "five", "six", "seven", "eight")]
BUDGET = 60


def model(request: Request) -> str:
    prompt, word = request.messages[-1].content.split("\n\n")
    return word if stream(request.seed, "m", prompt).random() < 0.1 + 0.1 * PROMPTS.index(prompt) else "no"


def task() -> bp.Task:
    return bp.Task.from_pairs([(f"w{i}", f"w{i}") for i in range(50)], PROMPTS, scorer="exact")


def run(folder: Path) -> dict[str, object]:
    """What the run found; but for how long answers took, which differs each time they are given."""
    found = bp.optimize(task(), bp.lm.function(model, name="m"), budget=BUDGET, seed=3, ledger=folder).as_dict()
    for row in found["leaderboard"]:
        del row["latency"]
    return found


def entries(folder: Path) -> list[Entry]:
    with Ledger.read(folder) as ledger:
        found = [replace(e, created=0.0, latency=0.0) for e in ledger.entries()]
    return sorted(found, key=lambda e: (e.candidate, e.replication))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    folder = tmp_path_factory.mktemp("whole")
    return folder, run(folder)


@settings(max_examples=8, deadline=None)
@given(cut=st.integers(0, BUDGET - 1))
def test_cut_and_continued_equals_whole(whole: tuple[Path, dict[str, object]], timeless: Any, cut: int) -> None:
    folder, expected = whole
    with tempfile.TemporaryDirectory() as scratch, Ledger.read(folder) as record:
        copy = Path(scratch) / "run"
        facts = {k: v for k, v in record.facts().items() if k != "candidate_details"}
        with Ledger.create(copy, facts) as ledger:
            candidates = record.candidates()
            assert candidates is not None
            ledger.set_candidates(candidates)
            ledger.append(list(record.entries())[:cut])
        assert timeless(run(copy)) == timeless(expected)
        assert entries(copy) == entries(folder)
