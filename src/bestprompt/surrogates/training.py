"""What the network surrogates share: units, batches of fixed shape, chunks of training, and draws at any rows.

Notation (paper symbol → name):
    z          soft prompt, centred and scaled to unit mean square coordinate → ``Units.rows``    (n, D)
    v          score, centred and scaled by its spread                       → ``Batch.scores``
    τ          idiosyncratic standard deviation in those units               → ``nugget``
    r_n/σ_n²   weight of a mean score in those units                         → ``Batch.precision``
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bestprompt.errors import SurrogateError
from bestprompt.kriging.inputs import Observed
from bestprompt.kriging.padding import row_shape
from bestprompt.surrogates.inference import Batch, Descent, Objective, descend
from bestprompt.types import FloatArray, Posterior

# A mean known to a hundredth of the spread is exact as far as a network in single precision is concerned.
MOST_PRECISE = 1e4


@dataclass(frozen=True, slots=True)
class Units:
    """The affine maps between the user's units and those in which a unit prior is sensible."""

    centre: FloatArray
    scale: float
    trend: float
    spread: float

    @classmethod
    def of(cls, Z: FloatArray, data: Observed, standardise: bool) -> Units:
        """From all soft prompts (N, D) and the evaluated scores; the identity if not ``standardise``."""
        if not standardise:
            return cls(np.zeros(Z.shape[1]), 1.0, 0.0, 1.0)
        centre = Z.mean(axis=0)
        return cls(centre, float(np.sqrt(((Z - centre) ** 2).mean())) or 1.0, data.centre, float(np.sqrt(data.spread)))

    def serve(self, newer: Units) -> bool:
        """Whether a state expressed in these units is worth continuing, given what the units would be now.

        A warm-up of equal scores, say, gives a spread far too small; once scores differ the fit must start afresh.
        """
        return 0.5 < newer.spread / self.spread < 2.0 and abs(newer.trend - self.trend) < self.spread

    def rows(self, Z: FloatArray) -> FloatArray:
        """(n, D) scaled soft prompts."""
        return (np.asarray(Z, dtype=np.float64) - self.centre) / self.scale

    def posterior(self, draws: np.ndarray, nugget: float = 0.0) -> Posterior:
        """`eq.approximate` from draws (K, n) in scaled units: sample mean, and std with K − 1.

        A ``nugget`` τ widens the draws around their mean to variance σ̂² + τ²: what the surface f cannot express of a
        candidate. No row is treated differently for having been evaluated.
        """
        values = self.trend + self.spread * np.asarray(draws, dtype=np.float64)
        mean, std = values.mean(axis=0), values.std(axis=0, ddof=1)
        if nugget == 0.0:
            return Posterior(mean, std, values)
        wide = np.sqrt(std**2 + (self.spread * nugget) ** 2)
        stretch = np.divide(wide, std, out=np.ones_like(std), where=std > 0)
        return Posterior(mean, wide, mean + (values - mean) * stretch)


@dataclass(frozen=True, slots=True)
class Pace:
    """How long and how fast to climb.

    Attributes:
        steps: Adam steps of a cold fit.
        warm_steps: Adam steps when continuing from the last round, and of one compiled chunk.
        rate: First learning rate, cold; falls to a twentieth.
        warm_rate: The same, warm.
        batch_rows: Rows per step; more evaluated rows than this are subsampled.
    """

    steps: int
    warm_steps: int
    rate: float
    warm_rate: float
    batch_rows: int

    def rows(self, n_candidates: int) -> int:
        """Rows of a batch: enough for all candidates, one of few sizes so that few programs are compiled."""
        return min(row_shape(n_candidates), self.batch_rows)


def full_batch(units: Units, n_rows: int, data: Observed) -> Batch:
    """All evaluated rows in a batch of ``n_rows``; unused rows have weight zero."""
    Z = np.zeros((n_rows, data.Z.shape[1]), np.float32)
    scores, precision = np.zeros(n_rows, np.float32), np.zeros(n_rows, np.float32)
    m = len(data.rows)
    Z[:m] = units.rows(data.Z)
    scores[:m] = (data.scores - units.trend) / units.spread
    precision[:m] = np.minimum(units.spread**2 / data.variances, MOST_PRECISE)
    return Batch(Z, scores, precision)


def chunks(units: Units, data: Observed, size: int) -> Iterator[Batch]:
    """All evaluated rows in batches of ``size``, the last filled up with rows of weight zero."""
    for first in range(0, len(data.rows), size):
        yield full_batch(units, size, data.take(np.arange(first, min(first + size, len(data.rows)))))


def batches(units: Units, data: Observed, steps: int, size: int, rng: np.random.Generator) -> Batch:
    """``steps`` batches of ``size`` rows: all m evaluated rows if they fit, else a random choice of weight m/size.

    A fixed size makes the cost of a round, and its compiled program, independent of N and of the number evaluated.
    """
    m = len(data.rows)
    if m <= size:
        return Batch(*(np.broadcast_to(x, (steps, *x.shape)) for x in full_batch(units, size, data)))
    chosen = rng.permuted(np.broadcast_to(np.arange(m), (steps, m)), axis=1)[:, :size]
    every = full_batch(units, m, data)
    return Batch(every.Z[chosen], every.scores[chosen], every.precision[chosen] * np.float32(m / size))


def train(
    objective: Objective,
    state: Descent,
    units: Units,
    data: Observed,
    size: int,
    pace: Pace,
    warm: bool,
    rng: np.random.Generator,
) -> tuple[Descent, float]:
    """Calls one compiled program of ``pace.warm_steps`` Adam steps once if ``warm``, else as often as needed.

    Returns:
        The new state and the mean loss of the last chunk.
    """
    chunk, n_chunks = pace.warm_steps, 1 if warm else max(1, pace.steps // pace.warm_steps)
    first = pace.warm_rate if warm else pace.rate
    rates = (first * np.linspace(1.0, 0.05, chunk * n_chunks)).astype(np.float32).reshape(n_chunks, chunk)
    loss = np.float32(np.nan)
    for some_rates in rates:
        noise = objective.noise(rng, state.params, chunk)
        state, losses = descend(objective, state, batches(units, data, chunk, size, rng), noise, some_rates)
        loss = np.asarray(losses).mean()
    if not np.isfinite(loss):
        raise SurrogateError("training diverged: the loss is not finite", {"loss": float(loss)})
    return state, float(loss)
