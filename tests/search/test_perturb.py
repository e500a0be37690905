import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import LedoitWolf

from bestprompt.rng import stream
from bestprompt.search import perturb


def some_set(n: int = 6, dim: int = 40) -> np.ndarray:
    return 0.2 * stream(1, "set").standard_normal((n, dim))


@given(st.lists(st.integers(0, 2000), min_size=1, max_size=30))
def test_parent_law_is_the_papers(chosen: list[int]) -> None:
    counts = np.array(chosen)
    law = perturb.parent_law(counts)
    assert law.sum() == pytest.approx(1.0)
    reference = np.argmin(counts)
    assert law == pytest.approx(law[reference] * np.exp(-(counts - counts[reference]).astype(float)))


def test_sample_steps_have_exactly_the_sample_covariance_and_its_rank() -> None:
    X = some_set()
    steps = perturb.sample_steps(X, 200_000, stream(0, "steps"))
    assert np.linalg.matrix_rank(steps[:1000], tol=1e-8) == len(X) - 1
    centred = X - X.mean(axis=0)
    wanted = centred.T @ centred / len(X)
    assert np.cov(steps.T, bias=True) == pytest.approx(wanted, abs=6 * np.max(np.diag(wanted)) / np.sqrt(200_000))


def test_sample_steps_stay_in_the_affine_span() -> None:
    X = some_set()
    basis = np.linalg.svd(X - X.mean(axis=0))[2][: len(X) - 1]
    steps = perturb.sample_steps(X, 50, stream(0, "steps"))
    assert steps @ basis.T @ basis == pytest.approx(steps)


def test_shrunk_steps_match_ledoit_wolf_and_leave_the_span() -> None:
    X = some_set(8, 12)
    rho = perturb.shrinkage(X)
    model = LedoitWolf().fit(X)
    assert rho == pytest.approx(model.shrinkage_)
    steps = perturb.shrunk_steps(X, rho, 200_000, stream(0, "steps"), np.zeros((0, 12)))
    assert np.linalg.matrix_rank(steps[:1000]) == 12
    assert np.cov(steps.T, bias=True) == pytest.approx(
        model.covariance_, abs=6 * np.diag(model.covariance_).max() / 447
    )


def test_shrunk_steps_mix_the_covariance_of_the_target() -> None:
    X, target = some_set(5, 8), 0.3 * stream(2, "target").standard_normal((30, 8))
    steps = perturb.shrunk_steps(X, 0.4, 200_000, stream(0, "steps"), target)
    wanted = 0.6 * np.cov(X.T, bias=True) + 0.4 * np.cov(target.T, bias=True)
    assert np.cov(steps.T, bias=True) == pytest.approx(wanted, abs=6 * np.diag(wanted).max() / 447)


def test_one_example_moves_by_the_target_alone() -> None:
    X, target = some_set(1, 8), some_set(6, 8)
    assert perturb.shrinkage(X) == 1.0
    steps = perturb.shrunk_steps(X, 1.0, 100, stream(0, "steps"), target)
    assert np.linalg.matrix_rank(steps, tol=1e-8) == 5


def test_neighbours_are_the_nearest_rows_without_repetition() -> None:
    X, sentences = np.array([[0.0], [1.0]]), np.array([[5.0], [0.9], [0.2], [-3.0], [0.5]])
    assert perturb.neighbours(X, sentences, 2).tolist() == [[0.9], [0.2], [0.5]]
    assert perturb.neighbours(X, sentences[:0], 2).shape == (0, 1)


@given(st.integers(1, 5), st.floats(-2.0, 2.0))
@settings(max_examples=50)
def test_box_is_judged_by_the_worst_coordinate(column: int, value: float) -> None:
    X = np.zeros((2, 6))
    X[1, column] = value
    assert perturb.inside_box(X).tolist() == [True, abs(value) <= 1.0]


def test_paraphrase_steps_are_the_ways_between_the_wordings_of_sentences_like_the_parent() -> None:
    before = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0], [5.1, 5.0]])
    ways = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [0.0, 4.0]])
    parents = np.repeat([[0.04, 0.0], [5.04, 5.0]], 100, axis=0)
    steps = perturb.paraphrase_steps(parents, (before, before + ways), 2, stream(0, "ways"))
    assert {tuple(row) for row in steps[:100].round(9)} == {(1.0, 0.0), (2.0, 0.0)}
    assert {tuple(row) for row in steps[100:].round(9)} == {(0.0, 3.0), (0.0, 4.0)}
    few = perturb.paraphrase_steps(parents, (before[:1], before[:1] + ways[:1]), 32, stream(0, "ways"))
    assert few == pytest.approx(np.tile([1.0, 0.0], (200, 1)))
