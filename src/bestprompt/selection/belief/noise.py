"""How noisy one evaluation is, and how much of the noise is the item's.

Notation (symbol → name, shape):
    σ_n²   variance of one evaluation of candidate n, items aside  → ``Noise.variances``  (N,)
    τ²     variance of the item effects (pairs = common)           → ``Noise.item``, ``Dispersion.item``
    φ      variance of an observation of weight 1, effects aside   → ``Dispersion.residual``
    ι      share of φ that two answers of n on item r have in common → ``Dispersion.shared``
    b_r    effect of item r on every candidate's score

Model of an observation: y_t = f_n + b_r + ε_t with b_r ~ N(0, τ²), τ² = 0 for independent pairs, and var(ε_t) = φ/ω_t.
What ε holds of the interaction of candidate and item comes again when the item does: A answers of one candidate on one
item tell as much as A / (1 + ι (A − 1)) of them on as many items (``worth_of_repetitions``).
Variances of single candidates come from few, often binary, scores, so each is shrunk toward the pooled variance with
the weight of ``PRIOR_WEIGHT`` evaluations and never falls below a floor (the paper takes the raw variance, which is 0
for five equal answers).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bestprompt.selection.core.state import SelectionState
from bestprompt.selection.core.views import SHARED_GUESS, Noise
from bestprompt.types import FloatArray, IntArray

PRIOR_WEIGHT = 15.0
POOLED_WEIGHT = 10.0
POOLED_SHARE = 0.85
PRIOR_SCALE = 0.3
FLOOR = 1e-4
ROUNDS = 12
SHARED_WEIGHT = 10.0
ITEM_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Dispersion:
    """Variance components: φ, τ², and ι, the part of φ that repetitions share."""

    residual: float
    item: float
    shared: float = SHARED_GUESS

    def repeated_noise(self, met: IntArray) -> FloatArray:
        """(n,) how many times noisier than a new item a further answer on one is that was ``met`` (n,) times."""
        gain = worth_of_repetitions(met + 1, self.shared) - worth_of_repetitions(met, self.shared)
        return np.asarray(1.0 / np.maximum(gain, 1e-9))


def worth_of_repetitions(answers: IntArray, shared: float) -> FloatArray:
    """(n,) A / (1 + ι (A − 1)): how many answers on different items A ``answers`` (n,) on one item are worth."""
    return np.asarray(answers / (1.0 + shared * np.maximum(answers - 1.0, 0.0)), dtype=np.float64)


def shared_part(residuals: FloatArray, cells: IntArray, known: float = SHARED_GUESS) -> float:
    """ι from standardised ``residuals`` (t,) of answers grouped by candidate and item in ``cells`` (t,).

    The mean product of two answers of one cell, with the weight of ``SHARED_WEIGHT`` pairs of answers on a guess.
    """
    sums, squares, sizes = (np.bincount(cells, w) for w in (residuals, residuals**2, np.ones(residuals.size)))
    products, pairs = float((sums**2 - squares).sum()) / 2.0, float((sizes * (sizes - 1.0)).sum()) / 2.0
    return float(np.clip((products + SHARED_WEIGHT * known) / (pairs + SHARED_WEIGHT), 0.0, 1.0))


def score_scale(state: SelectionState) -> float:
    """Typical distance of a score from the overall mean, with the weight of two evaluations on a prior guess."""
    t = len(state)
    spread = float(np.sum((state.scores - state.scores.mean()) ** 2)) if t else 0.0
    return float(np.sqrt((spread + 2.0 * PRIOR_SCALE**2) / (t + 2.0)))


def estimate_noise(state: SelectionState, common: bool) -> Noise:
    """Noise variances on the scale of the scores: one for all on ``common`` items, else one per candidate."""
    n, scale = state.n_candidates, score_scale(state)
    if len(state) == 0:
        return Noise(np.full(n, scale**2), 0.0)
    if common:
        spread = estimate_dispersion(
            state.scores, np.ones(len(state)), state.candidates, state.items, None, PRIOR_SCALE**2
        )
        return Noise(np.full(n, spread.residual), spread.item)
    residuals, freedom = state.scores - state.means[state.candidates], np.maximum(state.counts - 1.0, 0.0)
    squares = np.bincount(state.candidates, residuals**2, minlength=n)
    # Sampling goes on where answers are good, so early within-candidate variances are too small: lean on the overall
    # variance of the scores, most of which is noise.
    expected = POOLED_SHARE * scale**2
    pooled = (float(squares.sum()) + POOLED_WEIGHT * expected) / (freedom.sum() + POOLED_WEIGHT)
    variances = (squares + PRIOR_WEIGHT * pooled) / (freedom + PRIOR_WEIGHT)
    return Noise(np.maximum(variances, max(FLOOR * scale**2, 1e-10)), 0.0)


def shrunken_item_effects(state: SelectionState) -> FloatArray:
    """(t,) estimated effect of the item behind each score, shrunken; candidates and items as crossed random effects.

    A prompt that was looked at rarely has met few items; if these were easy, it looks good.
    """
    noise = estimate_noise(state, common=True)
    if noise.item <= 0.0:
        return np.zeros(len(state))
    who, which = state.candidates, state.items
    error = noise.variances[who]
    centred = state.scores - state.scores.mean()
    spread = max(float(np.var(state.means[state.counts > 0])), 0.05 * float(error.mean()))
    effect, item = np.zeros(state.n_candidates), np.zeros(int(which.max()) + 1)
    for _ in range(ITEM_ROUNDS):
        weight = np.bincount(who, 1.0 / error, minlength=effect.size) + 1.0 / spread
        effect = np.bincount(who, (centred - item[which]) / error, minlength=effect.size) / weight
        weight = np.bincount(which, 1.0 / error, minlength=item.size) + 1.0 / noise.item
        item = np.bincount(which, (centred - effect[who]) / error, minlength=item.size) / weight
    return np.asarray(item[which])


def estimate_dispersion(
    values: FloatArray, weights: FloatArray, who: IntArray, which: IntArray | None, known: float | None, guess: float
) -> Dispersion:
    """φ and τ² of observations ``values`` (t,) of candidates ``who`` on items ``which`` (``None``: no items).

    Candidates and items are two crossed random effects; the variances are re-estimated from their posterior moments a
    few times (expectation–maximisation with independent factors). ``known`` is φ where it need not be estimated, else
    ``guess`` is what is expected of the total before any observation.
    """
    if values.size == 0:
        return Dispersion(known or POOLED_SHARE * guess, 0.0)
    if which is None and known is not None:
        return Dispersion(known, 0.0)
    common, items = which is not None, np.zeros_like(who) if which is None else which
    centred = values - float(weights @ values / weights.sum())
    total = (float(weights @ centred**2) + 2.0 * guess) / (weights.size + 2.0)
    typical = total / float(weights.mean())
    residual = known or (0.4 if common else POOLED_SHARE) * total
    signal, item = 0.3 * typical, 0.3 * typical if common else 0.0
    seen, used = np.bincount(who) > 0, np.bincount(items) > 0
    item_effect: FloatArray = np.zeros(used.size)
    item_variance: FloatArray = np.zeros(used.size)
    for _ in range(ROUNDS):
        w = weights / residual
        effect_variance = 1.0 / (np.bincount(who, w) + 1.0 / signal)
        effect = effect_variance * np.bincount(who, w * (centred - item_effect[items]))
        signal = _moment(effect[seen] ** 2 + effect_variance[seen], 0.2 * typical)
        if common:
            item_variance = np.asarray(1.0 / (np.bincount(items, w) + 1.0 / item), dtype=np.float64)
            item_effect = item_variance * np.bincount(items, w * (centred - effect[who]))
            item = _moment(item_effect[used] ** 2 + item_variance[used], 0.2 * typical)
        if known is None:
            left = (centred - effect[who] - item_effect[items]) ** 2 + effect_variance[who] + item_variance[items]
            # Sampling goes on where answers are good, so early residuals are too small.
            expected = POOLED_SHARE * max(total - item * float(weights.mean()), 0.2 * total)
            residual = (float(weights @ left) + POOLED_WEIGHT * expected) / (weights.size + POOLED_WEIGHT)
            residual = max(residual, FLOOR * total, 1e-10)
    return Dispersion(float(residual), float(item))


def _moment(squares: FloatArray, guess: float) -> float:
    """Mean of squared effects, with the weight of one on a prior guess so that it never collapses to 0."""
    return float((squares.sum() + guess + 1e-12) / (squares.size + 1.0))
