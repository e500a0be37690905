"""The third stage between two rounds of selection: look outside the set, and say whether what was seen joins it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bestprompt.refinement.calibration import Prediction
from bestprompt.refinement.refiner import Refiner, Suggestion
from bestprompt.refinement.split import BudgetSplit, Turn
from bestprompt.selection import SelectionState, Selector
from bestprompt.selection.strategies.rank import value_of_next_call
from bestprompt.types import FloatArray, Proposal

FIRST_EVALUATIONS = 1  # of a prompt that has just joined the set


@dataclass(frozen=True, slots=True)
class TurnDecision:
    """What one look outside the set found, and whose turn it is.

    Attributes:
        turn: ``"refine"``: the suggestion joins the set now.
        selection_value: Gain per call expected inside the set.
        refinement_value: Gain per call expected of the suggestion; 0 when nothing acceptable was found.
        suggestion: The prompt found, if any.
        first: Evaluations it gets at once, before the duels of selection take over.
    """

    turn: Turn
    selection_value: float
    refinement_value: float
    suggestion: Suggestion | None
    first: int


@dataclass(frozen=True, slots=True)
class RefinementStage:
    """Refinement as the loop sees it."""

    refiner: Refiner
    split: BudgetSplit

    def look(
        self,
        selector: Selector,
        state: SelectionState,
        X: FloatArray,
        known: Sequence[str],
        past: Sequence[Prediction] = (),
        placed: SelectionState | None = None,
    ) -> TurnDecision:
        """Look outside the set of latent vectors ``X`` (N, D~), whose texts are ``known``; ``past`` looks teach.

        ``placed`` holds the observations of the candidates that have a latent vector, where not all have.
        """
        inside = value_of_next_call(selector.view(state))
        # Prompts without a place say nothing about the space, but they may be what there is to beat.
        beat = -np.inf if placed is None else float(selector.view(state).mean.max())
        seen = state if placed is None else placed
        found = self.refiner.suggest(X, seen, known, selector.config.budget - len(state), past, beat)
        if found is None:
            return TurnDecision("select", inside, 0.0, None, 0)
        turn = self.split.turn(inside, found.value_per_call)
        return TurnDecision(turn, inside, found.value_per_call, found, FIRST_EVALUATIONS)


def confirming(state: SelectionState, leader: int, incumbent: int, remaining: int, enough: int) -> list[Proposal]:
    """The calls that let a new ``leader`` be compared with the best of the set on ``enough`` replications each.

    Empty as long as there is time for something else: duels usually provide them, and confirmation is asked for only
    when no more than the missing calls remain.
    """
    missing = [
        Proposal(candidate, replication)
        for candidate in dict.fromkeys((leader, incumbent))
        for replication in state.rotation.shared(leader, incumbent, enough)
        if replication not in state.met(candidate)
    ]
    return missing[:remaining] if missing and remaining <= len(missing) + 1 else []


def completing(
    state: SelectionState, leader: int, incumbent: int, remaining: int, enough: int, at_once: int
) -> list[Proposal]:
    """The fewest calls that let ``leader`` and ``incumbent`` be compared on ``enough`` items that both have met.

    Items that one of the two has met come first: they take one call, others take two. Empty as long as there is time
    for something else, ``at_once`` calls being made before anybody asks again, and for doing it once more: these very
    calls may show that another prompt is the best of the set. Where items are not told apart by replications, as
    :func:`confirming`.
    """
    rotation = state.rotation
    if rotation.items is None or rotation.repeats == "new-item" or rotation.repeat_every:
        return confirming(state, leader, incumbent, remaining, enough)
    both = tuple(dict.fromkeys((leader, incumbent)))
    met = {who: set(state.items[state.candidates == who].tolist()) for who in both}
    closed = rotation.closed_to(leader) | rotation.closed_to(incumbent)
    open_ones = [item for item in range(rotation.items) if item not in closed]
    ready = sorted(open_ones, key=lambda item: -sum(item in met[who] for who in both))[:enough]
    # The first replications are the items themselves.
    missing = [Proposal(who, item) for item in ready for who in both if item not in met[who]]
    return missing[:remaining] if missing and remaining <= len(missing) + at_once + enough else []
