"""The default mode's belief: Gaussian about latent levels, the average over hypotheses weighted by their evidence.

Notation (symbol → name, shape):
    m, C       mean and covariance of f                              → ``level`` (N,), ``spread`` (N, N)
    m_g, C_g   the same under hypothesis g, w_g its probability: m = Σ w_g m_g, C = Σ w_g (C_g + (m_g − m)(m_g − m)ᵀ)
    ω_t, y_t   observation t, linearised (``link``)                  → ``precisions``, ``responses``  (t,)
    a, u, s²   one observation as a linear look at f: u = aᵀf + N(0, s²)

An observation of candidate n on item r, given the earlier observations S of the same item, is

    u = y_t − k Σ_S ω_s y_s,   a = e_n − k Σ_S ω_s e_s,   s² = 1/ω_t + k,   k = 1 / (1/τ² + Σ_S ω_s),

because the item effect b_r has the conditional mean k Σ_S ω_s (y_s − f_s) and variance k. With independent pairs τ² is
0, so a = e_n. Conditioning on a block of such looks is exact and costs O(N²) per look; :mod:`fitting` finds
linearisation, noise and hypotheses anew, from all observations, each time their number has grown by a fixed factor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from bestprompt.selection.belief.link import Link
from bestprompt.selection.belief.noise import Dispersion
from bestprompt.selection.core.state import SelectionState
from bestprompt.selection.core.views import Cells, Noise, View
from bestprompt.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class AveragedBelief:
    """Gaussian belief about the N latent levels; ``mean``, ``covariance`` and ``draws`` are of mean scores.

    Attributes:
        level: (N,) mean of the latent levels.
        spread: (N, N) their covariance.
        evidence: Log evidence of every hypothesis at the last fit; −inf where it was not weighed again.
        link: How levels become scores.
        dispersion: φ and τ² on the latent scale.
        precisions: (t,) ω of all observations conditioned on.
        responses: (t,) y of all observations conditioned on.
        fitted: Number of observations at the last fit.
    """

    level: FloatArray
    spread: FloatArray
    evidence: FloatArray
    link: Link
    dispersion: Dispersion
    precisions: FloatArray
    responses: FloatArray
    fitted: int

    @property
    def seen(self) -> int:
        """Number of observations conditioned on."""
        return int(self.responses.size)

    @property
    def variance(self) -> FloatArray:
        """(N,) variance of the latent levels."""
        return np.maximum(np.diagonal(self.spread), 0.0)

    @property
    def mean(self) -> FloatArray:
        """(N,) posterior mean scores."""
        return self.link.score(self.level, self.variance + self.dispersion.item)

    @property
    def slope(self) -> FloatArray:
        """(N,) how much a score moves with its latent level, on average over what is not known."""
        return self.link.slope(self.level, self.variance + self.dispersion.item)

    @property
    def covariance(self) -> FloatArray:
        """(N, N) posterior covariance of the scores, to first order."""
        return self.covariance_of(self.slope)

    def covariance_of(self, slope: FloatArray) -> FloatArray:
        """The same where ``slope`` is at hand."""
        return np.asarray(self.spread * slope * slope[:, None], dtype=np.float64)

    @property
    def noise(self) -> Noise:
        """Variances of one score around the candidate's mean, split into the item's part and the rest."""
        mean, item = self.mean, self.dispersion.item * float(np.mean(self.slope**2))
        if not self.link.bounded:
            return Noise(np.full(mean.size, self.dispersion.residual), item, self.dispersion.shared)
        variances = self.dispersion.residual * np.maximum(mean * (1.0 - mean) - item, 1e-10)
        return Noise(variances, item, self.dispersion.shared)

    @property
    def diagnostics(self) -> Mapping[str, float]:
        """None: there are no chains and no descent that could fail."""
        return {}

    def draws(self, count: int, rng: np.random.Generator) -> FloatArray:
        """(count, N) joint draws of the mean scores."""
        return self.link.score(self._levels(count, rng), self.dispersion.item)

    def view(
        self,
        state: SelectionState,
        remaining: int,
        draws: Callable[[], FloatArray],
        rows: IntArray | None = None,
    ) -> View:
        """What a decision among the candidates ``rows`` looks at; means and covariances are exact, not the draws'."""
        view = self.exact_view(state, remaining)
        return view if rows is None else view.among(rows)

    def exact_view(self, state: SelectionState, remaining: int) -> View:
        """What decisions look at: scores, not levels. The next item's unknown effect is part of the noise."""
        slope = self.slope
        noise = slope**2 * self._next_noise(state)
        return View(self.mean, self.covariance_of(slope), noise, remaining, state.left)

    def _next_noise(self, state: SelectionState) -> FloatArray:
        """(N,) noise of each candidate's next answer as a look at its level."""
        effects, unknown = (of_items[state.rotation.item(state.following)] for of_items in item_effects(state, self))
        residual = self.dispersion.residual / self.link.weights(self.level + effects, self.variance + unknown)
        in_turn = residual * self.dispersion.repeated_noise(state.met_before) + unknown
        if not state.rotation.telling or len(state) == 0:
            return in_turn
        least = self.question_noise(state).min(axis=1)
        return np.where(np.isfinite(least), least, in_turn)

    def question_noise(self, state: SelectionState) -> FloatArray:
        """(N, I) s²_nm = φ/ω_nm + k_m: noise of an answer of n on item m as a look at f_n.

        ω_nm is the slope of the link at f_n + b_m and k_m the variance of b_m. Infinite for items that n has met, and
        for those that nobody has unless it is n's turn; of questions that tell the same, the one in turn is least.
        """
        effects, unknown = item_effects(state, self)
        weights = self.link.weights(self.level[:, None] + effects, self.variance[:, None] + unknown)
        noise = self.dispersion.residual / weights + unknown
        met = np.zeros(noise.shape, dtype=np.bool_)
        met[state.candidates, state.items] = True
        turn = np.arange(state.n_candidates), state.rotation.item(state.following)
        open_ones = np.broadcast_to(met.any(axis=0), met.shape).copy()
        open_ones[turn] = True
        for candidate, items in state.rotation.barred:
            met[candidate, np.array([item for item in items if item < effects.size], dtype=np.int64)] = True
        noise[turn] *= 1.0 - 1e-9
        return np.where(open_ones & ~met, noise, np.inf)

    def _levels(self, count: int, rng: np.random.Generator) -> FloatArray:
        noise = rng.standard_normal((count, self.level.size))
        return np.asarray(self.level + noise @ _square_root(self.spread).T, dtype=np.float64)

    def cells(
        self, state: SelectionState, rows: IntArray, count: int, widening: float, rng: np.random.Generator
    ) -> Cells:
        """``count`` joint draws of what the candidates ``rows`` are expected to score on every item of the rotation.

        Levels are spread by ``widening`` around their means; item effects are drawn given the levels.
        """
        items = state.rotation.items
        assert items is not None, "only a known number of items can be gone through"
        levels = self.level + widening * (self._levels(count, rng) - self.level)
        effects = np.zeros((count, items))
        if self.dispersion.item > 0.0:
            weights = np.zeros((items, self.level.size))
            np.add.at(weights, (state.items, state.candidates), self.precisions)
            variance = 1.0 / (1.0 / self.dispersion.item + weights.sum(axis=1))
            total = np.bincount(state.items, self.precisions * self.responses, minlength=items)
            noise = rng.standard_normal((count, items))
            effects = variance * (total - levels @ weights.T) + np.sqrt(variance) * noise
        mean = self.link.score(levels[:, rows, None] + effects[:, None, :], 0.0)
        variance = self.dispersion.residual * (mean * (1.0 - mean) if self.link.bounded else np.ones_like(mean))
        return Cells(mean, variance, 1.0 if state.rotation.repeats == "never" else self.dispersion.shared)


def _square_root(covariance: FloatArray) -> FloatArray:
    """(N, N) S with S Sᵀ = ``covariance``: Cholesky, ten times as fast as the eigenvalues that serve where it fails."""
    jitter = 1e-10 * float(np.max(np.diag(covariance))) * np.eye(covariance.shape[0])
    try:
        return np.asarray(cholesky(covariance + jitter, lower=True, check_finite=False), dtype=np.float64)
    except LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)), dtype=np.float64)


def item_effects(state: SelectionState, belief: AveragedBelief) -> tuple[FloatArray, FloatArray]:
    """Means and variances of the effects of all items seen or next in line, levels as believed; 0 without items."""
    items = int(max(state.rotation.item(state.following).max(), state.items.max(initial=0))) + 1
    if belief.dispersion.item <= 0.0:
        return np.zeros(items), np.zeros(items)
    which, who = state.items[: belief.seen], state.candidates[: belief.seen]
    surprise = belief.precisions * (belief.responses - belief.level[who])
    variance = 1.0 / (1.0 / belief.dispersion.item + np.bincount(which, belief.precisions, minlength=items))
    mean = variance * np.bincount(which, surprise, minlength=items)
    return np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)


def expected(
    belief: AveragedBelief, state: SelectionState, who: IntArray, which: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of f_n + b_r for candidates ``who`` on items ``which``, as believed."""
    effects, unknown = item_effects(state, belief)
    return belief.level[who] + effects[which], belief.variance[who] + unknown[which]


def condition_on_round(belief: AveragedBelief, state: SelectionState) -> AveragedBelief:
    """Belief after the observations of ``state`` it has not seen yet, hypotheses and noise as they are."""
    new = slice(belief.seen, len(state))
    eta, variance = expected(belief, state, state.candidates[new], state.items[new])
    weights, responses = belief.link.linearised(eta, variance, state.scores[new])
    precisions = np.concatenate([belief.precisions, weights / belief.dispersion.residual])
    responses = np.concatenate([belief.responses, responses])
    reach, inner, surprise = _looks(belief, state, precisions, responses)
    factor = cholesky(inner, lower=True, overwrite_a=True, check_finite=False)
    half, white = np.hsplit(
        solve_triangular(factor, np.column_stack([reach, surprise]), lower=True, check_finite=False), [-1]
    )  # (q, N), (q, 1)
    return replace(
        belief,
        level=belief.level + white[:, 0] @ half,
        spread=belief.spread - half.T @ half,
        precisions=precisions,
        responses=responses,
    )


def _looks(
    belief: AveragedBelief, state: SelectionState, precisions: FloatArray, responses: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Observations the belief has not seen as linear looks: aᵀC (q, N), aᵀCa + diag(s²) (q, q) and u − aᵀm (q,)."""
    new, who, item = np.arange(belief.seen, len(state)), state.candidates, belief.dispersion.item
    which = state.items
    values, variances, rows = responses[new], 1.0 / precisions[new], np.arange(new.size)
    if item <= 0.0:
        inner = belief.spread[np.ix_(who[new], who[new])]
        inner[rows, rows] += variances
        return belief.spread[who[new]], inner, values - belief.level[who[new]]
    looks = np.zeros((new.size, state.n_candidates))
    looks[rows, who[new]] = 1.0
    for row, t in enumerate(new):
        same = np.flatnonzero(which[:t] == which[t])
        weight = precisions[same]
        k = 1.0 / (1.0 / item + weight.sum())
        np.add.at(looks[row], who[same], -k * weight)
        values[row] -= k * float(weight @ responses[same])
        variances[row] += k
    reach = looks @ belief.spread
    inner = reach @ looks.T
    inner[rows, rows] += variances
    return reach, inner, values - looks @ belief.level
