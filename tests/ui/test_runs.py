"""The runs of a folder: states by record and lock, what is shown live, and two of them compared."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from bestprompt.errors import ConfigError, LedgerError
from bestprompt.ledger import Ledger, being_written
from bestprompt.ui.comparing import compare, flat
from bestprompt.ui.processes import Processes
from bestprompt.ui.runs import Runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, hostile_run: Path) -> Runs:
    folder = tmp_path_factory.mktemp("runs")
    shutil.copytree(hostile_run, folder / "one")
    shutil.copytree(hostile_run, folder / "two")
    (folder / "broken").mkdir()
    (folder / "broken" / "ledger.db").write_text("not a database at all")
    return Runs(folder, Processes(folder / "logs"))


def test_every_run_has_a_line_even_a_damaged_one(runs: Runs) -> None:
    states = {run.name: run for run in runs.all()}
    assert set(states) == {"one", "two", "broken"}
    assert states["broken"].state == "damaged"
    one = states["one"]
    assert (one.state, one.answered, one.calls, one.task, one.model) == ("finished", 120, 120, "custom", "m")
    assert one.dollars > 0


def test_a_run_that_is_written_is_running(runs: Runs) -> None:
    with Ledger.open(runs.path("two")):
        assert being_written(runs.path("two"))
        assert runs.state("two").state == "running"
        assert not runs.state("two").own
    assert not being_written(runs.path("two"))
    assert runs.state("two").state == "finished"


def test_names_cannot_leave_the_folder(runs: Runs) -> None:
    for name in ("..", "../one", "one/../two", "", ".hidden", "a" * 101, "one\n"):
        with pytest.raises(LedgerError):
            runs.path(name)
    with pytest.raises(LedgerError):
        runs.state("none")


def test_the_live_figures_are_those_of_the_record(runs: Runs) -> None:
    shown = runs.live("one")
    assert shown["answered"] == 120
    assert sum(row.evaluations for row in shown["rows"]) == 120
    assert shown["rows"][0].prompt == "Repeat the word."
    assert [row.estimate for row in shown["rows"]] == sorted((r.estimate for r in shown["rows"]), reverse=True)
    assert all(0 <= row.low <= row.estimate <= row.high <= 1 for row in shown["rows"])
    assert shown["rows"][0].tied
    for name in ("course", "map", "strips", "sources"):
        assert shown[name]


def test_a_run_does_not_differ_from_its_copy(runs: Runs) -> None:
    first, second, found = compare(runs, "one", "two")
    assert found.settings == ()
    assert len(found.shared) == len(first["rows"]) == len(second["rows"])
    assert found.difference == 0.0
    assert found.half > 0.0
    assert found.pairs > 10
    assert first is runs.ended("one")  # made once
    assert flat({"a": {"b": 1, "c": {"d": 2}}, "e": 3}) == {"a.b": 1, "a.c.d": 2, "e": 3}


@pytest.mark.slow
def test_processes_start_stop_and_say_why_they_failed(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.start("a", "resume", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="under way"):
        processes.start("a", "tasks")
    deadline = time.monotonic() + 60
    while processes.running("a"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert processes.failed("a")
    assert "No run in" in processes.last_words("a")
    assert not processes.stop("a")
    assert processes.last_words("never") == ""
