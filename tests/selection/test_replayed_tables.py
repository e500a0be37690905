"""Score tables as families of selection problems."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from bestprompt.errors import TaskError
from bestprompt.replay import ScoreTable
from bestprompt.types import SoftPromptSet

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import selection
import selection_replay


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A folder with one table: 12 prompts, 9 items, 2 replicates; prompt n is right with chance n/12."""
    rng = np.random.default_rng(0)
    scores = (100 * (rng.random((12, 9, 2)) < np.arange(12)[:, None, None] / 12)).astype(np.uint8)
    prompts = tuple(f"prompt {n}" for n in range(12))
    drawn = SoftPromptSet(prompts, rng.standard_normal((12, 3)), None, np.full(12, -1), ("file",) * 12)
    inputs = tuple(f"item {i}" for i in range(9))
    ScoreTable(drawn, inputs, scores, np.zeros(scores.shape, np.uint64), (0.7, 0.7)).save(tmp_path / "small.npz")
    monkeypatch.setattr(selection_replay.table_families, "__defaults__", (tmp_path,))
    monkeypatch.setattr(selection_replay.replayed, "__defaults__", (tmp_path,))
    return tmp_path


def test_a_table_is_a_family(tables):
    assert selection_replay.table_families() == {"table:small": 12}
    problem = selection.make_problem("table:small", 8, seed=3)
    stored = np.load(tables / "small.npz")
    whole = stored["scores"].mean(axis=(1, 2)) / 100
    assert problem.Z.shape == (8, 3)
    assert np.isclose(problem.truth[:, None], whole).any(axis=1).all()
    # Common items: every candidate sees each item once before any comes again, in the same order.
    passes = np.array([[problem.score(c, r, common=True) for r in range(18)] for c in range(8)])
    np.testing.assert_allclose(passes.mean(axis=1), problem.truth)
    np.testing.assert_array_equal(passes[:, :9], problem.scores[:, problem.order, 0])
    # Own items: draws with the candidate's mean, the same when asked again.
    own = np.array([problem.score(5, r) for r in range(600)])
    assert own.mean() == pytest.approx(problem.truth[5], abs=0.06)
    assert problem.score(5, 7) == problem.score(5, 7)


def test_ours_runs_on_a_table_and_records_its_verdict(tables):
    problem = selection.make_problem("table:small", 12, seed=0)
    regret, pcs, within, low, high, score, true, *_ = selection.ours(problem, 60, 0)
    assert regret == pytest.approx(problem.truth.max() - true)
    assert regret < 0.4
    assert 0.0 <= pcs <= within <= 1.0
    assert low <= score <= high


def test_wrong_tables_are_refused(tables):
    np.savez_compressed(tables / "wrong.npz", scores=np.zeros((3, 2, 1)), Z=np.zeros((3, 2)))
    with pytest.raises(TaskError, match="no score table"):
        selection_replay.load_table(tables / "wrong.npz")
    with pytest.raises(ValueError, match="12 prompts"):
        selection.make_problem("table:small", 13, seed=0)
