"""The selection benchmark's order of runs: balanced, resumable, fewer where asked for."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import selection


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """Runs the script on a small corner with a contestant that takes candidate 0; returns the rows per cell."""
    runs, fail_at = [], set()

    def first(problem, budget, seed):
        runs.append((problem.family, budget, seed))
        if len(runs) in fail_at:
            raise KeyboardInterrupt
        return 0

    monkeypatch.setattr(selection, "RESULTS", tmp_path)
    monkeypatch.setattr(selection, "SAVED_EVERY", 0.0)
    monkeypatch.setattr(selection, "group_members", lambda group, python: {"first": first})

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["selection.py", *arguments, "--group", "classic", "--sizes", "6"])
        selection.main()
        return {k: len(v) for k, v in json.loads((tmp_path / "selection_classic.json").read_text()).items()}

    call.runs, call.fail_at = runs, fail_at
    return call


CORNER = ("--families", "smooth,ties", "--ratios", "0.5,15")


def test_every_cell_gets_a_macro_replication_before_any_gets_the_next(bench):
    assert set(bench("run", *CORNER, "--reps", "3").values()) == {3}
    seeds = [seed for _, _, seed in bench.runs]
    assert seeds == sorted(seeds)
    assert Counter(seeds) == dict.fromkeys(range(3), 4)


def test_a_broken_run_is_continued_where_it_ended(bench):
    bench.fail_at.add(6)
    with pytest.raises(KeyboardInterrupt):
        bench("run", *CORNER, "--reps", "3")
    assert set(bench("run", *CORNER, "--reps", "3").values()) == {3}
    again = Counter(bench.runs)
    assert [count for count in again.values() if count > 1] == [2]  # the one that was under way


def test_cells_of_large_budgets_may_get_fewer(bench):
    rows = bench("run", *CORNER, "--reps", "3", "--reps-at", "15:1")
    assert rows == {"smooth|6|3|first": 3, "ties|6|3|first": 3, "smooth|6|90|first": 1, "ties|6|90|first": 1}
    assert set(bench("run", *CORNER, "--reps", "3").values()) == {3}


def test_no_time_means_no_runs(bench):
    assert bench("run", *CORNER, "--minutes", "-1") == {}


def test_a_plan_counts_what_is_missing(bench, capsys):
    bench("run", *CORNER, "--reps", "2")
    bench("plan", *CORNER, "--reps", "5", "--reps-at", "15:2")
    lines = [line.split("|") for line in capsys.readouterr().out.splitlines() if line.startswith("| 6")]
    assert [(line[2].strip(), line[4].strip()) for line in lines] == [("3", "6")]
