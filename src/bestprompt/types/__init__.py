"""The values that travel between the layers: plain frozen dataclasses and small protocols, no behaviour of their own.

Notation (paper symbol → name):
    N      number of candidate prompts                 → ``n_candidates``
    x, y   input and reference of a baseline pair      → ``Pair.input``, ``Pair.references``
    ŷ      the model's output                          → ``Completion.text``
    v̂      observed score h(ŷ, y) of one evaluation    → ``Observation.score``
    r_n    evaluations of candidate n so far           → ``Evidence.counts``  (N,)
    v̄_n    mean observed score of candidate n          → ``Evidence.means``   (N,)
    σ_n²   variance of one evaluation of candidate n   → ``Evidence.noise``   (N,)
    μ, σ   posterior mean and standard deviation       → ``Posterior.mean``, ``Posterior.std``  (n,)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bestprompt.errors import LMError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MOST_CHARACTERS = 100_000  # of one answer


def is_text(text: str) -> bool:
    """Whether ``text`` consists of whole characters; half a surrogate pair can be neither sent nor stored."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# ------------------------------------------------------------------------------------------------------------- tasks
@dataclass(frozen=True, slots=True)
class Pair:
    """One baseline pair (x_m, y_m).

    Attributes:
        input: The text x_m put into the template.
        references: Right answers, at least one; a score against several is the best of them. A plain text is one.
        meta: Anything a scorer may want besides, e.g. ``{"options": ["cat", "horse"]}``.
    """

    input: str
    references: tuple[str, ...]
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A text is a sequence of letters, so that one right answer given as plain text would pass for several.
        given: object = self.references
        object.__setattr__(self, "references", (given,) if isinstance(given, str) else tuple(self.references))

    @property
    def reference(self) -> str:
        """The first right answer."""
        return self.references[0]


# ---------------------------------------------------------------------------------------------------- language model
@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that decides a model's answer; two equal requests with equal seeds are the same call.

    ``model`` names who is asked where a run compares several models; empty where there is one.
    """

    messages: tuple[Message, ...]
    max_tokens: int = 32
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    model: str = field(default="", repr=False)  # a model sees it empty, and caches know requests by their repr

    def as_record(self) -> dict[str, Any]:
        """As it is written to a record: an empty ``model`` is left out, as in records from before there was one."""
        # Spelt out, because ``asdict`` copies each value, which for all evaluations of a run takes a while.
        values = {
            "messages": tuple({"role": each.role, "content": each.content} for each in self.messages),
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": self.seed,
            "stop": self.stop,
        }
        return {**values, "model": self.model} if self.model else values


@dataclass(frozen=True, slots=True)
class Usage:
    """What an evaluation, or a part of it, consumed."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer to one request; of an endless one, as much as anybody reads."""

    text: str
    usage: Usage = Usage(calls=1)
    latency: float = 0.0
    finish_reason: str = "stop"

    def __post_init__(self) -> None:
        # Here and not where it is stored, so that what is scored is what is recorded and shown.
        if len(self.text) > MOST_CHARACTERS:
            object.__setattr__(self, "text", self.text[:MOST_CHARACTERS])
            object.__setattr__(self, "finish_reason", "length")


@runtime_checkable
class LanguageModel(Protocol):
    """A language model: synchronous, thread-safe, batch in and batch out.

    Attributes:
        fingerprint: Identifies model and settings that change its answers; recorded with each run.
        name: Short human name, e.g. ``"SmolLM2-135M-Instruct"``.
        batch_size: Requests worth sending in one ``complete`` call.
        concurrency: ``complete`` calls worth having under way at once.
    """

    @property
    def fingerprint(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def concurrency(self) -> int: ...

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        """Answers in the order of the requests; a request that failed holds its error, the others still stand."""
        ...

    def max_prompt_tokens(self, request: Request) -> int:
        """An upper bound on the prompt tokens of ``request`` (exact where the tokeniser is at hand)."""
        ...


# ----------------------------------------------------------------------------------------------------------- scoring
@dataclass(frozen=True, slots=True)
class Scored:
    """A score in [0, 1], what was read out of the output, and what scoring itself consumed (a judge's calls)."""

    value: float
    extracted: str | None = None
    usage: Usage = Usage()


class Scorer(Protocol):
    """Compares outputs with references; ``fingerprint`` names it and every setting that changes its values."""

    @property
    def fingerprint(self) -> str: ...

    def score(self, outputs: Sequence[str], pairs: Sequence[Pair]) -> list[Scored]:
        """One score per output, each in [0, 1]."""
        ...

    def max_usage(self, pair: Pair, max_output_tokens: int) -> Usage:
        """The most that scoring one output may consume; ``Usage()`` for a scorer that calls no model."""
        ...


# --------------------------------------------------------------------------------------------- candidates, selection
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
