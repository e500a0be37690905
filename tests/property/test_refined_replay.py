"""A refining run cut off anywhere, also between a look and its first evaluation, ends as if it had not been."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bestprompt as bp
from bestprompt.ledger import LOOK, Entry, Ledger
from bestprompt.run import standing
from bestprompt.run.settings import load_settings

BUDGET = 52
MODES = ("default", "m-ucb-r", "psk-ei")
pytestmark = pytest.mark.usefixtures("small_network")


def run(world: Any, folder: Path, mode: str) -> dict[str, Any]:
    config = load_settings(
        None,
        {
            "search.source": "latent", "search.candidates": 10, "selection.batch": 6, "budget.calls": BUDGET,
            "refinement.mode": mode, "refinement.additional": 24, "seed": 3, "selection.surrogate": "average",
        },
    )  # fmt: skip
    return bp.optimize(world.task, world.lm, config=config, ledger=folder, autoencoder=world.space).as_dict()


def entries(folder: Path) -> list[Entry]:
    with Ledger.read(folder) as ledger:
        found = [replace(e, created=0.0, latency=0.0) for e in ledger.entries()]
    return sorted(found, key=lambda e: (e.candidate, e.replication))


def looks(folder: Path) -> list[dict[str, Any]]:
    with Ledger.read(folder) as ledger:
        return ledger.payloads(LOOK)


def cut(source: Path, target: Path, evaluations: int, with_look: bool) -> None:
    """A copy of a record as it stood after ``evaluations``, before or after a look that was taken right then."""
    with Ledger.read(source) as record:
        facts = {k: v for k, v in record.facts().items() if k != "candidate_details"}
        candidates, added = record.candidates(), iter(record.added_candidates())
        assert candidates is not None
        with Ledger.create(target, facts) as ledger:
            ledger.set_candidates(candidates)
            for kind, payload, _ in record.events():
                if kind in ("planned", "refinement"):
                    ledger.event(kind, **payload)
            for look in record.payloads(LOOK):
                if look["at"] < evaluations or (look["at"] == evaluations and with_look):
                    ledger.record_look(look, next(added) if look["candidate"] is not None else None)
            ledger.append(list(record.entries())[:evaluations])


@pytest.fixture(scope="module")
def whole(
    world: Any, small_network: None, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Path, dict[str, Any]]]:
    folders = {mode: tmp_path_factory.mktemp(mode) for mode in MODES}
    return {mode: (folder, run(world, folder, mode)) for mode, folder in folders.items()}


@pytest.mark.slow
@settings(max_examples=9, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mode=st.sampled_from(MODES), evaluations=st.integers(0, BUDGET - 1), with_look=st.booleans())
def test_cut_and_continued_equals_whole(
    world: Any,
    whole: dict[str, tuple[Path, dict[str, Any]]],
    timeless: Any,
    mode: str,
    evaluations: int,
    with_look: bool,
) -> None:
    folder, expected = whole[mode]
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "run"
        cut(folder, copy, evaluations, with_look)
        if evaluations:
            with Ledger.read(copy) as ledger:
                assert standing(ledger).choice.counts.sum() == evaluations
        assert timeless(run(world, copy, mode)) == timeless(expected)
        assert entries(copy) == entries(folder)
        assert looks(copy) == looks(folder)


def test_every_mode_took_looks_and_candidates_were_added(whole: dict[str, tuple[Path, dict[str, Any]]]) -> None:
    """Not by every mode: the default one may find nothing worth a call in so small a budget."""
    taken = {mode: looks(folder) for mode, (folder, _) in whole.items()}
    assert all(taken.values())
    assert any(look["candidate"] is not None for mode in MODES for look in taken[mode])
    assert all(result["calls"] == BUDGET for _, result in whole.values())


def test_a_look_and_its_candidate_are_recorded_together(whole: dict[str, tuple[Path, dict[str, Any]]]) -> None:
    folder, _ = whole["m-ucb-r"]
    db = sqlite3.connect(f"{(folder / 'ledger.db').as_uri()}?mode=ro", uri=True)
    added = [n for (n,) in db.execute("SELECT n FROM candidate WHERE source = 'refined' ORDER BY n")]
    said = [
        json.loads(p)["candidate"] for (p,) in db.execute("SELECT payload FROM event WHERE kind = 'look' ORDER BY id")
    ]
    db.close()
    assert added == [n for n in said if n is not None]
