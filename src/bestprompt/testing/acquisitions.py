"""What selection relies on in an acquisition and in a maximiser."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bestprompt.types import Acquisition, FloatArray, IntArray, Maximizer, Posterior

N = 12


def _posterior(rows: IntArray | slice = slice(None)) -> tuple[Posterior, IntArray]:
    """Twelve candidates with joint draws, and their evaluations so far; the same for every call."""
    rng = np.random.default_rng(3)
    mean, std = rng.uniform(0.2, 0.8, N), rng.uniform(0.02, 0.2, N)
    draws = mean + std * rng.standard_normal((64, N))
    return Posterior(mean[rows], std[rows], draws[:, rows]), rng.integers(0, 6, N)[rows]


def gives_each_candidate_a_finite_worth(acquisition: Acquisition) -> None:
    """(n,) numbers, for any n of at least one and at any step."""
    for rows in (np.arange(N), np.array([4])):
        posterior, counts = _posterior(rows)
        for step in (1, 40):
            worth = acquisition(posterior, counts, step)
            assert np.shape(worth) == (rows.size,)
            assert np.isfinite(worth).all()


def is_a_function_of_its_arguments(acquisition: Acquisition) -> None:
    """A replayed run asks the same questions: randomness may depend on the step, not on the call; nothing changes."""
    posterior, counts = _posterior()
    first = np.array(acquisition(posterior, counts, 7))
    acquisition(posterior, counts, 8)
    np.testing.assert_array_equal(acquisition(posterior, counts, 7), first)
    untouched, same_counts = _posterior()
    np.testing.assert_array_equal(posterior.mean, untouched.mean)
    np.testing.assert_array_equal(posterior.std, untouched.std)
    np.testing.assert_array_equal(counts, same_counts)


def does_not_depend_on_the_order(acquisition: Acquisition) -> None:
    """Candidates in another order have their worth in that order."""
    order = np.random.default_rng(1).permutation(N)
    np.testing.assert_allclose(acquisition(*_posterior(order), 7), acquisition(*_posterior(), 7)[order])


acquisition_checks: tuple[Callable[[Acquisition], None], ...] = (
    gives_each_candidate_a_finite_worth,
    is_a_function_of_its_arguments,
    does_not_depend_on_the_order,
)


def check_acquisition(acquisition: Acquisition) -> None:
    """All of ``acquisition_checks``."""
    for check in acquisition_checks:
        check(acquisition)


# --------------------------------------------------------------------------------------------------------- maximisers
def _hill(rows: IntArray) -> FloatArray:
    assert ((np.asarray(rows) >= 0) & (np.asarray(rows) < 200)).all(), "there are 200 candidates"
    return -np.abs(np.asarray(rows, dtype=np.float64) - 137.0)


def proposes_candidates_that_exist(maximizer: Maximizer) -> None:
    """(n,) whole numbers from 0 to N − 1."""
    for n in (1, 5):
        found = np.asarray(maximizer(_hill, 200, n, np.random.default_rng(0)))
        assert found.shape == (n,)
        assert np.issubdtype(found.dtype, np.integer)
        assert ((found >= 0) & (found < 200)).all()


def proposes_better_candidates_than_chance(maximizer: Maximizer) -> None:
    """Over thirty generators, the mean worth lies above that of all candidates."""
    found = [maximizer(_hill, 200, 1, np.random.default_rng(seed)) for seed in range(30)]
    assert _hill(np.concatenate(found)).mean() > _hill(np.arange(200)).mean()


def repeats_itself(maximizer: Maximizer) -> None:
    """Equal generators, equal proposals."""
    first, again = (maximizer(_hill, 200, 3, np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(first, again)


maximizer_checks: tuple[Callable[[Maximizer], None], ...] = (
    proposes_candidates_that_exist,
    proposes_better_candidates_than_chance,
    repeats_itself,
)


def check_maximizer(maximizer: Maximizer) -> None:
    """All of ``maximizer_checks``."""
    for check in maximizer_checks:
        check(maximizer)
