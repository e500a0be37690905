"""Which source deserves the next proposal, by what its earlier ones gained per call.

Notation (symbol → name):
    v*        mean score of the leader                                                     → ``best``
    s         how far a written prompt lies from the one it was made from, before any is seen → ``std``
    b, c      what the prompts of this source were off by so far, and how much wider (``refinement/calibration.py``)
    a         proposals made for each that was fit to be tried                              → ``attempts``
    w         evaluations that one call to the writer is worth                              → ``price``

A source is a guess at v* + b ± c s that costs a w calls before the first evaluation. Its worth is the most that m calls
to that guess may gain, per call, those of the writer included: max_m E[(v* + b + s_m X − v*)⁺] / (m + a w), where m is
at least what it takes to return a prompt. By that measure refinement's prompts and the calls inside the set are judged,
too, so all three compete. A source that was not tried yet has b = 0 and its full uncertainty; one that disappoints has
b < 0 and falls behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bestprompt.kriging.inputs import Observed
from bestprompt.refinement.calibration import Correction, Prediction, corrected
from bestprompt.refinement.improvement import value_per_call
from bestprompt.selection import SelectionState
from bestprompt.selection.belief.noise import shrunken_item_effects
from bestprompt.types import FloatArray

# s in units of √(v*(1 − v*)): what prompts made of one another differ by on the bundled tasks.
SPREAD, LEAST_LEVEL = 0.3, 0.2


@dataclass(frozen=True, slots=True)
class Worth:
    """What the next proposal of a source is expected to be, and to gain per call."""

    mean: float
    std: float
    correction: Correction
    value: float


def own_scores(state: SelectionState, noise: FloatArray, common: bool) -> Observed:
    """The evaluated candidates by their own answers, item effects taken out; ``noise`` (N,) of one answer."""
    scores = state.scores - shrunken_item_effects(state) if common and len(state) else state.scores
    sums = np.bincount(state.candidates, scores, minlength=state.n_candidates)
    rows = np.flatnonzero(state.counts)
    means, variances = sums[rows] / state.counts[rows], noise[rows] / state.counts[rows]
    return Observed(np.zeros((rows.size, 1)), rows, means, np.maximum(variances, 1e-8))


def worth(
    best: float,
    noise: float,
    data: Observed,
    past: Sequence[Prediction],
    refused: int,
    price: float,
    remaining: int,
    fewest: int = 1,
) -> Worth:
    """What the next proposal of one source is worth.

    Args:
        best: v*.
        noise: Variance of one answer.
        data: What was seen of all candidates.
        past: What was predicted of this source's earlier prompts.
        refused: Its proposals that were refused.
        price: w.
        remaining: Evaluations left.
        fewest: Evaluations without which a prompt cannot be returned, however good it is.
    """
    std = SPREAD * float(np.sqrt(max(best, LEAST_LEVEL) * max(1.0 - best, 0.0)))
    if std <= 0.0 or remaining < fewest:
        return Worth(best, 0.0, Correction(), 0.0)
    found = corrected(past, data, 2.0 * std)  # b_0 = s: nothing is known of a source before it was tried
    mean, total = best + found.bias, found.inflation * std
    attempts = (len(past) + refused + 1.0) / (len(past) + 1.0)
    return Worth(mean, total, found, value_per_call(mean, total, noise, best, remaining, price * attempts, fewest))
