"""Score tables: made from a model's answers, resumable, and replayed as selection problems."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import bestprompt as bp
from bestprompt.search import embed_candidates

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import score_table
import selection
import selection_replay


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A folder with one table: 12 prompts, 9 items, 2 replicates; prompt n is right with chance n/12."""
    rng = np.random.default_rng(0)
    scores = (100 * (rng.random((12, 9, 2)) < np.arange(12)[:, None, None] / 12)).astype(np.uint8)
    np.savez_compressed(tmp_path / "small.npz", scores=scores, Z=rng.standard_normal((12, 3)))
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
    with pytest.raises(ValueError, match="whole percents"):
        selection_replay.load_table(tables / "wrong.npz")
    with pytest.raises(ValueError, match="12 prompts"):
        selection.make_problem("table:small", 13, seed=0)


def store(path, **arrays):
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)


def test_a_table_is_made_from_answers_and_resumed(tmp_path):
    task = bp.Task.from_pairs([(word, word[0]) for word in ("ant", "bee", "cat", "dog")], ["Say it.", "First letter?"])
    calls = []

    def answer(request):
        calls.append(request)
        word = request.messages[-1].content.split()[-1]
        return word[0] if "letter" in request.messages[-1].content else word

    lm, candidates = bp.lm.function(answer), embed_candidates(["Say it.", "First letter?"])
    unfinished = tmp_path / "t.part"
    halfway = np.array([[[7]] * 4, [[score_table.MISSING]] * 4], dtype=np.uint8)
    store(unfinished, Z=candidates.Z, prompts=np.array(candidates.prompts), scores=halfway)
    done = score_table.fill(unfinished, task, lm, candidates, task.pairs, 1, 0.0)
    assert done == tmp_path / "t.npz"
    assert not unfinished.exists()
    assert len(calls) == 4  # the first prompt was there already
    scores, Z = selection_replay.load_table(done)
    np.testing.assert_allclose(scores[:, :, 0], [[0.07] * 4, [1.0] * 4])
    assert Z.shape[0] == 2
    # Not resumed: a table of other prompts.
    store(unfinished, Z=Z, prompts=np.array(["a", "b"]), scores=halfway)
    with pytest.raises(SystemExit, match="other prompts"):
        score_table.fill(unfinished, task, lm, candidates, task.pairs, 1, 0.0)
