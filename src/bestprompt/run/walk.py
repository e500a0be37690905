"""The walk of one run, top to bottom: parts → search → loop → conclusion.

A run that spends and the replay of a record take the same walk. What differs is where the parts come from: from a task,
a model and what the record holds already (``live.py``), or from the record alone (``replay.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bestprompt.execution import Questions
from bestprompt.ledger import Ledger
from bestprompt.run.conclusion import conclude
from bestprompt.run.loop import Loop
from bestprompt.run.outside import OutsideSearch
from bestprompt.run.pace import Evaluations, quiet_arithmetic
from bestprompt.run.plan import Plan
from bestprompt.run.result import LoopResult, Recommendation
from bestprompt.run.settings import Settings
from bestprompt.types import SoftPromptSet


class Parts(Protocol):
    """What a walk is made of, in the order in which it is needed."""

    @property
    def settings(self) -> Settings:
        """The settings of the run."""
        ...

    @property
    def ledger(self) -> Ledger:
        """The record of the run."""
        ...

    def candidates(self) -> SoftPromptSet:
        """The search step: the set to choose from."""
        ...

    def outside_search(self, candidates: SoftPromptSet) -> OutsideSearch:
        """Where further candidates come from while the run goes on."""
        ...

    def evaluations(self, candidates: SoftPromptSet) -> Evaluations:
        """Where scores come from."""
        ...

    def plan(self, candidates: SoftPromptSet) -> Plan:
        """How many evaluations each budget allows."""
        ...

    def after_pilot(self, scores: Sequence[Sequence[float]]) -> None:
        """Is shown the scores of each prompt of the pilot."""
        ...

    def after_loop(self, result: LoopResult, evaluations: Evaluations) -> LoopResult:
        """The last step before the conclusion, e.g. the winner on held-out pairs."""
        ...


def walk(parts: Parts) -> Recommendation:
    """Carries a run out, or replays it, and concludes."""
    candidates = parts.candidates()
    outside = parts.outside_search(candidates)
    evaluations = parts.evaluations(candidates)
    plan = parts.plan(candidates)
    questions = Questions.of(parts.ledger.facts())
    loop = Loop(candidates, questions, parts.settings, evaluations, plan, outside, parts.after_pilot)
    try:
        with quiet_arithmetic(parts.settings.selection.in_flight):
            result = parts.after_loop(loop.run(), evaluations)
    finally:
        evaluations.close()
    return conclude(result, parts.ledger, parts.settings)
