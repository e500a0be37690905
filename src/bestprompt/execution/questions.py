"""Which questions a run has: its pairs, and what asking one of them again means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bestprompt.choices import Edition, NextItem, Repeats
from bestprompt.tasks import Task
from bestprompt.types import Pair


@dataclass(frozen=True, slots=True)
class Questions:
    """How many pairs prompts are tried on, and what a further try on one of them is.

    Attributes:
        items: Number of pairs; ``None`` in the record of a run that began when all prompts met them in one order.
        repeats: ``"never"`` where the same question has the same answer, ``"same-item"`` where answers vary.
            ``"new-item"`` is how runs went on that began before repeated questions were known for what they are: they
            also kept two fifths of the pairs aside.
        next_item: ``"most-telling"`` where pairs are chosen as well as prompts; runs that began before go on in turn.
        edition: ``"second"`` where paper mode keeps to the letter; runs that began before go on by the ``"first"``.
    """

    items: int | None
    repeats: Repeats
    next_item: NextItem = "most-telling"
    edition: Edition = "second"

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Questions:
        """As a run's record has them."""
        return cls(
            facts.get("items"),
            facts.get("repeats", "new-item"),
            facts.get("next_item", "in-turn"),
            facts.get("edition", "first"),
        )

    @property
    def from_old_record(self) -> bool:
        """Whether the run began before repeated questions were known for what they are."""
        return self.repeats == "new-item"

    def pairs(self, task: Task, holdout: float, seed: int) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
        """The pairs to choose on, and those held out for a last look."""
        return (task.split(seed).train, ()) if self.from_old_record else task.held_out(holdout, seed)
