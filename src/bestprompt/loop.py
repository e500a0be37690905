"""The loop: ask → evaluate → tell until the budget ends, then recommend.

The loop keeps nothing of its own. A run that was interrupted, even by SIGKILL, is started again from the first ``ask``;
each evaluation that the ledger holds is looked up instead of paid for, and so is each candidate that was added on the
way, so the run takes the same path and continues it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Protocol

import numpy as np

from bestprompt.builders import build_selector, build_split
from bestprompt.config import Settings, recorded_settings
from bestprompt.confirmation import ENOUGH, confirmed, in_the_set
from bestprompt.errors import BudgetExhausted, LedgerError
from bestprompt.execution import Questions, spent
from bestprompt.last_look import last_look, rival_of
from bestprompt.ledger import Ledger
from bestprompt.newcomers import Newcomers, Nobody, Recorded, why_skipped
from bestprompt.outcome import Course, Recommendation, recommend
from bestprompt.refinement import confirming
from bestprompt.search.extension import extended
from bestprompt.selection import SelectionState, grown
from bestprompt.types import Newcomer, Observation, Proposal, SoftPromptSet
from bestprompt.variation import variation

# Evaluations after which the run looks up: is the task on the floor, and how much does an evaluation really need?
PILOT = 24
# Evaluations at a time where selection and refinement take turns: a full batch would outlast several turns.
TURN = 4


class Evaluations(Protocol):
    """Turns proposals into observations."""

    def evaluate(self, proposals: Sequence[Proposal]) -> list[Observation]:
        """All of them, or ``BudgetExhausted`` after those that could be had."""
        ...

    def recorded(self, proposals: Sequence[Proposal]) -> list[Observation]:
        """Those that can be had for nothing."""
        ...

    def admit(self, prompt: str) -> None:
        """One more candidate may be proposed from now on."""
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

    def admit(self, prompt: str) -> None:
        """Candidates are known by number here."""


class Loop:
    """One run through the stages.

    Args:
        candidates: What to choose from.
        questions: What may be asked of them.
        settings: Of the run.
        evaluations: Where observations come from.
        plan: How many evaluations the budget allows: ``plan(0, None)`` before anything is known, ``plan(1, state)``
            after the pilot, ``plan(k, state)`` when the plan before it has been carried out; ``None`` ends the run.
        newcomers: Where further candidates come from.
        on_pilot: Is given the scores of each candidate of the pilot.
    """

    def __init__(
        self,
        candidates: SoftPromptSet,
        questions: Questions,
        settings: Settings,
        evaluations: Evaluations,
        plan: Callable[[int, SelectionState | None], int | None],
        newcomers: Newcomers | None = None,
        on_pilot: Callable[[Sequence[Sequence[float]]], None] | None = None,
    ) -> None:
        self._candidates, self._questions, self._settings = candidates, questions, settings
        self._evaluations, self._plan = evaluations, plan
        self._newcomers, self._on_pilot = newcomers or Nobody(), on_pilot
        self._exhausted, self._planned = False, 0
        self._reason: str | None = None

    def run(self) -> Course:
        """To the end of the budget, or to a reason to stop before."""
        planned = self._plan(0, None)
        assert planned is not None, "a run has a budget"
        self._aim(planned)
        self._state = self._selector.initial()
        self._rounds(PILOT if self._questions.as_before else self._settings.selection.batch, goal=PILOT)
        if self._on_pilot is not None:
            who = self._state.candidates
            self._on_pilot([self._state.scores[who == n].tolist() for n in np.unique(who)])
        position = 1
        # The state is plain data, so a selector with a better idea of the budget can take over from the one before.
        while (further := self._plan(position, self._state)) is not None:
            planned, position = further, position + 1
            self._carry_out(planned)
        direct = self._settings.refining == "psk-ei"
        choice, comparisons = confirmed(self._selector, self._state, self._candidates, compare=not direct)
        reason = self._reason or "the budget is spent"
        return Course(self._candidates, choice, reason, self._newcomers.looks, comparisons)

    # ------------------------------------------------------------------------------------------------------ internals
    def _carry_out(self, planned: int) -> None:
        """``planned`` evaluations: of the set alone for as long as the split says, then in turn with newcomers."""
        self._planned = planned
        alone = self._newcomers.selecting_until(planned)
        if len(self._state) < alone or alone == planned:
            self._aim(alone)
            self._rounds(self._settings.selection.batch)
        if alone < planned:
            self._aim(planned)
            # That the best of the set is known is no reason not to look beyond it.
            self._rounds(TURN, goal=planned, stoppable=False)

    def _aim(self, evaluations: int) -> None:
        self._selector = build_selector(self._candidates, self._questions, self._settings, evaluations)

    def _rounds(self, batch: int, goal: int | None = None, stoppable: bool = True) -> None:
        """Rounds until ``goal`` observations, a reason to stop (if ``stoppable``), or the end of the budget."""
        self._reason = self._selector.should_stop(self._state)
        while not self._exhausted and (goal is None or len(self._state) < goal):
            if stoppable and self._reason is not None:
                return
            self._evaluate(self._next(batch if goal is None else min(batch, goal - len(self._state))))
            self._reason = self._selector.should_stop(self._state)

    def _next(self, n: int) -> list[Proposal]:
        """The first evaluations of a newcomer, if it is time for one and one is found; else what selection asks."""
        # Not before the warm-up and the pilot have been told: until then there is nothing to learn from.
        if len(self._state) >= PILOT and self._state.belief is not None:
            spent = len(self._state)
            try:
                due = self._newcomers.due(spent, self._planned)
                new = self._newcomers.look(self._candidates, self._selector, self._state) if due else None
            except BudgetExhausted:
                return []
            if new is not None:
                self._admit(new)
                first = min(self._newcomers.looks[-1].first, self._planned - spent)
                number = self._state.n_candidates - 1
                return [Proposal(number, r) for r in islice(self._state.rotation.order(number), first)]
            if confirmation := self._confirmation():
                return confirmation
        return self._selector.ask(self._state, n)

    def _confirmation(self) -> list[Proposal]:
        """The last calls, where a refined prompt leads and could otherwise not be compared with the best of the set."""
        own = in_the_set(self._candidates)
        if own.all() or self._settings.refining == "psk-ei":
            return []
        leader, incumbent = self._selector.choice(self._state), self._selector.choice(self._state, own)
        left = self._planned - len(self._state)
        return [] if own[leader] else confirming(self._state, leader, incumbent, left, ENOUGH)

    def _admit(self, new: Newcomer) -> None:
        self._candidates = extended(self._candidates, new)
        self._evaluations.admit(new.prompt)
        self._state = grown(self._state)
        self._aim(self._selector.config.budget)

    def _evaluate(self, proposals: list[Proposal]) -> None:
        """One round of evaluate and tell; nothing to evaluate, or not everything, means that the budget has ended."""
        try:
            observations = self._evaluations.evaluate(proposals)
            self._exhausted = not proposals
        except BudgetExhausted:
            observations = self._evaluations.recorded(proposals)
            self._exhausted = True
        self._state = self._selector.tell(self._state, observations)


def standing(ledger: Ledger) -> Recommendation:
    """What a run, finished or not, concludes from its record alone; needs neither task nor model.

    Raises:
        LedgerError: If nothing has been evaluated yet.
    """
    candidates, facts = ledger.candidates(), ledger.facts()
    settings = recorded_settings(facts)
    planned = ledger.payloads("planned")
    if candidates is None or not planned or not any(e.final for e in ledger.entries()):
        raise LedgerError(
            f"{ledger.path.parent} has no evaluations yet. Continue it with: bestprompt resume {ledger.path.parent}"
        )
    plans = [payload["evaluations"] for payload in planned]
    plans = plans if len(plans) > 1 else plans * 2  # broken off before the plan was made anew

    def plan(position: int, _state: SelectionState | None) -> int | None:
        return plans[position] if position < len(plans) else None

    split, skipped = build_split(settings), why_skipped(ledger)
    newcomers = Recorded(split, ledger) if split is not None and skipped is None else Nobody()
    course = Loop(candidates, Questions.of(facts), settings, Looked(ledger), plan, newcomers).run()
    finished = ledger.finished()
    reason = finished["stopped_because"] if finished else "not finished yet"
    course = replace(course, reason=reason, skipped=skipped)
    return concluded(course, ledger, settings)


def concluded(course: Course, ledger: Ledger, settings: Settings) -> Recommendation:
    """What a run that took this ``course`` recommends, with all that its record says besides."""
    choice, candidates = course.choice, course.candidates
    rival = rival_of(choice, candidates, settings.selection.incumbent)
    last = last_look(ledger.entries(), choice.candidate, rival, candidates.prompts)
    return recommend(course, spent(ledger), settings.refining, variation(ledger.entries()), last)
