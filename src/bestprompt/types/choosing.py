"""The candidates, what is observed and believed of them, and the parts that choose.

Notation (paper symbol → name):
    N      number of candidate prompts                 → ``n_candidates``
    v̂      observed score h(ŷ, y) of one evaluation    → ``Observation.score``
    r_n    evaluations of candidate n so far           → ``Evidence.counts``  (N,)
    v̄_n    mean observed score of candidate n          → ``Evidence.means``   (N,)
    σ_n²   variance of one evaluation of candidate n   → ``Evidence.noise``   (N,)
    μ, σ   posterior mean and standard deviation       → ``Posterior.mean``, ``Posterior.std``  (n,)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SoftPromptSet:
    """The candidate prompts with their coordinates; row n of each field belongs together (z_n ↔ X_n ↔ text).

    Attributes:
        prompts: N distinct texts.
        Z: (N, D) soft prompts, what the surrogates see.
        X: (N, D~) latent vectors, or ``None`` where the candidates did not come from a latent space. A candidate that
            was added without a place there has a row of NaN.
        parents: (N,) index of the candidate each was moved from, -1 for an example or a given prompt.
        sources: (N,) where each came from: ``"example"``, ``"latent"``, ``"file"``, ``"rewrite"``,
            ``"proposed"`` (by a source of the user's own), or one of ``ADDED``; or the tool and the file that it was
            read from, as ``"GEPA: my-run"`` and ``"file: ideas.txt"``; with ``DEMONSTRATED`` behind it if pairs are
            shown.
        details: Figures worth reporting, e.g. explained variance and acceptance history.
        models: (N,) name of the model that answers each, where a run compares several; else empty.
    """

    prompts: tuple[str, ...]
    Z: FloatArray
    X: FloatArray | None
    parents: IntArray
    sources: tuple[str, ...]
    details: Mapping[str, Any] = field(default_factory=dict)
    models: tuple[str, ...] = ()


DEMONSTRATED = " + demonstrations"  # behind the source of a candidate whose prompt shows pairs
# Sources of candidates that are added while a run goes on: found in the latent space, or written by a model.
REFINED, REFLECTED, CROSSED, RESTYLED = "refined", "reflected", "crossed", "restyled"
WRITTEN_SOURCES = (REFLECTED, CROSSED, RESTYLED)
ADDED = frozenset({REFINED, *WRITTEN_SOURCES})


@dataclass(frozen=True, slots=True)
class NewCandidate:
    """A candidate to be added to a set.

    Attributes:
        prompt: The text.
        parent: The candidate it was made from.
        z: Its coordinates: (D,), or (D + 1,) where it needs a direction of its own.
        x: (D~,) its latent vector, if it has one.
        source: One of ``ADDED``.
    """

    prompt: str
    parent: int
    z: FloatArray
    x: FloatArray | None
    source: str = REFINED


@dataclass(frozen=True, slots=True)
class Evidence:
    """Sufficient statistics of all evaluations for a Gaussian likelihood with known noise: fixed shape (N,)."""

    counts: IntArray
    means: FloatArray
    noise: FloatArray

    @property
    def precision(self) -> FloatArray:
        """(N,) r_n / σ_n², the weight of each mean; zero where nothing was evaluated."""
        return self.counts / self.noise


@dataclass(frozen=True, slots=True)
class Posterior:
    """Belief about the mean scores of n candidates.

    Attributes:
        mean: (n,)
        std: (n,)
        draws: (K, n) joint posterior draws, where the surrogate makes them.
    """

    mean: FloatArray
    std: FloatArray
    draws: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """Evaluate candidate ``candidate`` for the ``replication``-th time (zero-based)."""

    candidate: int
    replication: int


@dataclass(frozen=True, slots=True)
class Observation:
    """The score of one proposal."""

    candidate: int
    replication: int
    score: float


class FittedSurrogate(Protocol):
    """A surrogate that has seen the evidence."""

    @property
    def diagnostics(self) -> Mapping[str, float]: ...

    def posterior(self, Z: FloatArray) -> Posterior:
        """Posterior at any rows ``Z`` (n, D)."""
        ...


class Surrogate(Protocol):
    """A frozen recipe; ``fit`` returns a new object and changes nothing.

    To be recorded with a run, an object needs a ``fingerprint`` besides: a text that names it and its settings.
    """

    def fit(
        self, Z: FloatArray, evidence: Evidence, rng: np.random.Generator, previous: FittedSurrogate | None = None
    ) -> FittedSurrogate:
        """Belief about the score surface after seeing ``evidence`` at the rows of ``Z`` (N, D).

        ``previous`` is the fit of the round before, with which this one may begin; it may be of no use, or of another
        kind, and is then passed over.

        Raises:
            SurrogateError: The evidence cannot be used, or the fit failed.
        """
        ...


@runtime_checkable
class Replaceable(Protocol):
    """A surrogate whose fit may fail by chance, and which can say what fits in its place."""

    def stand_in(self) -> Surrogate | None:
        """The surrogate that stands in; ``None`` where none is needed."""
        ...


class Acquisition(Protocol):
    """How much an evaluation of each candidate is worth."""

    def __call__(self, posterior: Posterior, counts: IntArray, step: int) -> FloatArray:
        """(n,) worth of each, given the posterior, the evaluations (n,) of each so far, and of all candidates."""
        ...


class Maximizer(Protocol):
    """Finds the candidates worth most, asking for the acquisition only where it looks."""

    def __call__(
        self, score_at: Callable[[IntArray], FloatArray], n_candidates: int, n: int, rng: np.random.Generator
    ) -> IntArray:
        """(n,) candidates; ``score_at(rows)`` is the acquisition at ``rows`` (k,)."""
        ...
