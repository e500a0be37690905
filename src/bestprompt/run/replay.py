"""A run read from its record alone, finished or not: needs neither task nor model, and changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from bestprompt.errors import BudgetExhausted, LedgerError
from bestprompt.execution import recorded_rounds
from bestprompt.ledger import PLANNED, Ledger, check_content, reading
from bestprompt.run.outside import OutsideSearch, recorded_search
from bestprompt.run.pace import Evaluations
from bestprompt.run.plan import Plan
from bestprompt.run.result import LoopResult, Recommendation
from bestprompt.run.settings import recorded_settings
from bestprompt.run.walk import walk
from bestprompt.types import Observation, Proposal, SoftPromptSet


def standing(ledger: Ledger) -> Recommendation:
    """What a run, finished or not, concludes from its record alone.

    Raises:
        LedgerError: If nothing has been evaluated yet, or the record is damaged.
    """
    check_content(ledger)
    with reading(ledger.path):
        return walk(RecordedRun(ledger))


class RecordedRun:
    """The parts of a run as its record has them."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.settings = ledger, recorded_settings(ledger.facts())

    def candidates(self) -> SoftPromptSet:
        """As stored.

        Raises:
            LedgerError: If nothing has been evaluated yet.
        """
        stored, folder = self.ledger.candidates(), self.ledger.path.parent
        if stored is None or not self.ledger.payloads(PLANNED) or not any(e.final for e in self.ledger.entries()):
            raise LedgerError(f"{folder} has no evaluations yet. Continue it with: bestprompt resume {folder}")
        return stored

    def outside_search(self, candidates: SoftPromptSet) -> OutsideSearch:
        """The looks that were taken."""
        return recorded_search(self.settings, self.ledger)

    def evaluations(self, candidates: SoftPromptSet) -> Evaluations:
        """The evaluations that were made."""
        return RecordedEvaluations(self.ledger)

    def plan(self, candidates: SoftPromptSet) -> Plan:
        """The plans that were made."""
        return Plan.replayed(self.ledger)

    def after_pilot(self, scores: Sequence[Sequence[float]]) -> None:
        """Nothing: the warning was given when the run was made."""

    def after_loop(self, result: LoopResult, evaluations: Evaluations) -> LoopResult:
        """What ended the run is in the record, too, if it has ended."""
        finished = self.ledger.finished()
        return replace(result, reason=finished["stopped_because"] if finished else "not finished yet")


class RecordedEvaluations:
    """Evaluations that are looked up and never asked for."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._scores = {Proposal(e.candidate, e.replication): e.score for e in ledger.entries() if e.final}

    def evaluate(self, proposals: Sequence[Proposal]) -> list[Observation]:
        """As recorded.

        Raises:
            BudgetExhausted: If one is not recorded: the run had come this far.
        """
        found = self.recorded(proposals)
        if len(found) < len(proposals):
            raise BudgetExhausted("the record ends here")
        return found

    def recorded(self, proposals: Sequence[Proposal]) -> list[Observation]:
        """Those that are recorded."""
        scores = ((p, self._scores.get(p)) for p in proposals)
        return [Observation(p.candidate, p.replication, score) for p, score in scores if score is not None]

    def arrivals(self, pending: Collection[Proposal]) -> list[Observation]:
        """What had arrived, and was not told yet, when the record was last written to.

        Raises:
            BudgetExhausted: Nothing had: the run had come this far.
        """
        if found := self.recorded(tuple(pending)):
            return found
        raise BudgetExhausted("the record ends here")

    def rounds(self) -> list[list[Proposal]]:
        """As recorded."""
        return recorded_rounds(self._ledger)

    def admit(self, prompt: str) -> None:
        """Candidates are known by number here."""

    def close(self) -> None:
        """Nothing is under way."""
