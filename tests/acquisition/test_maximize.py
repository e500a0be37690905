"""Maximisers: ties, batches with pending evaluations, and REINFORCE that looks only where it samples."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.acquisition.functions import UCB, ModifiedUCB
from bestprompt.acquisition.maximize import Argmax, Reinforce, batch_argmax, fantasise
from bestprompt.types import Posterior


def test_argmax_is_the_best_with_ties_at_random():
    values = np.array([0.1, 0.9, 0.3, 0.9])
    picks = [Argmax()(lambda rows: values[rows], 4, 1, np.random.default_rng(s))[0] for s in range(40)]
    assert set(picks) == {1, 3}
    assert Argmax()(lambda rows: values[rows], 4, 3, np.random.default_rng(0)).tolist()[2] == 2


@pytest.fixture(scope="module")
def belief():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6)) * 0.1
    draws = 0.5 + rng.normal(size=(4000, 6)) @ root.T
    return Posterior(draws.mean(0), draws.std(0, ddof=1), draws)


def test_fantasy_is_the_exact_gaussian_update_of_the_spread(belief):
    covariance = np.cov(belief.draws.T)
    column = covariance[:, 2]
    exact = covariance - np.outer(column, column) / (column[2] + 0.01)
    imagined = fantasise(belief, 2, 0.01)
    assert imagined.std**2 == pytest.approx(np.diag(exact), rel=1e-6)
    assert np.cov(imagined.draws.T) == pytest.approx(exact, abs=1e-9)
    assert (imagined.mean == belief.mean).all()


def test_fantasy_without_draws_or_without_spread(belief):
    alone = fantasise(Posterior(belief.mean, belief.std), 2, 0.01)
    assert alone.std[2] ** 2 == pytest.approx(1 / (1 / belief.std[2] ** 2 + 1 / 0.01))
    assert (np.delete(alone.std, 2) == np.delete(belief.std, 2)).all()
    certain = Posterior(np.zeros(2), np.zeros(2), np.zeros((5, 2)))
    assert fantasise(certain, 0, 0.0) is certain


def test_a_batch_spreads_over_candidates_where_single_steps_would_repeat():
    posterior = Posterior(np.array([0.52, 0.5, 0.5, 0.1]), np.full(4, 0.1))
    counts, noise, rng = np.zeros(4, int), np.full(4, 0.01), np.random.default_rng(0)
    batch = batch_argmax(posterior, UCB(2.0), counts, noise, 1, 3, rng)
    assert set(batch) == {0, 1, 2}
    assert counts.tolist() == [0, 0, 0, 0]


def test_pending_evaluations_count_like_finished_ones():
    posterior = Posterior(np.array([0.5, 0.5]), np.full(2, 0.1))
    noise, rng = np.full(2, 0.01), np.random.default_rng(0)
    for pending, expected in (([3, 0], 1), ([0, 3], 0)):
        chosen = batch_argmax(posterior, ModifiedUCB(), np.ones(2, int), noise, 5, 1, rng, np.array(pending))
        assert chosen.tolist() == [expected]


def test_one_good_candidate_may_be_proposed_repeatedly():
    posterior = Posterior(np.array([0.9, 0.1]), np.array([0.05, 0.05]))
    batch = batch_argmax(posterior, UCB(1.0), np.ones(2, int), np.full(2, 0.1), 5, 4, np.random.default_rng(0))
    assert batch.tolist() == [0, 0, 0, 0]


def counting(values):
    asked = []

    def score_at(rows):
        asked.append(np.array(rows))
        return values[rows]

    return score_at, asked


def test_reinforce_asks_only_where_it_samples():
    values = np.random.default_rng(0).normal(size=100_000)
    score_at, asked = counting(values)
    recipe = Reinforce(starts=3, iterations=10, samples=4)
    chosen = recipe(score_at, 100_000, 2, np.random.default_rng(1))
    seen = np.concatenate(asked)
    assert len(asked) == 10
    assert seen.size == 3 * 10 * 4
    assert sorted(values[chosen])[::-1] == sorted(values[np.unique(seen)])[::-1][:2]


def test_papers_reinforce_concentrates_on_the_best_of_a_few():
    values = np.array([0.1, 0.2, 1.0, 0.3, 0.0])
    recipe = Reinforce.paper(starts=4, iterations=200, samples=10)
    picks = [recipe(lambda rows: values[rows], 5, 1, np.random.default_rng(s))[0] for s in range(12)]
    assert np.mean(np.array(picks) == 2) > 0.8


@pytest.mark.parametrize("recipe", [Reinforce(), Reinforce.paper(iterations=5)], ids=["default", "paper"])
def test_reinforce_on_degenerate_problems(recipe):
    rng = np.random.default_rng(0)
    assert recipe(lambda rows: np.zeros(len(rows)), 1, 1, rng).tolist() == [0]
    assert 0 <= recipe(lambda rows: np.full(len(rows), 0.5), 7, 1, rng)[0] < 7
    assert 0 <= recipe(lambda rows: np.full(len(rows), -3.0), 2, 1, rng)[0] < 2


def test_reinforce_is_reproducible():
    values = np.random.default_rng(0).normal(size=500)
    first, again = (Reinforce()(lambda rows: values[rows], 500, 3, np.random.default_rng(4)) for _ in range(2))
    assert (first == again).all()


def test_reinforce_with_baseline_and_unit_ignores_level_and_scale_of_the_acquisition():
    """The baseline takes the level out of every step and the standard deviation the scale, so θ takes the same path."""
    values = np.random.default_rng(0).normal(size=300)
    paths = [
        Reinforce(iterations=15).look(lambda rows, v=v: v[rows], 300, np.random.default_rng(6))
        for v in (values, 50.0 * values + 1000.0)
    ]
    assert (paths[0].rows == paths[1].rows).all()
    everything = np.arange(300)
    assert paths[0].theta.value(everything) == pytest.approx(paths[1].theta.value(everything), abs=1e-9)


@pytest.mark.slow
def test_papers_reinforce_finds_better_candidates_with_more_starts_and_iterations():
    """Quantile rank of the choice, 0 the best and .5 random, expected over the last draw: at a level as M-UCB has it.

    Bounds are two standard errors over the repetitions.
    """
    n, means, errors = 200, [], []
    for starts, iterations, repetitions in ((1, 10, 40), (5, 50, 16), (20, 100, 6)):
        ranks = []
        for repetition in range(repetitions):
            rng = np.random.default_rng([repetition, starts])
            values = 7.0 + 0.1 * rng.standard_normal(n)
            law = Reinforce.paper(starts, iterations).look(lambda rows, v=values: v[rows], n, rng).theta
            better = (values[None, :] > values[:, None]).mean(axis=1)
            ranks.append(law.probability(np.arange(n)) @ better)
        means.append(np.mean(ranks))
        errors.append(np.std(ranks, ddof=1) / np.sqrt(repetitions))
    assert means[0] + 2 * errors[0] < 0.5
    assert means[1] + 2 * np.hypot(errors[0], errors[1]) < means[0]
    assert means[2] + 2 * np.hypot(errors[1], errors[2]) < means[1]
    assert means[2] + 2 * errors[2] < 0.06
