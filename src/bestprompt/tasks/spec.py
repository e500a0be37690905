"""A task as it is described, before there is a score or a check: what files, tables and the library give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bestprompt.scoring import ScorerSpec
from bestprompt.types import Pair

DEFAULT_TEMPLATE = "{prompt}\n\n{input}"


@dataclass(frozen=True, slots=True)
class Splits:
    """Pairs for choosing (``train``), for confirming the choice (``validation``) and for the final word (``test``)."""

    train: tuple[Pair, ...]
    validation: tuple[Pair, ...]
    test: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """The fields of a :class:`~bestprompt.tasks.Task`, with the score as it may be written in a file.

    A score of ``"auto"`` and a length of ``None`` are proposed from the pairs.
    """

    name: str
    pairs: tuple[Pair, ...]
    examples: tuple[str, ...]
    scorer: ScorerSpec = "auto"
    description: str = ""
    template: str = DEFAULT_TEMPLATE
    system: str = ""
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    measured_on: Mapping[str, bool] = field(default_factory=dict)
    fixed_splits: Splits | None = None
    notes: tuple[str, ...] = ()
