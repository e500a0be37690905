"""The ledger keeps what it is given, forever, for one writer and many readers."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from bestprompt.errors import LedgerError
from bestprompt.ledger import Entry, Ledger, holds_a_run
from bestprompt.ledger.schema import MIGRATIONS
from bestprompt.types import REFINED, NewCandidate, Pair, SoftPromptSet, Usage


def candidates() -> SoftPromptSet:
    rng = np.random.default_rng(3)
    return SoftPromptSet(
        prompts=("Sort.", "Ordne, bitte 🙂."),
        Z=rng.normal(size=(2, 3)),
        X=rng.normal(size=(2, 5)).astype(np.float32).astype(np.float64),
        parents=np.array([-1, 0]),
        sources=("example", "latent"),
        details={"explained_variance": [0.5, 0.25]},
    )


def entry(replication: int = 0, attempt: int = 0, **changes: object) -> Entry:
    values = {
        "candidate": 0, "replication": replication, "attempt": attempt, "pair": 7, "request": {"seed": 1, "text": "ä"},
        "status": "ok", "output": "A\n", "extracted": "A", "score": 1.0, "usage": Usage(1, 20, 3), "cost": 0.25,
        "latency": 0.5,
    }  # fmt: skip
    return Entry(**{**values, **changes})  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Ledger.create(tmp_path / "run", {"seed": 5}) as ledger:
        ledger.set_candidates(candidates())
    return tmp_path / "run"


def test_what_is_written_comes_back(folder: Path) -> None:
    written = [
        entry(0),
        entry(1, status="error", output=None, extracted=None, score=None, error="503"),
        entry(1, attempt=1),
    ]
    with Ledger.open(folder) as ledger:
        ledger.append(written[:2])
        ledger.append(written[2:])
        ledger.event("finished", reason="budget")
    with Ledger.read(folder) as ledger:
        assert list(ledger.entries()) == written
        assert ledger.facts()["seed"] == 5
        assert [(kind, payload) for kind, payload, _ in ledger.events()] == [("finished", {"reason": "budget"})]
        stored, given = ledger.candidates(), candidates()
    assert stored is not None
    assert stored.prompts == given.prompts
    assert stored.sources == given.sources
    assert stored.details == given.details
    for name in ("Z", "X", "parents"):
        np.testing.assert_array_equal(getattr(stored, name), getattr(given, name))


@pytest.mark.parametrize("statement", ["UPDATE evaluation SET score = 0", "DELETE FROM evaluation", "DELETE FROM run"])
def test_nothing_can_be_changed_or_removed(folder: Path, statement: str) -> None:
    with Ledger.open(folder) as ledger:
        ledger.append([entry()])
    db = sqlite3.connect(folder / "ledger.db")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        db.execute(statement)
    db.close()


def test_an_append_is_all_or_nothing(folder: Path) -> None:
    with Ledger.open(folder) as ledger:
        ledger.append([entry(0)])
        with pytest.raises(sqlite3.IntegrityError):
            ledger.append([entry(1), entry(0)])
        assert [e.replication for e in ledger.entries()] == [0]


def test_one_writer_many_readers(folder: Path) -> None:
    with Ledger.open(folder) as writer:
        with pytest.raises(LedgerError, match="Another process is writing"):
            Ledger.open(folder)
        with Ledger.read(folder) as reader:
            writer.append([entry()])
            assert len(list(reader.entries())) == 1
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader.append([entry(1)])
    Ledger.open(folder).close()


def test_clear_errors(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="already holds a run"):
        Ledger.create(folder, {})
    with pytest.raises(LedgerError, match="No run in"):
        Ledger.read(tmp_path / "nowhere")
    (tmp_path / "text.db").write_text("this is not a database, but it is long enough to look like a file " * 9)
    with pytest.raises(LedgerError, match="not a bestprompt ledger"):
        Ledger.read(tmp_path / "text.db")


def test_a_newer_schema_is_refused(folder: Path) -> None:
    db = sqlite3.connect(folder / "ledger.db")
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    with pytest.raises(LedgerError, match="newer bestprompt"):
        Ledger.open(folder)


def new_candidate(prompt: str = "Sort well.") -> NewCandidate:
    return NewCandidate(prompt, 1, np.array([0.1, -0.2, 0.3]), np.arange(5, dtype=np.float32).astype(np.float64))


def test_added_candidates_come_back_apart_from_the_set(folder: Path) -> None:
    with Ledger.open(folder) as ledger:
        ledger.record_look({"at": 3, "candidate": None})
        ledger.record_look({"at": 5, "candidate": 2}, new_candidate())
        ledger.append([entry(candidate=2)])
    with Ledger.read(folder) as ledger:
        stored, (added,) = ledger.candidates(), ledger.added_candidates()
        assert ledger.payloads("look") == [{"at": 3, "candidate": None}, {"at": 5, "candidate": 2}]
    assert stored is not None
    assert REFINED not in stored.sources
    assert len(stored.prompts) == 2
    assert (added.prompt, added.parent) == ("Sort well.", 1)
    np.testing.assert_array_equal(added.z, new_candidate().z)
    np.testing.assert_array_equal(added.x, new_candidate().x)


def test_a_look_is_recorded_with_its_candidate_or_not_at_all(folder: Path) -> None:
    with Ledger.open(folder) as ledger:
        with pytest.raises(sqlite3.IntegrityError):
            ledger.record_look({"at": 5}, new_candidate("Sort."))  # is in the set already
        assert ledger.payloads("look") == []
        assert ledger.added_candidates() == []


def test_a_run_is_finished_until_its_budget_is_raised(folder: Path) -> None:
    with Ledger.open(folder) as ledger:
        assert ledger.finished() is None
        ledger.event("finished", prompt="a")
        ledger.event("interrupted")
        assert ledger.finished() == {"prompt": "a"}
        ledger.event("extended", calls=9)
        assert ledger.finished() is None
        ledger.event("finished", prompt="b")
        assert ledger.finished() == {"prompt": "b"}


def test_what_a_kill_left_before_anything_was_committed_is_no_run(tmp_path: Path) -> None:
    """The file exists as soon as it is opened; facts and tables are written in one transaction."""
    (tmp_path / "ledger.db").touch()
    assert not holds_a_run(tmp_path)
    with Ledger.create(tmp_path, {"task": "t"}) as ledger:
        assert ledger.facts() == {"task": "t"}
    assert holds_a_run(tmp_path)
    (tmp_path / "ledger.db").write_bytes(b"something else entirely, and long enough to be looked at" * 20)
    assert holds_a_run(tmp_path), "what is not ours is not overwritten"


def test_pairs_are_kept_once(folder: Path) -> None:
    pairs = [Pair("ä\n", ("1", "eins")), Pair("b", "2")]
    with Ledger.open(folder) as ledger:
        ledger.set_pairs(pairs)
        ledger.set_pairs([Pair("other", "x")])  # a run that goes on says the same again; what stands there stands
        ledger.append([entry()])
    with Ledger.read(folder) as ledger:
        assert ledger.pairs() == dict(enumerate(pairs))
        assert ledger.size() == (1, 0)
