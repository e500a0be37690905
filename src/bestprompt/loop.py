"""The loop: ask → evaluate → tell until the budget ends, then recommend.

The loop keeps nothing of its own. A run that was interrupted, even by SIGKILL, is started again from the first ``ask``;
each evaluation that the ledger holds is looked up instead of paid for, so the run takes the same path and continues it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from bestprompt.builders import build_selector
from bestprompt.config import Settings
from bestprompt.errors import BudgetExhausted, LedgerError
from bestprompt.execution import Spend
from bestprompt.ledger import Ledger
from bestprompt.outcome import Recommendation, recommend
from bestprompt.selection import Recommendation as Choice
from bestprompt.selection import SelectionState, Selector
from bestprompt.types import Observation, Proposal, SoftPromptSet

# Evaluations after which the run looks up: is the task on the floor, and how much does an evaluation really need?
PILOT = 24


class Evaluations(Protocol):
    """Turns proposals into observations."""

    def evaluate(self, proposals: Sequence[Proposal]) -> list[Observation]:
        """All of them, or ``BudgetExhausted`` after those that could be had."""
        ...

    def recorded(self, proposals: Sequence[Proposal]) -> list[Observation]:
        """Those that can be had for nothing."""
        ...


class Looked:
    """Evaluations that are looked up and never asked for."""

    def __init__(self, ledger: Ledger) -> None:
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


def select_sequentially(
    candidates: SoftPromptSet,
    settings: Settings,
    evaluations: Evaluations,
    plan: Callable[[SelectionState | None], int],
    on_pilot: Callable[[Sequence[Sequence[float]]], None] | None = None,
) -> tuple[Choice, str]:
    """Runs the selection stage.

    Args:
        candidates: What to choose from.
        settings: Of the run.
        evaluations: Where observations come from.
        plan: How many evaluations the budget allows, asked before anything is known and again after the pilot.
        on_pilot: Is given the scores of each candidate of the pilot.

    Returns:
        The choice, and what ended the stage.
    """
    selector = build_selector(candidates, settings, plan(None))
    state, exhausted, reason = _until(PILOT, selector, evaluations, selector.initial(), PILOT)
    if on_pilot is not None:
        on_pilot([state.scores[state.candidates == n].tolist() for n in np.unique(state.candidates)])
    # The state is plain data, so a selector with a better idea of the budget can take over from the first one.
    selector = build_selector(candidates, settings, plan(state))
    if not exhausted:
        state, _, reason = _until(None, selector, evaluations, state, settings.selection.batch)
    return selector.recommend(state), reason or "the budget is spent"


def _until(
    goal: int | None, selector: Selector, evaluations: Evaluations, state: SelectionState, batch: int
) -> tuple[SelectionState, bool, str | None]:
    """Rounds until ``goal`` observations, the end of the budget, or a reason to stop."""
    exhausted, reason = False, selector.should_stop(state)
    while not exhausted and reason is None and (goal is None or len(state) < goal):
        n = batch if goal is None else min(batch, goal - len(state))
        state, exhausted = _round(selector, evaluations, state, n)
        reason = selector.should_stop(state)
    return state, exhausted, reason


def _round(selector: Selector, evaluations: Evaluations, state: SelectionState, n: int) -> tuple[SelectionState, bool]:
    """One round of ask, evaluate and tell; also whether the budget ended it."""
    proposals = selector.ask(state, n)
    try:
        observations = evaluations.evaluate(proposals)
    except BudgetExhausted:
        return selector.tell(state, evaluations.recorded(proposals)), True
    return selector.tell(state, observations), not proposals


def standing(ledger: Ledger) -> Recommendation:
    """What a run, finished or not, concludes from its record alone; needs neither task nor model.

    Raises:
        LedgerError: If nothing has been evaluated yet.
    """
    candidates, facts = ledger.candidates(), ledger.facts()
    events = ledger.events()
    planned = [payload["evaluations"] for kind, payload, _ in events if kind == "planned"]
    if candidates is None or not planned or not any(e.final for e in ledger.entries()):
        raise LedgerError(
            f"{ledger.path.parent} has no evaluations yet. Continue it with: bestprompt resume {ledger.path.parent}"
        )
    plans: Iterator[int] = iter([planned[0], planned[min(1, len(planned) - 1)]])
    choice, _ = select_sequentially(
        candidates, Settings.model_validate(facts["settings"]), Looked(ledger), lambda _state: next(plans)
    )
    finished = [payload["stopped_because"] for kind, payload, _ in events if kind == "finished"]
    spent = sum((Spend(e.usage.calls, e.usage.tokens, e.cost) for e in ledger.entries()), Spend())
    return recommend(candidates, choice, spent, finished[-1] if finished else "not finished yet")
