"""Ranking and selection on a Gaussian belief: what to evaluate next, and what further evaluations are worth.

Notation (symbol → name, shape):
    μ, C    mean and covariance of the belief                    → ``View.mean`` (N,), ``View.covariance`` (N, N)
    σ_n²    variance of the next evaluation of candidate n       → ``View.noise``  (N,)
    T − t   evaluations left                                     → ``View.remaining``
    l       the leader, argmax μ
    s_n     by how much v_n − v_l may yet turn out to move       → ``prospect``
    E_n     E[(s_n X − (μ_l − μ_n))⁺], X standard normal: what n may yet gain over the leader

Each call settles a duel: the leader against a challenger n drawn with probability ∝ E_n^q, and of the two the one is
evaluated whose answer says more about their difference. Two things adapt to the calls that are left. A challenger
is judged by what m = (T − t)/(ω N) calls could show, s_n = |C_nn − C_nl| / sqrt(C_nn + σ_n²/m) and likewise for calls
to the leader, so that with few calls nobody is tried merely because nothing is known about him. And the power is

    q = κ / λ,   λ = (T − t)/N · var(v)/σ²:

few noisy calls left (λ small) make the duel with the most promising challenger the only one worth having; many calls
are spread over all plausible challengers, as top-two sampling does, so that nobody is dropped on bad luck.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from bestprompt.types import FloatArray, IntArray

KAPPA = 1.0
OMEGA = 1.0
GREEDY = 10.0
FINALISTS = 20
IMAGINED = 2000


@dataclass(frozen=True, slots=True)
class View:
    """All a decision may look at."""

    mean: FloatArray
    covariance: FloatArray
    noise: FloatArray
    remaining: int

    @property
    def leader(self) -> int:
        """The candidate with the highest mean."""
        return int(np.argmax(self.mean))


def expected_excess(gap: FloatArray, spread: FloatArray) -> FloatArray:
    """E[(X − gap)⁺] for X ~ N(0, spread²), elementwise; max(−gap, 0) where there is no spread."""
    safe = np.maximum(spread, 1e-12)
    z = gap / safe
    value = safe * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) - gap * ndtr(-z)
    return np.asarray(np.where(spread > 1e-12, np.maximum(value, 0.0), np.maximum(-gap, 0.0)))


def prospect(view: View, leader: int, calls: float) -> FloatArray:
    """(N,) s_n: how far ``calls`` further calls to n, or to the leader, may move v_n − v_l; 0 for the leader."""
    variance, shared = np.maximum(np.diag(view.covariance), 1e-15), view.covariance[:, leader]
    raised = np.abs(variance - shared) / np.sqrt(variance + view.noise / calls)
    lowered = np.abs(variance[leader] - shared) / np.sqrt(variance[leader] + view.noise[leader] / calls)
    moved = np.maximum(raised, lowered)
    moved[leader] = 0.0
    return np.asarray(moved, dtype=np.float64)


def duel_power(view: View) -> float:
    """q: how sharply the draw of a challenger favours the most dangerous one."""
    variance = float(np.diag(view.covariance).mean() + view.mean.var())
    settled = max(view.remaining, 1) * variance / (view.mean.size * float(view.noise.mean()))
    return float(np.clip(KAPPA / max(settled, 1e-12), 1.0, GREEDY))


def duel(view: View, rng: np.random.Generator) -> int:
    """The candidate to evaluate next."""
    if view.mean.size == 1:
        return 0
    leader, power = view.leader, duel_power(view)
    moved = prospect(view, leader, max(view.remaining / (OMEGA * view.mean.size), 1.0))
    gain = expected_excess(view.mean[leader] - view.mean, moved)
    gain[leader] = 0.0
    if gain.max() <= 0.0:
        moved[leader] = -1.0
        challenger = int(np.argmax(moved))
    elif power >= GREEDY:
        challenger = int(np.argmax(gain))
    else:
        chance = (gain / gain.max()) ** power
        challenger = int(rng.choice(chance.size, p=chance / chance.sum()))
    pair = np.array([challenger, leader])
    reach = view.covariance[pair, leader] - view.covariance[pair, challenger]
    informed = reach**2 / (view.covariance[pair, pair] + view.noise[pair])
    return int(pair[np.argmax(informed)])


def fantasised(view: View, candidate: int) -> View:
    """The belief as it will be once ``candidate`` has answered, its answer taken to be the expected one."""
    reach = view.covariance[:, candidate]
    covariance = view.covariance - np.outer(reach, reach / (reach[candidate] + view.noise[candidate]))
    return View(view.mean, covariance, view.noise, view.remaining - 1)


def next_candidates(view: View, n: int, rng: np.random.Generator) -> IntArray:
    """``n`` candidates to evaluate, each chosen in the knowledge that those before it will have answered."""
    chosen = []
    for _ in range(n):
        chosen.append(duel(view, rng))
        if len(chosen) < n:
            view = fantasised(view, chosen[-1])
    return np.array(chosen, dtype=np.int64)


def value_of_next_call(view: View) -> float:
    """Score expected to be gained per call by the best investment in one candidate.

    The gain of m calls to one candidate, E_n of ``prospect``, per call at the best m: a single noisy call is often
    worth nothing by itself.
    """
    if view.mean.size == 1:
        return 0.0
    leader, best = view.leader, 0.0
    others = np.arange(view.mean.size) != leader
    for m in np.unique(np.geomspace(1, max(view.remaining, 1), 7).astype(np.int64)):
        gain = expected_excess(view.mean[leader] - view.mean, prospect(view, leader, float(m)))
        best = max(best, float(gain[others].max()) / int(m))
    return best


def value_of_more_calls(view: View, calls: int, rng: np.random.Generator) -> float:
    """Score expected to be gained by ``calls`` further calls shared among the most plausible candidates.

    The means of the finalists A will move by a normal amount with covariance C_AA (C_AA + diag(σ²/m))⁻¹ C_AA; the gain
    is the expected maximum of the moved means less the present maximum.
    """
    if view.mean.size == 1 or calls < 1:
        return 0.0
    gain = expected_excess(view.mean[view.leader] - view.mean, prospect(view, view.leader, float(calls)))
    order = np.argsort(-gain, kind="stable")
    finalists = np.concatenate([[view.leader], order[order != view.leader][: FINALISTS - 1]])
    inside = view.covariance[np.ix_(finalists, finalists)]
    noise = np.diag(view.noise[finalists] * finalists.size / calls)
    moved = inside @ np.linalg.solve(inside + noise, inside)
    values, vectors = np.linalg.eigh(0.5 * (moved + moved.T))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    imagined = view.mean[finalists] + rng.standard_normal((IMAGINED, finalists.size)) @ root.T
    # The same draws with opposite sign halve the error and keep the estimate from being negative by chance.
    mirrored = 2.0 * view.mean[finalists] - imagined
    return max(float(0.5 * (imagined.max(axis=1) + mirrored.max(axis=1)).mean() - view.mean.max()), 0.0)
