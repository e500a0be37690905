"""The paper's experiments run from scratch, go on where they ended, and the page shows what the results say."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bestprompt.kriging.projection import ProjectionKriging
from bestprompt.refinement import refiner
from bestprompt.replay import ScoreTable

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))

import figures
import protocol

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of real scores, smaller: the first 52 prompts and 10 items."""
    where = tmp_path_factory.mktemp("tables")
    whole = ScoreTable.load(ROOT / "benchmarks" / "tables" / "counting-objects-default.npz")
    c = whole.candidates
    few = replace(c, prompts=c.prompts[:52], Z=c.Z[:52], X=c.X[:52], parents=c.parents[:52], sources=c.sources[:52])
    replace(
        whole,
        candidates=few,
        inputs=whole.inputs[:10],
        percents=whole.percents[:52, :10],
        answers=whole.answers[:52, :10],
    ).save(where / "few.npz")
    return where


def experiment(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "experiments" / name / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def started(module, monkeypatch, folder: Path, results: Path, repetitions: int = 2) -> list[dict[str, str]]:
    how = ["--small", "--repetitions", str(repetitions), "--tables", str(folder), "--results", str(results)]
    monkeypatch.setattr(sys, "argv", ["run.py", *how])
    module.main()
    return protocol.rows(results)


@pytest.mark.slow
def test_surrogates_are_compared_and_the_results_gone_on_with(folder, tmp_path, monkeypatch):
    e1, path = experiment("e1_surrogates"), tmp_path / "r.csv"
    monkeypatch.setattr(e1, "METHODS", ("BLR", "default", "mean"))
    first = started(e1, monkeypatch, folder, path, repetitions=1)
    both = started(e1, monkeypatch, folder, path)
    assert both[: len(first)] == first
    assert len(both) == 2 * len(first) == 6
    assert all(0.0 <= float(row["covering"]) <= 1.0 and float(row["rmse"]) > 0.0 for row in both)


@pytest.mark.slow
def test_acquisitions_are_compared(folder, tmp_path, monkeypatch):
    e2 = experiment("e2_acquisition")
    monkeypatch.setattr(e2, "METHODS", ("M-UCB", "PR-M-UCB(1,10)", "random search"))
    monkeypatch.setattr(e2, "SIZES", (60,))  # eight more than the table has
    found = started(e2, monkeypatch, folder, tmp_path / "r.csv")
    assert [row["method"] for row in found] == 2 * ["M-UCB", "PR-M-UCB(1,10)", "random search"]
    assert all(0.0 <= float(row["score"]) <= 1.0 for row in found)


@pytest.mark.slow
def test_whole_runs_are_compared(folder, tmp_path, monkeypatch):
    small = ProjectionKriging(grid=(8,), inputs=8, hidden=8, frequencies=16, splits=2, stretches=1, capacity=64)
    monkeypatch.setattr(refiner, "paper_kriging", lambda _early=False: small)
    monkeypatch.setattr(protocol, "ADDITIONAL", 3)
    e4 = experiment("e4_six_tasks")
    monkeypatch.setattr(e4, "METHODS", ("M-UCB", "M-UCB-r", "sequential halving"))
    found = started(e4, monkeypatch, folder, tmp_path / "r.csv", repetitions=1)
    assert {row["method"]: int(row["calls"]) for row in found} == {
        "M-UCB": 30, "M-UCB-r": 33, "sequential halving": pytest.approx(30, abs=4)
    }  # fmt: skip
    assert all(float(row["regret"]) >= 0.0 for row in found)


def test_budgets_are_compared(folder, tmp_path, monkeypatch):
    e3 = experiment("e3_direct_search")
    monkeypatch.setattr(e3, "METHODS", ("sequential halving", "random search"))
    found = started(e3, monkeypatch, folder, tmp_path / "r.csv")
    assert [row["method"] for row in found] == 2 * ["sequential halving", "random search"]
    assert {row["budget"] for row in found} == {"50"}


def test_sequential_halving_finds_what_is_clearly_best_and_keeps_to_its_budget(folder):
    replay = protocol.tables([folder])["few"]
    regrets = []
    for seed in range(10):
        prompt, calls = protocol.halving(replay, 500, seed)
        assert 450 <= calls <= 500
        regrets.append(replay.truth.max() - replay.worth(prompt))
    assert np.mean(regrets) < 0.2


def test_the_page_says_what_the_results_say_and_shows_figures_that_are_there(tmp_path, monkeypatch):
    """`make figures` on committed results changes nothing in the page."""
    page = tmp_path / "reproduction.md"
    shutil.copy(figures.PAGE, page)
    monkeypatch.setattr(sys, "argv", ["figures.py", "--page", str(page)])
    figures.main()
    committed = figures.PAGE.read_text(encoding="utf-8")
    assert page.read_text(encoding="utf-8") == committed
    shown = re.findall(r"\]\(figures/([a-z0-9]+\.svg)\)", committed)
    assert shown == ["e1.svg", "e2.svg", "e3.svg", "e4.svg"]
    assert all((figures.PAGE.parent / "figures" / name).exists() for name in shown)
    assert all((tmp_path / "figures" / name).exists() for name in shown)
