"""Ranking-and-selection contestants, each a function (problem, budget, rng) -> selected candidate.

They see only candidates and answers; those that model the score (top-two Thompson, KG) use the conjugate belief that
suits a score in [0, 1] (Beta, or normal with an estimated common variance). ``uniform`` and the others select by
highest posterior or observed mean as their authors do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

from selection_families import Problem

Contestant = Callable[[Problem, int, np.random.Generator], int]


class _Tally:
    """Counts, sums and squares; asks the problem for the next answer of a candidate."""

    def __init__(self, problem: Problem) -> None:
        n = len(problem.truth)
        self.problem, self.counts, self.sums, self.squares = problem, np.zeros(n), np.zeros(n), np.zeros(n)

    def look(self, candidate: int) -> float:
        value = self.problem.score(candidate, int(self.counts[candidate]))
        self.counts[candidate] += 1
        self.sums[candidate] += value
        self.squares[candidate] += value * value
        return value

    @property
    def means(self) -> np.ndarray:
        return np.where(self.counts > 0, self.sums / np.maximum(self.counts, 1), -np.inf)


def _argmax(values: np.ndarray, rng: np.random.Generator) -> int:
    best = np.flatnonzero(values >= values.max() - 1e-12)
    return int(best[rng.integers(best.size)])


def random_search(problem: Problem, budget: int, rng: np.random.Generator) -> int:
    """Candidates at random, highest observed mean: the paper's baseline."""
    tally = _Tally(problem)
    for c in rng.integers(len(problem.truth), size=budget):
        tally.look(int(c))
    return _argmax(tally.means, rng)


def uniform(problem: Problem, budget: int, rng: np.random.Generator) -> int:
    """Round robin in random order, highest observed mean."""
    tally, n = _Tally(problem), len(problem.truth)
    order = rng.permutation(n)
    for t in range(budget):
        tally.look(int(order[t % n]))
    return _argmax(tally.means, rng)


def sequential_halving(problem: Problem, budget: int, rng: np.random.Generator) -> int:
    """Halves the survivors in ceil(log2 N) rounds of equal budget, keeping all answers; leftover calls are used.

    With fewer calls than candidates it starts from a random subset it can afford to evaluate once a round.
    """
    tally, n = _Tally(problem), len(problem.truth)
    start = n
    while start > 2 and budget < start * 2:
        start = (start + 1) // 2
    alive = rng.permutation(n)[:start]
    rounds = max(1, int(np.ceil(np.log2(start))))
    spent = 0
    for k in range(rounds):
        each = max(1, (budget - spent) // (rounds - k) // len(alive))
        for c in alive:
            for _ in range(each):
                if spent < budget:
                    tally.look(int(c))
                    spent += 1
        shuffled = rng.permutation(alive)
        ranked = shuffled[np.argsort(-tally.means[shuffled], kind="stable")]
        alive = ranked[: max(1, (len(alive) + 1) // 2)]
        if len(alive) == 1:
            break
    while spent < budget and len(alive) > 1:
        tally.look(int(alive[spent % len(alive)]))
        spent += 1
    return int(alive[np.argmax(tally.means[alive])])


def ocba(problem: Problem, budget: int, rng: np.random.Generator) -> int:
    """Optimal computing budget allocation, sequential, two first looks at each candidate where affordable."""
    tally, n = _Tally(problem), len(problem.truth)
    first = 2 if budget >= 2 * n else 1
    for c in np.tile(rng.permutation(n), first)[:budget]:
        tally.look(int(c))
    for _ in range(budget - int(tally.counts.sum())):
        means = tally.means
        within = tally.squares.sum() - (tally.sums**2 / np.maximum(tally.counts, 1)).sum()
        pooled = max(within / max(tally.counts.sum() - n, 1.0), 0.01) if first == 2 else 0.2
        raw = tally.squares - tally.sums**2 / np.maximum(tally.counts, 1)
        variance = (np.maximum(raw, 0.0) + 4 * pooled) / (np.maximum(tally.counts - 1, 0) + 4)
        best = _argmax(means, rng)
        gap = np.maximum(means[best] - means, 0.01)
        weight = variance / gap**2
        weight[best] = 0.0
        weight[best] = np.sqrt(variance[best] * (weight**2 / variance).sum())
        tally.look(int(np.argmax(weight / weight.sum() * (tally.counts.sum() + 1) - tally.counts)))
    return _argmax(tally.means, rng)


def top_two_thompson(problem: Problem, budget: int, rng: np.random.Generator) -> int:
    """Top-two Thompson sampling (coin ½) on independent Beta beliefs, highest posterior mean."""
    n = len(problem.truth)
    a, b, tally = np.ones(n), np.ones(n), _Tally(problem)
    for _ in range(budget):
        first = int(np.argmax(rng.beta(a, b)))
        if rng.random() < 0.5:
            for _ in range(50):
                second = int(np.argmax(rng.beta(a, b)))
                if second != first:
                    first = second
                    break
        value = tally.look(first)
        a[first] += value
        b[first] += 1.0 - value
    return _argmax(a / (a + b), rng)


def _knowledge_gradient(problem: Problem, budget: int, rng: np.random.Generator, fitted: bool) -> int:
    n = len(problem.truth)
    level, spread, noise, tally = 0.5, 0.06, 0.2, _Tally(problem)
    mean, variance = np.full(n, level), np.full(n, spread)
    for t in range(budget):
        moved = variance / np.sqrt(variance + noise)
        order = np.partition(mean, -2)
        rival = np.where(mean >= order[-1], order[-2], order[-1])
        z = -np.abs(mean - rival) / moved
        worth = moved * (np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) + z * ndtr(z))
        c = _argmax(worth, rng)
        value = tally.look(c)
        gain = variance[c] / (variance[c] + noise)
        mean[c] += gain * (value - mean[c])
        variance[c] *= 1.0 - gain
        if t % 25 == 24:
            spare = float(np.maximum(tally.counts - 1, 0).sum())
            within = float((tally.squares - tally.sums**2 / np.maximum(tally.counts, 1)).sum())
            noise = (within + 4 * 0.2) / (spare + 4)
            if fitted:
                level, spread = _fitted_prior(tally, level, spread, noise)
                variance = 1.0 / (1.0 / spread + tally.counts / noise)
                mean = variance * (level / spread + tally.sums / noise)
    return _argmax(mean, rng)


def _fitted_prior(tally: _Tally, level: float, spread: float, noise: float) -> tuple[float, float]:
    """Mean and variance of the candidates' scores by a few steps of expectation-maximisation from the present ones."""
    seen = tally.counts > 0
    counts, sums = tally.counts[seen], tally.sums[seen]
    for _ in range(10):
        variance = 1.0 / (1.0 / spread + counts / noise)
        mean = variance * (level / spread + sums / noise)
        level = float(mean.mean())
        spread = float((((mean - level) ** 2 + variance).sum() + 0.02) / (mean.size + 1.0))
    return level, spread


def knowledge_gradient(problem: Problem, budget: int, rng: np.random.Generator) -> int:
    """Knowledge gradient on independent normal beliefs with a common, running noise estimate.

    Its prior N(0.5, 0.06) is set by hand and happens to be close to how the families draw true scores (mean 0.44,
    variance 0.04 before sampling noise): nearly an oracle's.
    """
    return _knowledge_gradient(problem, budget, rng, fitted=False)


def knowledge_gradient_fitted(problem: Problem, budget: int, rng: np.random.Generator) -> int:
    """The same with the prior's mean and variance fitted to the answers (empirical Bayes) every 25 calls."""
    return _knowledge_gradient(problem, budget, rng, fitted=True)


CONTESTANTS: dict[str, Contestant] = {
    "random": random_search,
    "uniform": uniform,
    "sequential halving": sequential_halving,
    "OCBA": ocba,
    "top-two Thompson": top_two_thompson,
    "KG": knowledge_gradient,
    "KG, prior fitted": knowledge_gradient_fitted,
}
