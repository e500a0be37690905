"""Batches of PR-M-UCB: proposals of the batch and evaluations under way count before the next is chosen."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.acquisition.functions import UCB, ModifiedUCB, Thompson
from bestprompt.acquisition.maximize import Reinforce, batch_argmax
from bestprompt.acquisition.sampled_batch import SHORTLIST, sampled_batch
from bestprompt.types import Posterior

SEEN, DRAWN = Reinforce(starts=4, iterations=20), Reinforce.paper(starts=4, iterations=100, rate=0.3)


def sliced(posterior):
    """The posterior at distinct rows, as a surrogate that is asked only there would give it."""

    def at(rows):
        assert len(np.unique(rows)) == len(rows)
        draws = None if posterior.draws is None else posterior.draws[:, rows]
        return Posterior(posterior.mean[rows], posterior.std[rows], draws)

    return at


@pytest.fixture(scope="module")
def twins():
    """40 candidates in 20 pairs that rise and fall together, the first pairs the best."""
    rng = np.random.default_rng(0)
    draws = np.repeat(rng.normal(size=(2000, 20)), 2, axis=1) * 0.1 - np.repeat(np.arange(20) * 0.01, 2)
    draws += 0.001 * rng.normal(size=draws.shape)
    return Posterior(draws.mean(0), draws.std(0, ddof=1), draws)


@pytest.mark.parametrize("acquisition", [UCB(2.0), ModifiedUCB(), Thompson(3)], ids=["ucb", "m-ucb", "thompson"])
def test_is_the_exhaustive_batch_where_the_search_sees_everything(acquisition, twins):
    counts, noise, pending = np.arange(40) % 3, np.full(40, 0.01), np.zeros(40, int)
    pending[[0, 7]] = 3, 1
    search = Reinforce(starts=8, iterations=60)
    sampled = sampled_batch(search, sliced(twins), acquisition, counts, noise, 50, 6, np.random.default_rng(1), pending)
    exhaustive = batch_argmax(twins, acquisition, counts, noise, 50, 6, np.random.default_rng(1), pending)
    assert sampled.tolist() == exhaustive.tolist()


def test_a_batch_leaves_out_what_its_own_proposals_will_tell(twins):
    """The n best at the start are pairs of twins; once one of a pair is under way the other has nothing to add."""
    counts, noise = np.zeros(40, int), np.full(40, 1e-4)
    at, rng = sliced(twins), np.random.default_rng(2)
    batch = sampled_batch(SEEN, at, UCB(2.0), counts, noise, 1, 6, rng)
    assert len(set((batch // 2).tolist())) == 6
    greedy = SEEN(lambda rows: UCB(2.0)(Posterior(twins.mean[rows], twins.std[rows]), counts[rows], 1), 40, 6, rng)
    assert len(set((greedy // 2).tolist())) < 6
    assert counts.sum() == 0


@pytest.mark.parametrize("search", [SEEN, DRAWN], ids=["seen", "drawn"])
def test_evaluations_under_way_count_like_finished_ones(search):
    posterior, pending = Posterior(np.full(3, 0.5), np.full(3, 0.1)), np.array([4, 0, 4])
    args = ModifiedUCB.paper(), np.ones(3, int), np.full(3, 0.01), 9, 1
    for seed in range(5):
        assert sampled_batch(search, sliced(posterior), *args, np.random.default_rng(seed), pending).tolist() == [1]
    assert pending.tolist() == [4, 0, 4]


@pytest.mark.parametrize("search", [SEEN, DRAWN], ids=["seen", "drawn"])
def test_the_papers_bonus_goes_round_within_a_batch(search):
    """γ(0) = ∞: four candidates never looked at fill a batch of four, where one θ* would be drawn from repeatedly."""
    posterior, counts = Posterior(np.array([0.9, 0.5, 0.6, 0.7, 0.8]), np.full(5, 0.1)), np.array([7, 0, 0, 0, 0])
    batch = sampled_batch(
        search, sliced(posterior), ModifiedUCB.paper(), counts, np.full(5, 0.01), 7, 4, np.random.default_rng(0)
    )
    assert sorted(batch.tolist()) == [1, 2, 3, 4]


def test_one_good_candidate_may_be_proposed_repeatedly():
    posterior = Posterior(np.array([0.9, 0.1]), np.full(2, 0.05))
    batch = sampled_batch(
        SEEN, sliced(posterior), UCB(1.0), np.ones(2, int), np.full(2, 0.1), 5, 4, np.random.default_rng(0)
    )
    assert batch.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(("n", "most"), [(3, SHORTLIST + 1), (100, 401)])
def test_looks_at_few_of_many_candidates(n, most):
    """Each question is about one iteration's samples, or the shortlist, with what is under way; never about all N."""
    size, asked = 50_000, []
    values, pending = np.random.default_rng(0).normal(size=size), np.zeros(size, int)
    pending[17] = 2

    def at(rows):
        asked.append(len(rows))
        return Posterior(values[rows], np.full(len(rows), 0.1))

    chosen = sampled_batch(
        SEEN, at, UCB(1.0), np.zeros(size, int), np.full(size, 0.01), 1, n, np.random.default_rng(0), pending
    )
    assert chosen.size == n
    assert len(asked) == SEEN.iterations + 1
    assert max(asked[:-1]) <= SEEN.starts * SEEN.samples + 1
    assert asked[-1] <= most
    assert values[chosen[0]] > 2.0
