"""Whether a prompt that refinement added may be returned: only if it did better than the best prompt of the set.

The selection stage ranks all candidates by one belief. A refined prompt must, besides leading that ranking, have
scored more than the best prompt of the original set on the pairs that both have met, and on enough of them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from bestprompt.selection import Recommendation, SelectionState, Selector
from bestprompt.types import REFINED, BoolArray, SoftPromptSet

# Shared pairs below which a lead is not evidence.
ENOUGH = 5


@dataclass(frozen=True, slots=True)
class Comparison:
    """A refined prompt against the best prompt of the set.

    Attributes:
        candidate: The refined prompt.
        incumbent: The best prompt of the set.
        shared: Pairs that both have met; with independent pairs, the smaller number of evaluations.
        score: Mean score of the refined prompt on them.
        incumbent_score: Mean score of the incumbent on them.
        paired: Whether pairs are common; if not, the scores are over all evaluations of each.
    """

    candidate: int
    incumbent: int
    shared: int
    score: float
    incumbent_score: float
    paired: bool = True

    @property
    def better(self) -> bool:
        """Whether the evidence puts the refined prompt above."""
        return self.shared >= ENOUGH and self.score > self.incumbent_score


def in_the_set(candidates: SoftPromptSet) -> BoolArray:
    """(N,) which candidates are of the original set."""
    return np.array([source != REFINED for source in candidates.sources])


def confirmed(
    selector: Selector, state: SelectionState, candidates: SoftPromptSet, compare: bool = True
) -> tuple[Recommendation, tuple[Comparison, ...]]:
    """The recommendation, of prompts of the set and of refined ones that are better in their comparison.

    Args:
        selector: Whose belief ranks.
        state: All observations.
        candidates: In the order of ``state``.
        compare: ``False`` lets every refined prompt be returned: direct search has no set to fall back on.
    """
    own = in_the_set(candidates)
    if own.all():
        return selector.recommend(state), ()
    incumbent = selector.choice(state, own)
    common = selector.config.pairs == "common"
    against = [_compared(state, int(n), incumbent, common) for n in np.flatnonzero(~own)]
    allowed = own.copy()
    allowed[[c.candidate for c in against if c.better or not compare]] = True
    return selector.recommend(state, allowed), tuple(against)


def _compared(state: SelectionState, candidate: int, incumbent: int, common: bool) -> Comparison:
    ours, theirs = (_scores(state, n) for n in (candidate, incumbent))
    if not common:
        shared = min(len(ours), len(theirs))
        return Comparison(candidate, incumbent, shared, _mean(ours.values()), _mean(theirs.values()), paired=False)
    both = sorted(ours.keys() & theirs.keys())
    return Comparison(candidate, incumbent, len(both), _mean([ours[r] for r in both]), _mean([theirs[r] for r in both]))


def _scores(state: SelectionState, candidate: int) -> dict[int, float]:
    rows = state.candidates == candidate
    return dict(zip(state.replications[rows].tolist(), state.scores[rows].tolist(), strict=True))


def _mean(values: Collection[float]) -> float:
    return float(np.mean(list(values))) if values else 0.0
