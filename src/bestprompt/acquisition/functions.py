"""How much the next evaluation of each candidate is worth.

Notation (paper symbol → name):
    μ_t, σ_t      posterior mean and std                       → ``posterior.mean``, ``posterior.std``  (n,)
    r_n(t)        evaluations so far                           → ``counts``                             (n,)
    t             evaluations of all candidates so far         → ``step``
    β_t           non-decreasing sequence                      → ``Beta``: step → float
    γ(m)          decreasing to 0                              → ``Gamma``: counts → (n,)
    α_t           μ_t + β_t (σ_t + γ(r_n))  [eq.acquisition]   → ``ModifiedUCB``

Random acquisitions key their randomness by (seed, step), never by call order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bestprompt.acquisition.base import Occasion
from bestprompt.acquisition.improvement import expected_excess
from bestprompt.errors import ConfigError
from bestprompt.rng import stream
from bestprompt.types import Acquisition, FloatArray, IntArray, Posterior

Beta = Callable[[int], float]
Gamma = Callable[[IntArray], FloatArray]

PAPER_GAMMA, SCALED_GAMMA = 2.0, 0.1


@dataclass(frozen=True, slots=True)
class LogBeta:
    """β_t = b sqrt(2 ln t) (b = 1 in the paper); tends to infinity, as Theorem 1 asks."""

    factor: float = 1.0

    def __call__(self, step: int) -> float:
        """β at ``step``; 0 for t ≤ 1."""
        return self.factor * float(np.sqrt(2.0 * np.log(max(step, 1))))


@dataclass(frozen=True, slots=True)
class CountGamma:
    """γ(m) = c / sqrt(m + offset).

    The paper has c = 2 and offset 0, so γ(0) = ∞: every unevaluated candidate comes before any evaluated one.
    ``at_zero`` stands for that infinity, large enough to come first and small enough to leave the order among the
    unevaluated to μ + βσ. The default, c / sqrt(1 + m) with c in units of the score's spread, needs no such thing.
    """

    factor: float
    offset: float = 1.0
    at_zero: float = 1e4

    def __call__(self, counts: IntArray) -> FloatArray:
        """γ at ``counts`` (n,)."""
        shifted = np.asarray(counts, dtype=np.float64) + self.offset
        finite = shifted > 0
        falling = self.factor / np.sqrt(np.where(finite, shifted, 1.0))
        return np.where(finite, falling, self.at_zero * np.sign(self.factor))


@dataclass(frozen=True, slots=True)
class ModifiedUCB:
    """M-UCB: α = μ + β_t (σ + γ(r)); the default bonus suits scores in [0, 1] that vary by about .2 over candidates."""

    beta: Beta = LogBeta(0.5)
    gamma: Gamma = CountGamma(0.02)

    @classmethod
    def paper(cls) -> ModifiedUCB:
        """The paper's experiment: β_t = sqrt(2 ln t), γ(m) = 2 m^(−1/2)."""
        return cls(LogBeta(1.0), CountGamma(PAPER_GAMMA, offset=0.0))

    @classmethod
    def scaled(cls, beta: float, gamma: float, spread: float = 1.0) -> ModifiedUCB:
        """β_t = ``beta`` sqrt(2 ln t) and γ(m) = ``gamma``·``spread`` / sqrt(1 + m): what the tuner chooses from."""
        return cls(LogBeta(beta), CountGamma(gamma * spread))

    @classmethod
    def on(cls, occasion: Occasion) -> Acquisition:
        """The tuned bonus, or what the user gave and else the mode's own."""
        if occasion.tuned is not None:
            return occasion.tuned
        beta = 1.0 if occasion.beta is None else occasion.beta
        if occasion.paper:
            return cls(LogBeta(beta), CountGamma(PAPER_GAMMA if occasion.gamma is None else occasion.gamma, offset=0.0))
        return cls.scaled(beta, SCALED_GAMMA if occasion.gamma is None else occasion.gamma, occasion.scale)

    def __call__(self, posterior: Posterior, counts: IntArray, step: int) -> FloatArray:
        """(n,) α_t."""
        return np.asarray(posterior.mean + self.beta(step) * (posterior.std + self.gamma(counts)))


@dataclass(frozen=True, slots=True)
class UCB:
    """μ + β σ with constant β."""

    beta: float = 1.5

    @classmethod
    def on(cls, occasion: Occasion) -> Acquisition:
        """With the β that the user gave."""
        return cls() if occasion.beta is None else cls(occasion.beta)

    def __call__(self, posterior: Posterior, counts: IntArray, step: int) -> FloatArray:
        """(n,) upper confidence bounds."""
        return np.asarray(posterior.mean + self.beta * posterior.std)


@dataclass(frozen=True, slots=True)
class ExpectedImprovement:
    """E max(v − v*, 0) (`eq.ei`), v normal with the posterior's mean and std.

    Attributes:
        best: v*; ``None`` takes the best posterior mean among the rows asked, since a noisy best observation
            overestimates.
    """

    best: float | None = None

    @classmethod
    def on(cls, occasion: Occasion) -> Acquisition:
        """Over the best evaluated candidate."""
        return cls(best=occasion.best())

    def __call__(self, posterior: Posterior, counts: IntArray, step: int) -> FloatArray:
        """(n,) expected improvements; max(μ − v*, 0) where σ = 0."""
        best = float(posterior.mean.max()) if self.best is None else self.best
        return expected_excess(best - posterior.mean, posterior.std)


def _draws(posterior: Posterior, needed: int) -> FloatArray:
    if posterior.draws is None or len(posterior.draws) < needed:
        raise ConfigError(
            f"Thompson sampling needs at least {needed} joint posterior draws: raise the surrogate's n_draws"
        )
    return posterior.draws


@dataclass(frozen=True, slots=True)
class Thompson:
    """One posterior draw of the whole surface, chosen by (seed, step).

    Its maximiser has the probability of being best.
    """

    seed: int = 0

    @classmethod
    def on(cls, occasion: Occasion) -> Acquisition:
        """With the run's seed."""
        return cls(occasion.seed)

    def __call__(self, posterior: Posterior, counts: IntArray, step: int) -> FloatArray:
        """(n,) the draw."""
        draws = _draws(posterior, 1)
        return np.asarray(draws[stream(self.seed, "thompson", step).integers(len(draws))])


@dataclass(frozen=True, slots=True)
class TopTwoThompson:
    """Top-two Thompson sampling: the leader of a draw, or a challenger with probability 1 − ``leader``.

    The challenger is the best of the next draw that disagrees; if all draws agree on the leader, it is the runner-up of
    the first draw.
    """

    leader: float = 0.5
    seed: int = 0

    @classmethod
    def on(cls, occasion: Occasion) -> Acquisition:
        """With the run's seed."""
        return cls(seed=occasion.seed)

    def __call__(self, posterior: Posterior, counts: IntArray, step: int) -> FloatArray:
        """(n,) values whose maximiser is the candidate to evaluate."""
        draws = _draws(posterior, 2)
        rng = stream(self.seed, "top-two", step)
        shuffled = draws[rng.permutation(len(draws))]
        first = shuffled[0]
        if rng.random() < self.leader or first.size == 1:
            return np.asarray(first)
        best = int(first.argmax())
        challengers = np.flatnonzero(shuffled.argmax(axis=1) != best)
        if challengers.size:
            return np.asarray(shuffled[challengers[0]])
        return np.asarray(np.where(np.arange(first.size) == best, first.min() - 1.0, first))


@dataclass(frozen=True, slots=True)
class Open:
    """An acquisition over candidates that can be evaluated ``most`` times each: those that were come last."""

    inner: Acquisition
    most: float

    def __call__(self, posterior: Posterior, counts: IntArray, step: int) -> FloatArray:
        """The inner acquisition, lower than anywhere else where nothing is left to ask."""
        values = self.inner(posterior, counts, step)
        ended = np.asarray(counts) >= self.most
        return np.where(ended, values.min() - np.ptp(values) - 1.0, values) if ended.any() else values
