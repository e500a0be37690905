"""Which item a candidate is asked next: the one whose answer tells most about the candidate.

Notation (symbol → name, shape):
    s²_nm      noise of an answer of n on m as a look at its level f_n: φ/ω_nm + k_m   → ``noise``  (N, I)
    ω_nm, k_m  weight of the answer, and how uncertain the item's effect is (``AveragedBelief.question_noise``)

An item that everybody gets right, or wrong, has a small ω and tells no two candidates apart; one that many have met has
a small k. So n is asked the item with the least s²_nm among those it has not met and somebody else has, or the next one
in turn (:mod:`bestprompt.selection.core.rotation`) if no other beats it. What is asked depends on answers alone, so the
belief stays as right as its model; coverage is measured (``benchmarks/few_pairs.py``). An item is asked again only when
no other is left: by the same measure repetitions came too early and did harm, because the split of the variance that
they hang on is not known in time (``benchmarks/next_item.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bestprompt.selection.core.state import SelectionState, in_turn
from bestprompt.types import FloatArray, IntArray, Proposal


def most_telling(
    state: SelectionState, noise: FloatArray, chosen: IntArray, pending: Sequence[Proposal] = ()
) -> list[Proposal]:
    """A question for each of the ``chosen`` candidates, other than those ``pending``; ``noise`` (N, I) of each."""
    noise = noise.copy()
    for p in pending:
        item = int(state.rotation.item(np.array([p.replication]))[0])
        if item < noise.shape[1]:
            noise[p.candidate, item] = np.inf
    proposals: list[Proposal] = []
    for c in map(int, chosen):
        item = int(np.argmin(noise[c]))
        if np.isfinite(noise[c, item]):
            noise[c, item] = np.inf
            proposals.append(Proposal(c, item))
        else:
            proposals += in_turn(state, [c], (*pending, *proposals))
    return proposals
