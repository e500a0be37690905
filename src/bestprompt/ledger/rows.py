"""What a record is made of: attempts, requests that are about to leave, and kinds of event."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bestprompt.types import Usage

Status = Literal["ok", "refused", "error", "unscored"]
# Kinds of event, with what each records:
PLANNED = "planned"  # how many evaluations a budget allows
EXTENDED = "extended"  # a larger budget
WRITTEN = "written"  # a call that was to write a candidate, before the run or (``idea``) while it goes on
REFINING = "refinement"  # whether a run that should refine can
LOOK = "look"  # a look outside the set
PAUSED = "paused"  # every answer of the pilot scored 0
FINISHED = "finished"  # what the run concluded
ROUND = "round"  # evaluations that were told together, where that is not the batch that was asked for
TURNED_AWAY = "turned away"  # an attempt that cost nothing: a rejection, or a connection that was not made


@dataclass(frozen=True, slots=True)
class Entry:
    """One attempt at one evaluation, with all it takes to check or repeat it.

    ``unscored`` is an answer that the scorer failed on: it was paid for, so it is kept and scored later.
    ``score`` is set when ``status`` is ``"ok"``, and 0 when ``"refused"``: a prompt that gets no answer has failed.
    """

    candidate: int
    replication: int
    attempt: int
    pair: int
    request: Mapping[str, Any]
    status: Status
    output: str | None = None
    extracted: str | None = None
    score: float | None = None
    error: str | None = None
    usage: Usage = Usage()
    cost: float = 0.0
    latency: float = 0.0
    created: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        for name in ("output", "extracted", "error"):
            if (text := getattr(self, name)) is not None:
                # Half a character has no place in a database, and is no reason to lose an answer.
                object.__setattr__(self, name, text.encode("utf-8", "backslashreplace").decode())

    @property
    def final(self) -> bool:
        """Whether this attempt settles its evaluation."""
        return self.status in ("ok", "refused")


@dataclass(frozen=True, slots=True)
class Intent:
    """Requests that are about to leave, and the most that may be billed for them."""

    purpose: Literal["evaluation", "writing", "idea"]
    what: Mapping[str, Any]
    calls: float
    tokens: float
    dollars: float
