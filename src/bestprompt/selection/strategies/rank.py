"""Ranking and selection on a Gaussian belief: what to evaluate next, and what further evaluations are worth.

Notation (symbol → name, shape):
    μ, C    mean and covariance of the belief                    → ``View.mean`` (N,), ``View.covariance`` (N, N)
    σ_n²    variance of the next evaluation of candidate n       → ``View.noise``  (N,)
    T − t   evaluations left                                     → ``View.remaining``
    q_n     evaluations candidate n can still have               → ``View.left``  (N,), infinite where items do not end
    l       the leader, argmax μ
    s_n     by how much v_n − v_l may yet turn out to move       → ``prospect``
    E_n     E[(s_n X − (μ_l − μ_n))⁺], X standard normal: what n may yet gain over the leader

Each call settles a duel: the leader against a challenger n drawn with probability ∝ E_n^q, and of the two the one is
evaluated whose answer says more about their difference. Two things adapt to the calls that are left. A challenger
is judged by what m = (T − t)/(ω N) calls could show, s_n = |C_nn − C_nl| / sqrt(C_nn + σ_n²/m) and likewise for calls
to the leader, so that with few calls left no candidate is tried only because it is unknown. And the power is

    q = κ / λ,   λ = (T − t)/N · var(v)/σ²:

few noisy calls left (λ small) make the duel with the most promising challenger the only one worth having; many calls
are spread over all plausible challengers, as top-two sampling does, so that no candidate is dropped for bad luck alone.
"""

from __future__ import annotations

import numpy as np

from bestprompt.acquisition.improvement import expected_excess
from bestprompt.selection.core.views import View
from bestprompt.types import FloatArray, IntArray

KAPPA = 1.0
OMEGA = 1.0
GREEDY = 10.0
FINALISTS = (2, 5, 20)  # how many candidates further calls may be shared among
IMAGINED = 2000
CLEAR = 4.0  # times a bar that the draws, with their error, cannot put a gain below
NO_CALL = 1e-12  # calls to a candidate that can have none: their mean would say nothing


def prospect(view: View, leader: int, calls: float) -> FloatArray:
    """(N,) s_n: how far ``calls`` further calls to n, or to the leader, may move v_n − v_l; 0 for the leader."""
    noise = _noise_of_mean(view.noise, calls, view.left)
    return _prospect(np.diag(view.covariance), view.covariance[:, leader], noise, leader)


def _noise_of_mean(noise: FloatArray, calls: float, left: FloatArray) -> FloatArray:
    """(N,) variance of the mean of ``calls`` further evaluations, or of as many as are ``left`` (N,)."""
    return np.asarray(noise / np.maximum(np.minimum(calls, left), NO_CALL))


def _prospect(variance: FloatArray, shared: FloatArray, noise: FloatArray, leader: int) -> FloatArray:
    """``prospect`` from the diagonal of C, its column of the leader, and the ``noise`` of means of calls; (N,) each."""
    variance = np.maximum(variance, 1e-15)
    raised = np.abs(variance - shared) / np.sqrt(variance + noise)
    lowered = np.abs(variance[leader] - shared) / np.sqrt(variance[leader] + noise[leader])
    moved: FloatArray = np.maximum(raised, lowered)
    moved[leader] = 0.0
    return moved


class Round:
    """The evaluations of one round, each chosen in the knowledge that those before it will have answered.

    Answers are imagined to be the expected ones. Means, and with them the leader, therefore stay as they are, and each
    answer takes u uᵀ from the covariance, u = C e_n / sqrt(C_nn + σ_n²). Duels look at the diagonal and at the leader's
    column alone, which costs O(N) to keep up, and O(N j) to find u after j answers, instead of O(N²).

    Args:
        view: The belief before the round.
        size: Most answers that will be imagined.
    """

    def __init__(self, view: View, size: int) -> None:
        self.view, self.leader, self.answers = view, view.leader, 0
        self.variance = view.covariance.diagonal().copy()
        self.shared = view.covariance[:, self.leader].copy()
        self.left = view.left.copy()
        self._taken = np.empty((size, view.mean.size))
        self._gap = view.mean[self.leader] - view.mean
        self._apart, self._noise = float(view.mean.var()), float(view.noise.mean())

    @property
    def remaining(self) -> int:
        """Calls left after the imagined ones."""
        return self.view.remaining - self.answers

    def covariances(self, candidate: int) -> FloatArray:
        """(N,) covariances of the scores with that of ``candidate`` after the imagined answers."""
        taken = self._taken[: self.answers]
        return np.asarray(self.view.covariance[:, candidate] - taken[:, candidate] @ taken, dtype=np.float64)

    def imagine(self, candidate: int) -> None:
        """Takes ``candidate`` to have answered."""
        reach = self.covariances(candidate)
        step = reach / np.sqrt(reach[candidate] + self.view.noise[candidate])
        self._taken[self.answers] = step
        self.variance -= step * step
        self.shared -= step * step[self.leader]
        self.left[candidate] -= 1.0
        self.answers += 1

    def power(self) -> float:
        """q: how sharply the draw of a challenger favours the most dangerous one."""
        variance = float(np.add.reduce(self.variance)) / self.variance.size + self._apart
        settled = max(self.remaining, 1) * variance / (self.variance.size * self._noise)
        return min(max(KAPPA / max(settled, 1e-12), 1.0), GREEDY)

    def duel(self, rng: np.random.Generator) -> int:
        """The candidate to evaluate next; one that can be evaluated, if there is one."""
        n, leader, noise = self.variance.size, self.leader, self.view.noise
        if n == 1:
            return 0
        power = self.power()
        ahead = max(self.remaining / (OMEGA * n), 1.0)
        moved = _prospect(self.variance, self.shared, _noise_of_mean(noise, ahead, self.left), leader)
        gain = expected_excess(self._gap, moved)
        gain[leader] = 0.0
        most = float(gain.max())
        if most <= 0.0:
            moved[leader] = -1.0
            challenger = int(np.argmax(moved))
        elif power >= GREEDY:
            challenger = int(np.argmax(gain))
        else:
            # What ``rng.choice`` does with probabilities, without its checks, which take longer than all the rest.
            chance = ((gain / most) ** power).cumsum()
            challenger = int((chance / chance[-1]).searchsorted(rng.random(), side="right"))
        shared, own = self.shared[challenger], (self.variance[challenger], self.variance[leader])
        both = (challenger, leader)
        informed = [(shared - v) ** 2 / (v + noise[c]) * (self.left[c] > 0.0) for v, c in zip(own, both, strict=True)]
        chosen = challenger if informed[0] >= informed[1] else leader
        return chosen if self.left[chosen] > 0.0 else int(np.argmax(np.where(self.left > 0.0, self.variance, -1.0)))


def next_candidates(view: View, n: int, rng: np.random.Generator, waiting: IntArray | None = None) -> IntArray:
    """``n`` candidates to evaluate; those ``waiting`` are under way and count as answered."""
    waiting = np.zeros(0, dtype=np.int64) if waiting is None else waiting
    found = Round(view, waiting.size + n)
    for candidate in waiting:
        found.imagine(int(candidate))
    chosen: list[int] = []
    for _ in range(n):
        if chosen:
            found.imagine(chosen[-1])
        chosen.append(found.duel(rng))
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
    is the expected maximum of the moved means less the present maximum, for as many finalists as make it largest.
    """
    if view.mean.size == 1 or calls < 1:
        return 0.0
    ranked = _by_promise(view, calls)
    sizes = sorted({min(size, ranked.size) for size in FINALISTS})
    noise = rng.standard_normal((IMAGINED, sizes[-1]))
    return max(_gain_of_sharing(view, ranked[:size], calls, noise[:, :size]) for size in sizes)


def gains_clearly(view: View, calls: int, least: float) -> bool:
    """Whether ``value_of_more_calls`` is above ``least`` beyond doubt, as it nearly always is before the end.

    Sharing the calls between the leader and its best challenger is worth E[(s X − gap)⁺], s² the variance by which the
    difference of their means will move: no draws. What it falls short of ``CLEAR`` times the bar is left to them.
    """
    if view.mean.size == 1 or calls < 1:
        return False
    pair = _by_promise(view, calls)[:2]
    moved = _movement(view, pair, calls)
    gap = view.mean[pair[:1]] - view.mean[pair[1:]]
    spread = np.sqrt(np.maximum(moved[:1, 0] + moved[1:, 1] - 2.0 * moved[:1, 1], 0.0))
    return float(expected_excess(gap, spread)[0]) > CLEAR * least


def _by_promise(view: View, calls: int) -> IntArray:
    """(N,) the leader, then the others by what ``calls`` to each, or to the leader, may gain."""
    gain = expected_excess(view.mean[view.leader] - view.mean, prospect(view, view.leader, float(calls)))
    order = np.argsort(-gain, kind="stable")
    return np.concatenate([[view.leader], order[order != view.leader]])


def _movement(view: View, finalists: IntArray, calls: int) -> FloatArray:
    """(F, F) covariance by which the means of the ``finalists`` (F,) will move when they share ``calls``."""
    inside = view.covariance[np.ix_(finalists, finalists)]
    error = _noise_of_mean(view.noise, calls / finalists.size, view.left)[finalists]
    return np.asarray(inside @ np.linalg.solve(inside + np.diag(error), inside), dtype=np.float64)


def _gain_of_sharing(view: View, finalists: IntArray, calls: int, noise: FloatArray) -> float:
    """The same for these ``finalists`` (F,), by standard normal ``noise`` (K, F)."""
    moved = _movement(view, finalists, calls)
    values, vectors = np.linalg.eigh(0.5 * (moved + moved.T))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    imagined = view.mean[finalists] + noise @ root.T
    # The same draws with opposite sign halve the error and keep the estimate from being negative by chance.
    mirrored = 2.0 * view.mean[finalists] - imagined
    return max(float(0.5 * (imagined.max(axis=1) + mirrored.max(axis=1)).mean() - view.mean.max()), 0.0)
