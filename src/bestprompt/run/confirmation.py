"""Whether a prompt that refinement added may be returned: only if it did better than the best prompt of the set.

The selection stage ranks all candidates by one belief. A refined prompt must, besides leading that ranking, have
scored more than the best prompt of the original set on the pairs that both have met, and on enough of them. A run keeps
its last calls for that comparison. A lead of a standard error is not asked for: few pairs make a large error, and true
improvements would be refused with the lucky ones.

A prompt whose author was shown wrong answers does not meet those pairs; what that makes of the comparison is removed
(``_as_hard_as_all``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bestprompt.selection import SelectionResult, SelectionState, Selector
from bestprompt.types import ADDED, BoolArray, FloatArray, SoftPromptSet

# Shared pairs below which a lead is not evidence.
ENOUGH = 10


@dataclass(frozen=True, slots=True)
class Comparison:
    """A refined prompt against the best prompt of the set.

    Attributes:
        candidate: The refined prompt.
        incumbent: The best prompt of the set.
        shared: Pairs that both have met; with independent pairs, the smaller number of evaluations.
        score: Mean score of the refined prompt on them.
        incumbent_score: Mean score of the incumbent on them.
        error: Standard error of the difference of the two.
        paired: Whether pairs are common; if not, the scores are over all evaluations of each.
    """

    candidate: int
    incumbent: int
    shared: int
    score: float
    incumbent_score: float
    error: float
    paired: bool = True

    @property
    def difference(self) -> float:
        """By how much the refined prompt scored more."""
        return self.score - self.incumbent_score

    @property
    def better(self) -> bool:
        """Whether the evidence puts the refined prompt above."""
        return self.shared >= ENOUGH and self.difference > 0.0


def in_the_set(candidates: SoftPromptSet) -> BoolArray:
    """(N,) which candidates are of the original set."""
    return np.array([source not in ADDED for source in candidates.sources])


def confirmed(
    selector: Selector, state: SelectionState, candidates: SoftPromptSet, compare: bool = True
) -> tuple[SelectionResult, tuple[Comparison, ...]]:
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
    if common:
        both = sorted(ours.keys() & theirs.keys())
        a, b = (np.array([scores[r] for r in both]) for scores in (ours, theirs))
        error = _error(a - b)
        if state.rotation.closed_to(candidate) and both:
            score, incumbent_score = _as_hard_as_all(a, b, np.array(list(theirs.values())))
            return Comparison(candidate, incumbent, len(both), score, incumbent_score, error)
    else:
        a, b = (np.array(list(scores.values())) for scores in (ours, theirs))
        error = float(np.hypot(_error(a), _error(b)))
    return Comparison(candidate, incumbent, min(len(a), len(b)), _mean(a), _mean(b), error, paired=common)


def _as_hard_as_all(ours: FloatArray, theirs: FloatArray, all_of_theirs: FloatArray) -> tuple[float, float]:
    """Mean scores of a prompt and the incumbent, from what they share, as if all that the incumbent met were shared.

    Where an author was shown what the incumbent got wrong, these pairs are barred, and on those that are left the
    incumbent looks better than it is. So pairs on which it did badly count as often as they are among all it has met.
    Few of them are shared then; one imagined pair, on which the prompt does half as well as on the others, joins them.
    """
    level = _mean(all_of_theirs)
    low = theirs < level
    if low.all():
        return _mean(ours), _mean(theirs)
    well = _mean(ours[~low])
    badly = (float(ours[low].sum()) + 0.5 * well) / (int(low.sum()) + 1)
    share = float(np.mean(all_of_theirs < level))
    return share * badly + (1.0 - share) * well, level


def _scores(state: SelectionState, candidate: int) -> dict[int, float]:
    """Mean score of ``candidate`` on each item it has met; with independent pairs every evaluation is an item."""
    rows = state.candidates == candidate
    items, place = np.unique(state.items[rows], return_inverse=True)
    means = np.bincount(place, state.scores[rows]) / np.bincount(place)
    return dict(zip(items.tolist(), means.tolist(), strict=True))


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else 0.0


def _error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.inf
