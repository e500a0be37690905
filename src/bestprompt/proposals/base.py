"""What a source of proposals sees, and what comes of asking one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bestprompt.types import Pair


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer that a writer may look at: the item it is of, the pair, what was answered and its score."""

    item: int
    pair: Pair
    answer: str
    score: float


@dataclass(frozen=True, slots=True)
class Context:
    """What is known when a proposal is asked for.

    Attributes:
        prompts: All candidates so far; a proposal must differ from each.
        leader: The number of the one that leads.
        second: The number of the best that is worded otherwise, if there is one.
        failed: Answers of the leader that missed, the worst first.
        passed: Answers of the leader that were right.
        number: How many proposals its source has made before.
        references: Every right answer of the task; those of several pairs are labels, which a prompt may name.
    """

    prompts: Sequence[str]
    leader: int
    second: int | None
    failed: tuple[Shown, ...]
    passed: tuple[Shown, ...]
    number: int = 0
    references: tuple[str, ...] = ()

    @property
    def prompt(self) -> str:
        """The leader's text."""
        return self.prompts[self.leader]

    @property
    def shown(self) -> tuple[Shown, ...]:
        """All answers that are shown."""
        return (*self.failed, *self.passed)


@dataclass(frozen=True, slots=True)
class Written:
    """A prompt that may join the set.

    Attributes:
        prompt: The text.
        parents: The candidates it was made from.
        items: What its author was shown: it must not be judged by these.
    """

    prompt: str
    parents: tuple[int, ...]
    items: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing that could join the set, and why."""

    reason: str


class Source(Protocol):
    """One way to ask a model for a prompt.

    Attributes:
        name: What the record calls it.
        shows_answers: Whether the model is shown answers, so that the pairs behind them cannot judge what it writes.
    """

    @property
    def name(self) -> str: ...

    @property
    def shows_answers(self) -> bool: ...

    def ask(self, context: Context) -> str | None:
        """What to ask the model; ``None`` where there is nothing to go by."""
        ...

    def parents(self, context: Context) -> tuple[int, ...]:
        """The candidates that what it writes is made from, the main one first."""
        ...
