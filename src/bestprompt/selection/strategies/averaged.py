"""Default strategy: the averaged Gaussian belief and the duels on it (``surrogate = auto``).

It covers the whole run. While calls are few the surrogate dominates, since every answer also speaks for the
candidate's neighbours; as answers accumulate on the survivors their own evidence outweighs the neighbours' through
the nugget, and what is left is ranking and selection with the surrogate as prior. Hypotheses are weighed anew as data
grow, so the switch happens when the data say so, not at a fixed share of the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bestprompt.selection.belief.belief import AveragedBelief, condition_on_round
from bestprompt.selection.belief.fitting import fit_belief, needs_fit
from bestprompt.selection.belief.kernels import Shapes
from bestprompt.selection.core.state import Belief, SelectionState, in_turn
from bestprompt.selection.strategies.next_item import most_telling
from bestprompt.selection.strategies.rank import next_candidates
from bestprompt.types import IntArray, Proposal


@dataclass(frozen=True, slots=True)
class AveragedStrategy:
    """Strategy over a fixed set of hypotheses about the candidates.

    Attributes:
        shapes: Correlations of the candidates and the hypotheses that use them.
        common: Whether replication r is the same item for every candidate.
    """

    shapes: Shapes
    common: bool

    @property
    def starts_blind(self) -> bool:
        """Yes: the prior is a belief."""
        return True

    def updated(self, before: Belief | None, state: SelectionState) -> AveragedBelief:
        """Belief after ``state``, given the belief before its last round."""
        own = before if isinstance(before, AveragedBelief) else None  # another strategy's is no beginning
        if own is None or needs_fit(own, state):
            return fit_belief(self.shapes, state, self.common, own)
        return condition_on_round(own, state)

    def choose(
        self, state: SelectionState, belief: Belief, waiting: IntArray, remaining: int, n: int, rng: np.random.Generator
    ) -> IntArray:
        """``n`` candidates to evaluate next, each the outcome of a duel."""
        view = self._own(belief, state).exact_view(state, remaining + int(waiting.sum()))
        return next_candidates(view, n, rng, np.repeat(np.arange(waiting.size), waiting))

    def questions(
        self, state: SelectionState, belief: Belief, chosen: IntArray, pending: Sequence[Proposal]
    ) -> list[Proposal]:
        """What the ``chosen`` candidates are asked, besides what is ``pending``."""
        if not state.rotation.telling:
            return in_turn(state, chosen, pending)
        return most_telling(state, self._own(belief, state).question_noise(state), chosen, pending)

    def _own(self, belief: Belief, state: SelectionState) -> AveragedBelief:
        return belief if isinstance(belief, AveragedBelief) else self.updated(None, state)
