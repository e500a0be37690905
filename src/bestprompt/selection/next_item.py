"""Which item a candidate is asked next: the one whose answer tells most about the candidate.

Notation (symbol → name, shape):
    f_n, b_m   level of candidate n and effect of item m, normal as believed
    ω_nm       weight of an answer of n on m, the slope of the link at f_n + b_m
    k_m        variance of b_m as believed
    s²_nm      noise of an answer of n on m as a look at f_n: φ/ω_nm + k_m   → ``question_noise``  (N, I)

An item that everybody gets right, or wrong, has a small ω and tells no two candidates apart; one that many have met has
a small k. So n is asked the item with the least s²_nm among those it has not met and somebody else has, or the next one
in turn (:mod:`bestprompt.selection.rotation`) if no other beats it. What is asked depends on answers alone, so the
belief stays as right as its model; coverage is measured (``benchmarks/few_pairs.py``). An item is asked again only when
no other is left: by the same measure repetitions came too early and did harm, because the split of the variance that
they hang on is not known in time (``benchmarks/next_item.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bestprompt.selection.belief import Belief, item_effects
from bestprompt.selection.state import SelectionState, in_turn
from bestprompt.types import FloatArray, IntArray, Proposal

IN_TURN = 1.0 - 1e-9  # of two questions that tell the same, the one in turn


def question_noise(state: SelectionState, belief: Belief) -> FloatArray:
    """(N, I) s²_nm; infinite for items that n has met, and for those that nobody has unless it is n's turn."""
    effects, unknown = item_effects(state, belief)
    weights = belief.link.weights(belief.level[:, None] + effects, belief.variance[:, None] + unknown)
    noise = belief.dispersion.residual / weights + unknown
    met = np.zeros(noise.shape, dtype=np.bool_)
    met[state.candidates, state.items] = True
    turn = np.arange(state.n_candidates), state.rotation.item(state.following)
    may = np.broadcast_to(met.any(axis=0), met.shape).copy()
    may[turn] = True
    noise[turn] *= IN_TURN
    return np.where(may & ~met, noise, np.inf)


def most_telling(
    state: SelectionState, belief: Belief, chosen: IntArray, pending: Sequence[Proposal] = ()
) -> list[Proposal]:
    """A question for each of the ``chosen`` candidates, other than those ``pending``."""
    noise = question_noise(state, belief)
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
