"""What is asked of a model, what it answers and what that is worth.

Notation (paper symbol → name):
    x, y   input and reference of a baseline pair      → ``Pair.input``, ``Pair.references``
    ŷ      the model's output                          → ``Completion.text``
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from bestprompt.errors import LMError

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
