"""The plan of a run: how many evaluations T each of its budgets allows.

There is a plan for the pilot, by the most an evaluation may need; then one for each budget in turn, the one the run was
started with and those it was extended to, by what evaluations did need. Each is made when the one before it has been
carried out, and recorded: it depends on the model, and a reader of the record has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product, zip_longest
from typing import NoReturn

from bestprompt.errors import ConfigError
from bestprompt.execution import Spend, spent_on_ideas, spent_writing
from bestprompt.ledger import PLANNED, Ledger, reading
from bestprompt.lm.several import names_of
from bestprompt.run.held_out import calls_on_held_out
from bestprompt.run.parts import prices, renderer
from bestprompt.run.record import limits as limits_of
from bestprompt.run.settings import Settings
from bestprompt.selection import SelectionState
from bestprompt.tasks import Task
from bestprompt.types import LanguageModel

Estimate = Callable[[Spend, SelectionState | None], int]
"""How many evaluations fit into limits, by what those of a state needed; before there are any, by the worst case."""


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """One budget of a run: its limits and, if it was planned already, the evaluations that fit into it."""

    limits: Spend
    evaluations: int | None


class Plan:
    """How many evaluations to make: as recorded or, where the record ends, as estimated and then recorded.

    Args:
        pilot: The plan before anything was evaluated.
        budgets: The plans after it, one for each budget that may be used.
        decide: Makes, and records, the plan for limits where there is none yet.
        on_plan: Is told each plan when it begins.
    """

    def __init__(
        self, pilot: BudgetPlan, budgets: Sequence[BudgetPlan], decide: Estimate, on_plan: Callable[[int], None]
    ) -> None:
        self._pilot, self.budgets, self._decide, self._on_plan = pilot, tuple(budgets), decide, on_plan

    @classmethod
    def live(cls, ledger: Ledger, estimate: Estimate, on_plan: Callable[[int], None]) -> Plan:
        """The plan of a run that may spend all its budgets."""

        def decide(limits: Spend, state: SelectionState | None) -> int:
            # What ideas cost while the run goes on is taken off the plan as they come (``OutsideLook.cost``).
            evaluations = estimate(limits - (spent_writing(ledger) - spent_on_ideas(ledger)), state)
            ledger.event(PLANNED, evaluations=evaluations)
            return evaluations

        limits = limits_of(ledger)
        pilot, recorded = _recorded(ledger)
        made = [BudgetPlan(*each) for each in zip_longest(limits, recorded[: len(limits)])]
        return cls(BudgetPlan(limits[0], pilot), made, decide, on_plan)

    @classmethod
    def replayed(cls, ledger: Ledger) -> Plan:
        """The plan of a run as far as it is recorded; one that broke off in its pilot had no other plan."""
        limits = limits_of(ledger)
        pilot, recorded = _recorded(ledger)
        plans = recorded or ([] if pilot is None else [pilot])
        made = [BudgetPlan(*each) for each in zip(limits, plans, strict=False)]
        return cls(BudgetPlan(limits[0], pilot), made, _never, lambda _: None)

    def before_pilot(self) -> int:
        """How many evaluations to aim at before anything is known."""
        return self._begun(self._pilot, None)

    def within(self, budget: BudgetPlan, state: SelectionState) -> int:
        """How many evaluations ``budget`` allows in all, those of ``state`` included."""
        return self._begun(budget, state)

    def _begun(self, budget: BudgetPlan, state: SelectionState | None) -> int:
        evaluations = budget.evaluations
        if evaluations is None:
            evaluations = self._decide(budget.limits, state)
        self._on_plan(evaluations)
        return evaluations


def _recorded(ledger: Ledger) -> tuple[int | None, list[int]]:
    """The recorded plan for the pilot, and those for the budgets that have one."""
    with reading(ledger.path):
        made = [int(payload["evaluations"]) for payload in ledger.payloads(PLANNED)]
    return (made[0], made[1:]) if made else (None, [])


def _never(_limits: Spend, _state: SelectionState | None) -> NoReturn:
    raise AssertionError("what is replayed was planned")


class Estimator:
    """Estimates how many evaluations limits allow, with the calls for held-out pairs set aside.

    Args:
        task: The task.
        settings: Of the run.
        lm: The model, which knows how long its prompts are.
        prompts: The candidates at the start.
        ledger: What evaluations needed so far.
        held_out: Number of held-out pairs.
    """

    def __init__(
        self, task: Task, settings: Settings, lm: LanguageModel, prompts: Sequence[str], ledger: Ledger, held_out: int
    ) -> None:
        self._task, self._settings, self._lm, self._prompts = task, settings, lm, prompts
        self._ledger, self._held_out = ledger, held_out

    def __call__(self, limits: Spend, state: SelectionState | None) -> int:
        """T, by what the evaluations of ``state`` needed on average, or may need if there are none.

        Raises:
            ConfigError: If the limits allow none.
        """
        each = mean_spend(self._ledger, state) if state is not None else None
        if each is None:
            each = worst_case(self._task, self._settings, self._lm, self._prompts)
        last = calls_on_held_out(self._held_out)
        evaluations = planned_evaluations(limits, each) - last
        if evaluations < 1:
            raise ConfigError(
                f"The last look at {self._held_out} held-out pairs takes {last} calls, "
                "and the budget leaves none to choose with. Raise it, or hold fewer pairs out."
            )
        return evaluations


def mean_spend(ledger: Ledger, state: SelectionState) -> Spend | None:
    """What the evaluations in ``state`` needed on average, by the record: the same after a restart.

    Attempts that failed do not count: they decide how far a run gets, and not which way it goes.
    """
    done = set(zip(state.candidates.tolist(), state.replications.tolist(), strict=True))
    used = [e for e in ledger.entries() if e.final and (e.candidate, e.replication) in done]
    if not used:
        return None
    total = sum((Spend(e.usage.calls, e.usage.tokens, e.cost) for e in used), Spend())
    # An answer that another evaluation had got costs nothing, but is no reason to plan more evaluations than calls.
    return Spend(max(total.calls / len(done), 1.0), total.tokens / len(done), total.dollars / len(done))


def worst_case(task: Task, settings: Settings, lm: LanguageModel, prompts: Sequence[str]) -> Spend:
    """The most that one evaluation may need, over a sample of pairs and the given prompts."""
    pairs = task.held_out(settings.holdout, settings.seed)[0][:20]
    render, table = renderer(task, settings), prices(settings, lm)
    worst = Spend()
    for pair, model in product(pairs, names_of(lm) or ("",)):
        judging = Spend.of(task.scorer.max_usage(pair, task.max_tokens), table.judge)
        request = replace(render(max(prompts, key=len), pair, 0), model=model)
        tokens, price = lm.max_prompt_tokens(request), table.of(request)
        dollars = (price.input * tokens + price.output * request.max_tokens) / 1e6
        one = Spend(1, tokens + request.max_tokens, dollars) + judging
        worst = Spend(max(worst.calls, one.calls), max(worst.tokens, one.tokens), max(worst.dollars, one.dollars))
    return worst


def planned_evaluations(limits: Spend, each: Spend) -> int:
    """T: how many evaluations the tightest of ``limits`` allows if each needs ``each``.

    Only the selector's plan depends on this; the budget itself is enforced call by call.
    """
    pairs = ((limits.calls, each.calls), (limits.tokens, each.tokens), (limits.dollars, each.dollars))
    ratios = [limit / one for limit, one in pairs if math.isfinite(limit) and one > 0]
    if not ratios:
        raise ConfigError("The budget has no limit that this model's price table can reach. Set budget.calls.")
    if min(ratios) < 1:
        raise ConfigError(
            f"The budget does not allow one evaluation: it may need {each.calls:g} calls, {each.tokens:g} tokens "
            f"and {each.dollars:.4g} dollars."
        )
    return int(min(ratios))
