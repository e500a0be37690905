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

from bestprompt.selection.belief import Belief, condition_on_round, fit_belief, item_effects, needs_fit
from bestprompt.selection.kernels import Shapes
from bestprompt.selection.next_item import most_telling, question_noise
from bestprompt.selection.rank import View, next_candidates
from bestprompt.selection.state import SelectionState, in_turn
from bestprompt.types import IntArray, Proposal


@dataclass(frozen=True, slots=True)
class AveragedStrategy:
    """Strategy over a fixed set of hypotheses about the candidates.

    Attributes:
        shapes: Correlations of the candidates and the hypotheses that use them.
        common: Whether replication r is the same item for every candidate.
        telling: Whether each candidate is asked the item that tells most about it, not the next one in turn.
    """

    shapes: Shapes
    common: bool
    telling: bool

    def updated(self, before: Belief | None, state: SelectionState) -> Belief:
        """Belief after ``state``, given the belief before its last round."""
        if before is None or needs_fit(before, state):
            return fit_belief(self.shapes, state, self.common, before)
        return condition_on_round(before, state)

    def view(self, state: SelectionState, belief: Belief, remaining: int) -> View:
        """What decisions look at: scores, not levels. The next item's unknown effect is part of the noise."""
        variance, slope, mean = belief.variance, belief.slope, belief.mean
        following = state.following
        effects, unknown = (of_items[state.rotation.item(following)] for of_items in item_effects(state, belief))
        weights = belief.link.weights(belief.level + effects, variance + unknown)
        residual = belief.dispersion.residual / weights
        residual = residual * belief.dispersion.repeated_noise(state.met_before)
        noise = residual + unknown
        if self.telling and len(state):
            least = question_noise(state, belief).min(axis=1)
            noise = np.where(np.isfinite(least), least, noise)
        noise = slope**2 * noise
        return View(mean, belief.covariance_of(slope), noise, remaining, state.left)

    def choose(
        self, state: SelectionState, belief: Belief, waiting: IntArray, remaining: int, n: int, rng: np.random.Generator
    ) -> IntArray:
        """``n`` candidates to evaluate next."""
        view = self.view(state, belief, remaining + int(waiting.sum()))
        return next_candidates(view, n, rng, np.repeat(np.arange(waiting.size), waiting))

    def questions(
        self, state: SelectionState, belief: Belief, chosen: IntArray, pending: Sequence[Proposal]
    ) -> list[Proposal]:
        """What the ``chosen`` candidates are asked, besides what is ``pending``."""
        return most_telling(state, belief, chosen, pending) if self.telling else in_turn(state, chosen, pending)
