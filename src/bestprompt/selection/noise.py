"""How noisy one evaluation is, and how much of the noise is the item's.

Notation (symbol → name, shape):
    σ_n²   variance of one evaluation of candidate n, items aside  → ``Noise.variances``  (N,)
    τ²     variance of the item effects (pairs = common)           → ``Noise.item``
    b_r    effect of item r on every candidate's score

Model of a score: v̂_nr = v_n + b_r + ε_nr with b_r ~ N(0, τ²), τ² = 0 for independent pairs. Variances of single
candidates come from few, often binary, scores, so each is shrunk toward the pooled variance with the weight of
``PRIOR_WEIGHT`` evaluations and never falls below a floor (the paper takes the raw variance, which is 0 for five equal
answers).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bestprompt.selection.state import SelectionState
from bestprompt.types import FloatArray

PRIOR_WEIGHT = 15.0
POOLED_WEIGHT = 10.0
POOLED_SHARE = 0.85
PRIOR_SCALE = 0.3
FLOOR = 1e-4
ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Noise:
    """Variances of one evaluation: (N,) per candidate without the item's part, and the item's part."""

    variances: FloatArray
    item: float


def score_scale(state: SelectionState) -> float:
    """Typical distance of a score from the overall mean, with the weight of two evaluations on a prior guess."""
    t = len(state)
    spread = float(np.sum((state.scores - state.scores.mean()) ** 2)) if t else 0.0
    return float(np.sqrt((spread + 2.0 * PRIOR_SCALE**2) / (t + 2.0)))


def estimate_noise(state: SelectionState, common: bool) -> Noise:
    """Noise variances from all scores; with ``common`` pairs the item effects are taken out first."""
    n, scale = state.n_candidates, score_scale(state)
    if len(state) == 0:
        return Noise(np.full(n, scale**2), 0.0)
    residuals, freedom, item = _residuals(state, common, scale)
    squares = np.bincount(state.candidates, residuals**2, minlength=n)
    # Sampling goes on where answers are good, so early within-candidate variances are too small: lean on the overall
    # variance of the scores, most of which is noise.
    expected = POOLED_SHARE * max(scale**2 - item, 0.2 * scale**2)
    pooled = (float(squares.sum()) + POOLED_WEIGHT * expected) / (freedom.sum() + POOLED_WEIGHT)
    variances = (squares + PRIOR_WEIGHT * pooled) / (freedom + PRIOR_WEIGHT)
    return Noise(np.maximum(variances, max(FLOOR * scale**2, 1e-10)), item)


def _residuals(state: SelectionState, common: bool, scale: float) -> tuple[FloatArray, FloatArray, float]:
    """Scores less candidate and item effects (t,), degrees of freedom left per candidate (N,), and τ².

    With items, candidate and item effects are two crossed random effects; their variances are re-estimated from
    their posterior moments a few times (expectation–maximisation with independent factors).
    """
    who, counts, n = state.candidates, state.counts, state.n_candidates
    if not common:
        return state.scores - state.means[who], np.maximum(counts - 1.0, 0.0), 0.0
    which, items = state.replications, int(state.replications.max()) + 1
    sizes = np.bincount(which, minlength=items)
    signal, item, error = 0.3 * scale**2, 0.3 * scale**2, 0.4 * scale**2
    centred = state.scores - state.scores.mean()
    item_effect = np.zeros(items)
    effect = np.zeros(n)
    for _ in range(ROUNDS):
        effect_variance = 1.0 / (counts / error + 1.0 / signal)
        effect = effect_variance * np.bincount(who, centred - item_effect[which], minlength=n) / error
        item_variance = 1.0 / (sizes / error + 1.0 / item)
        item_effect = item_variance * np.bincount(which, centred - effect[who], minlength=items) / error
        seen, used = counts > 0, sizes > 0
        signal = _moment(effect[seen] ** 2 + effect_variance[seen], scale)
        item = _moment(item_effect[used] ** 2 + item_variance[used], scale)
        spread = (centred - effect[who] - item_effect[which]) ** 2 + effect_variance[who] + item_variance[which]
        error = _moment(spread, scale)
    # Each candidate's share of the fitted effects costs degrees of freedom; the random effects make it a fraction.
    left = 1.0 - _leverage(effect_variance, item_variance, error, who, which)
    freedom = np.maximum(np.bincount(who, left, minlength=n), 0.0)
    return centred - effect[who] - item_effect[which], freedom, item


def _leverage(
    effect_variance: FloatArray, item_variance: FloatArray, error: float, who: np.ndarray, which: np.ndarray
) -> FloatArray:
    """(t,) share of each observation that the fitted effects explain by construction."""
    return np.asarray(np.minimum((effect_variance[who] + item_variance[which]) / error, 1.0))


def _moment(squares: FloatArray, scale: float) -> float:
    """Mean of squared effects, with a little weight on a prior guess so that it never collapses to 0."""
    return float((squares.sum() + 0.2 * scale**2) / (squares.size + 1.0))
