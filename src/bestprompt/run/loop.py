"""The loop: ask → exchange → tell until the budget ends, then recommend.

The loop keeps nothing of its own. A run that was interrupted, even by SIGKILL, is started again from the first ``ask``;
each evaluation that the ledger holds is looked up instead of paid for, and so is each candidate that was added on the
way, so the run takes the same path and continues it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np

from bestprompt.errors import BudgetExhausted
from bestprompt.execution import Questions
from bestprompt.refinement import completing, confirming
from bestprompt.run.confirmation import ENOUGH, confirmed, in_the_set
from bestprompt.run.outside import OutsideLook, OutsideSearch
from bestprompt.run.pace import Evaluations, pace_of
from bestprompt.run.parts import build_selector, on_top, to_the_letter
from bestprompt.run.plan import Plan
from bestprompt.run.result import LoopResult
from bestprompt.run.settings import Settings
from bestprompt.search.extension import extended
from bestprompt.selection import grown
from bestprompt.types import NewCandidate, Proposal, SoftPromptSet

# Evaluations after which the run looks up: is the task on the floor, and how much does an evaluation really need?
PILOT = 24
# Evaluations at a time where selection and refinement take turns: a full batch would outlast several turns.
TURN = 4


class Loop:
    """One run through the stages.

    Args:
        candidates: What to choose from.
        questions: What may be asked of them.
        settings: Of the run.
        evaluations: Where observations come from.
        plan: How many evaluations there are to make.
        outside: Where further candidates come from.
        after_pilot: Is given the scores of each candidate of the pilot.
    """

    def __init__(
        self,
        candidates: SoftPromptSet,
        questions: Questions,
        settings: Settings,
        evaluations: Evaluations,
        plan: Plan,
        outside: OutsideSearch,
        after_pilot: Callable[[Sequence[Sequence[float]]], None],
    ) -> None:
        self._candidates, self._questions, self._settings = candidates, questions, settings
        self._evaluations, self._plan = evaluations, plan
        self._pace = pace_of(evaluations, settings.selection.in_flight)
        self._outside, self._after_pilot = outside, after_pilot
        self._exhausted, self._planned = False, 0
        self._reason: str | None = None

    def run(self) -> LoopResult:
        """The pilot, then one budget after the other, each to its end or to a reason to stop before."""
        aimed = self._plan.before_pilot()
        self._aim(aimed)
        self._state = self._selector.initial()
        # The paper's additional evaluations are none of the pilot's.
        self._pilot_size = min(PILOT, self._outside.selecting_until(aimed)) if self._additional else PILOT
        self._pilot()
        # The state is plain data, so a selector with a better idea of the budget can take over from the one before.
        for budget in self._plan.budgets:
            # A plan counts what ideas cost as evaluations that are not made.
            self._carry_out(self._plan.within(budget, self._state) - sum(look.cost for look in self._outside.looks))
        compare = not self._any_may_win
        choice, comparisons = confirmed(self._selector, self._state, self._candidates, compare)
        reason = self._reason or "the budget is spent"
        return LoopResult(self._candidates, choice, reason, self._outside.looks, comparisons, self._outside.skipped)

    # ------------------------------------------------------------------------------------------------------ internals
    def _pilot(self) -> None:
        self._rounds(
            PILOT if self._questions.from_old_record else self._settings.selection.batch, goal=self._pilot_size
        )
        who = self._state.candidates
        self._after_pilot([self._state.scores[who == n].tolist() for n in np.unique(who)])

    def _carry_out(self, planned: int) -> None:
        """``planned`` evaluations: of the set alone for as long as the split says, then in turn with looks outside."""
        self._planned = planned
        alone = self._outside.selecting_until(planned)
        if len(self._state) < alone or alone == planned:
            self._aim(alone)
            self._rounds(self._settings.selection.batch)
        if alone < planned:
            self._aim(planned)
            # That the best of the set is known is no reason not to look beyond it.
            self._rounds(self._turn, goal=planned, stoppable=False)

    @property
    def _to_the_letter(self) -> bool:
        return to_the_letter(self._settings, self._questions)

    @property
    def _additional(self) -> int:
        return on_top(self._settings, self._questions)

    @property
    def _any_may_win(self) -> bool:
        """Whether refined prompts are not compared with the set: direct search has none, the paper does not ask."""
        return self._settings.refining == "psk-ei" or self._additional > 0

    @property
    def _turn(self) -> int:
        """Evaluations at a time beside refinement; runs recorded by the first edition took no smaller batch there."""
        return TURN if self._questions.edition == "first" else min(TURN, self._settings.selection.batch)

    def _aim(self, evaluations: int) -> None:
        self._selector = build_selector(self._candidates, self._questions, self._settings, evaluations)

    def _rounds(self, batch: int, goal: int | None = None, stoppable: bool = True) -> None:
        """Rounds until ``goal`` observations, a reason to stop (if ``stoppable``), or the end of the budget."""
        self._reason = self._selector.should_stop(self._state)
        while not self._exhausted and (goal is None or len(self._state) < goal):
            settled = stoppable and self._reason is not None
            if settled and not self._pace.pending:
                if not (new := self._before_stopping()):
                    return
                self._exchange(new)
            else:
                # What is under way when there is a reason to stop is waited for, and may yet take the reason away.
                self._exchange([] if settled else self._next(self._pace.room(self._most_now(batch, goal))))
            self._reason = self._selector.should_stop(self._state)

    def _most_now(self, batch: int, goal: int | None) -> int:
        return batch if goal is None else min(batch, goal - len(self._state))

    def _next(self, n: int) -> list[Proposal]:
        """The first evaluations of a new candidate, if it is time for one and one is found; else selection's."""
        if n == 0:
            return []
        pending = tuple(self._pace.pending)
        # Not before the warm-up and the pilot have been told: until then there is nothing to learn from.
        if len(self._state) >= self._pilot_size and self._state.belief is not None:
            left = self._planned - len(self._state) - len(pending)
            if left > 0 and self._outside.due(len(self._state), self._planned):
                try:
                    if first := self._look():
                        return first
                except BudgetExhausted:
                    return []
                left = self._planned - len(self._state) - len(pending)
            if confirmation := [p for p in self._confirmation(left) if p not in pending]:
                return confirmation[:n] if self._to_the_letter else confirmation
        return self._selector.ask(self._state, n, pending)

    def _before_stopping(self) -> list[Proposal]:
        """What has to come before a settled run may end: a comparison that is not finished, or an idea worth a call."""
        left = self._planned - len(self._state)
        if left > 0 and self._settings.has_ideas and (comparison := self._confirmation(left, at_once=left)):
            return comparison
        rules = self._selector.config
        asked_to_stop = any(rule is not None for rule in (rules.stop_at, rules.stop_loss, rules.gain_per_call))
        if asked_to_stop or not self._settings.has_ideas:
            return []
        # With a single prompt all is settled at once.
        if first := self._first_pairs((self._planned or self._pilot_size) - len(self._state)):
            return first
        while self._planned > len(self._state) and self._outside.due_before_stopping(len(self._state)):
            try:
                if first := self._look():
                    return first
            except BudgetExhausted:
                return []
        return []

    def _first_pairs(self, left: int) -> list[Proposal]:
        """What the leader lacks before anybody can write something better."""
        leader, rotation = self._selector.choice(self._state), self._state.rotation
        lacking = min(ENOUGH, rotation.items or ENOUGH) - self._state.items_met(leader)
        met = self._state.met(leader)
        unmet = (r for r in rotation.order(leader) if r not in met)
        return [Proposal(leader, r) for r in islice(unmet, max(min(lacking, left), 0))]

    def _look(self) -> list[Proposal]:
        """One look outside the set, and the first evaluations of the candidate it adds, if it adds one.

        Raises:
            BudgetExhausted: The record may only be read, and ends here.
        """
        new = self._outside.look(self._candidates, self._selector, self._state)
        look = self._outside.looks[-1]
        self._planned -= look.cost
        if new is None:
            if look.cost:
                self._aim(max(self._selector.config.budget - look.cost, 1))
            return []
        self._admit(new, look)
        number = self._state.n_candidates - 1
        first = min(look.first, self._planned - len(self._state) - len(self._pace.pending))
        return [Proposal(number, r) for r in islice(self._state.rotation.order(number), max(first, 0))]

    def _confirmation(self, left: int, at_once: int | None = None) -> list[Proposal]:
        """The last calls, where a refined prompt leads and could otherwise not be compared with the best of the set.

        They are the last if fewer than ``at_once`` would be left after them; by default what a round may ask for.
        """
        own = in_the_set(self._candidates)
        if own.all() or self._any_may_win:
            return []
        leader, incumbent = self._selector.choice(self._state), self._selector.choice(self._state, own)
        if own[leader]:
            return []
        if self._settings.has_ideas:  # runs without ideas go on as those before them did
            a_round = max(self._settings.selection.batch, 2 * (self._settings.selection.in_flight or 0))
            return completing(self._state, leader, incumbent, left, ENOUGH, at_once or a_round)
        return confirming(self._state, leader, incumbent, left, ENOUGH)

    def _admit(self, new: NewCandidate, look: OutsideLook) -> None:
        self._candidates = extended(self._candidates, new)
        self._evaluations.admit(new.prompt)
        self._state = grown(self._state, barred=look.barred)
        self._aim(max(self._selector.config.budget - look.cost, 1))

    def _exchange(self, proposals: list[Proposal]) -> None:
        """One round: proposals go out, observations are told."""
        observations, self._exhausted = self._pace.exchange(proposals)
        self._state = self._selector.tell(self._state, observations)
