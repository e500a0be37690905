"""Batches found by PR-M-UCB: each proposal counts before the next is chosen, and α is asked for at few candidates only.

Notation (paper symbol → name):
    r_n          evaluations, pending ones included    → ``counts`` + ``under_way``     (N,)
    α_t(z_n)     acquisition                           → ``worth(rows)``                (k,)
    p(z; θ*)     what Alg. 2 draws from                → ``SearchResult.theta``

A deviation, since the paper evaluates one at a time. Where the best candidates seen are the answer, one search serves
the whole batch: evaluations under way only lower α, so the batch is chosen one by one among the best the search saw,
spreads shrinking as it grows. Where the answer is a draw from p(z; θ*), as in the paper, a proposal changes θ* itself,
and each takes a search of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bestprompt.acquisition.maximize import Reinforce, ScoreAt, batch_argmax, imagine
from bestprompt.types import Acquisition, FloatArray, IntArray, Maximizer, Posterior

PosteriorAt = Callable[[IntArray], Posterior]

# A batch is chosen among this many of the best candidates seen, and at least so many for each of its places: correlated
# candidates fall together, and the next best must still be among them.
SHORTLIST, SHORTLIST_PER_PLACE = 256, 4


def sampled_batch(
    search: Reinforce,
    posterior_at: PosteriorAt,
    acquisition: Acquisition,
    counts: IntArray,
    noise: FloatArray,
    step: int,
    n: int,
    rng: np.random.Generator,
    pending: IntArray | None = None,
) -> IntArray:
    """The next ``n`` proposals, to be evaluated at once, as :func:`bestprompt.acquisition.maximize.batch_argmax` does.

    Args:
        search: PR-M-UCB and its settings.
        posterior_at: The posterior at distinct candidates, with joint draws where the surrogate makes them.
        acquisition: What to maximise.
        counts: (N,) finished evaluations.
        noise: (N,) variance of one evaluation.
        step: t, finished evaluations in all.
        n: Proposals wanted.
        rng: Of the search; breaks ties.
        pending: (N,) evaluations under way.
    """
    under_way = np.zeros(len(counts), dtype=np.int64) if pending is None else np.array(pending, dtype=np.int64)
    if search.answer == "seen":
        worth = _worth(posterior_at, acquisition, counts, noise, step, under_way)
        found = search.look(worth, len(counts), rng).best(max(SHORTLIST, SHORTLIST_PER_PLACE * n), rng)
        among = np.union1d(found, np.flatnonzero(under_way))
        chosen = batch_argmax(
            posterior_at(among), acquisition, counts[among], noise[among], step, n, rng, under_way[among]
        )
        return np.asarray(among[chosen], dtype=np.int64)
    return one_by_one(search, posterior_at, acquisition, counts, noise, step, n, rng, under_way)


def one_by_one(
    search: Maximizer,
    posterior_at: PosteriorAt,
    acquisition: Acquisition,
    counts: IntArray,
    noise: FloatArray,
    step: int,
    n: int,
    rng: np.random.Generator,
    pending: IntArray,
) -> IntArray:
    """The same by any maximiser: one search for each proposal, which counts the proposals before it."""
    under_way, proposed = np.array(pending, dtype=np.int64), []
    for _ in range(n):
        worth = _worth(posterior_at, acquisition, counts, noise, step, under_way)
        row = int(search(worth, len(counts), 1, rng)[0])
        under_way[row] += 1
        proposed.append(row)
    return np.asarray(proposed, dtype=np.int64)


def _worth(
    posterior_at: PosteriorAt,
    acquisition: Acquisition,
    counts: IntArray,
    noise: FloatArray,
    step: int,
    under_way: IntArray,
) -> ScoreAt:
    """α at any rows, the evaluations ``under_way`` counted in r_n and in t and fantasised in σ."""
    waiting, reached = np.flatnonzero(under_way), step + int(under_way.sum())

    def worth(rows: IntArray) -> FloatArray:
        # Candidates under way come along, since their outcomes tell about the others; each once, so that draws agree.
        among, places = np.unique(np.concatenate([rows, waiting]), return_inverse=True)
        posterior = imagine(posterior_at(among), under_way[among], noise[among])
        return np.asarray(acquisition(posterior, counts[among] + under_way[among], reached)[places[: len(rows)]])

    return worth
