"""The default mode's belief: Gaussian about latent levels, the average over hypotheses weighted by their evidence.

Notation (symbol → name, shape):
    m, C       mean and covariance of f                              → ``Belief.level`` (N,), ``Belief.spread`` (N, N)
    m_g, C_g   the same under hypothesis g, w_g its probability: m = Σ w_g m_g, C = Σ w_g (C_g + (m_g − m)(m_g − m)ᵀ)
    ω_t, y_t   observation t, linearised (``link``)                  → ``Belief.precisions``, ``Belief.responses``  (t,)
    a, u, s²   one observation as a linear look at f: u = aᵀf + N(0, s²)

An observation of candidate n on item r, given the earlier observations S of the same item, is

    u = y_t − k Σ_S ω_s y_s,   a = e_n − k Σ_S ω_s e_s,   s² = 1/ω_t + k,   k = 1 / (1/τ² + Σ_S ω_s),

because the item effect b_r has the conditional mean k Σ_S ω_s (y_s − f_s) and variance k. With independent pairs τ² is
0, so a = e_n. Conditioning on a block of such looks is exact and costs O(N²) per look; linearisation, noise and
hypotheses are found anew, from all observations, each time their number has grown by a fixed factor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from bestprompt.selection.information import Information, conditioned, observed_information
from bestprompt.selection.kernels import Shapes
from bestprompt.selection.link import Link, link_of
from bestprompt.selection.noise import (
    PRIOR_SCALE,
    SHARED_GUESS,
    Dispersion,
    Noise,
    estimate_dispersion,
    shared_part,
)
from bestprompt.selection.state import SelectionState
from bestprompt.selection.these_items import Cells
from bestprompt.types import FloatArray, IntArray

GROWTH = 1.3
KEPT = 8
LEAST_WEIGHT = 0.02
HOPELESS = 9.0
FIRST_GUESSES = 3
AT_ONCE = 4 * 10**6  # numbers held when hypotheses are weighed together


@dataclass(frozen=True, slots=True)
class Belief:
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

    def draws(self, count: int, rng: np.random.Generator) -> FloatArray:
        """(count, N) joint draws of the mean scores."""
        return self.link.score(self._levels(count, rng), self.dispersion.item)

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


def item_effects(state: SelectionState, belief: Belief) -> tuple[FloatArray, FloatArray]:
    """Means and variances of the effects of all items seen or next in line, levels as believed; 0 without items."""
    items = int(max(state.rotation.item(state.following).max(), state.items.max(initial=0))) + 1
    if belief.dispersion.item <= 0.0:
        return np.zeros(items), np.zeros(items)
    which, who = state.items[: belief.seen], state.candidates[: belief.seen]
    surprise = belief.precisions * (belief.responses - belief.level[who])
    variance = 1.0 / (1.0 / belief.dispersion.item + np.bincount(which, belief.precisions, minlength=items))
    mean = variance * np.bincount(which, surprise, minlength=items)
    return np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)


def expected(belief: Belief, state: SelectionState, who: IntArray, which: IntArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of f_n + b_r for candidates ``who`` on items ``which``, as believed."""
    effects, unknown = item_effects(state, belief)
    return belief.level[who] + effects[which], belief.variance[who] + unknown[which]


@dataclass(frozen=True, slots=True)
class _Fit:
    """One pass of ``fit_belief``: observations linearised around a guess of η."""

    shapes: Shapes
    state: SelectionState
    link: Link
    dispersion: Dispersion
    precisions: FloatArray
    responses: FloatArray
    information: Information

    @classmethod
    def around(cls, shapes: Shapes, state: SelectionState, common: bool, belief: Belief | None) -> _Fit:
        """Observations linearised around ``belief``, or around the prior's centre."""
        link = link_of(state)
        if belief is None or belief.link.bounded != link.bounded:
            eta, variance = np.full(len(state), link.centre), np.full(len(state), link.unit**2 / 4.0)
        else:
            eta, variance = expected(belief, state, state.candidates, state.items)
        weights, responses = link.linearised(eta, variance, state.scores)
        items, known = state.items if common else None, 1.0 if link.binary else None
        guess = PRIOR_SCALE**2 * (4.0 if link.bounded else 1.0)
        shared, repetitions = _shared(state, belief, weights, responses - eta), state.repetitions
        weights = weights / (1.0 + shared * (repetitions - 1.0))
        dispersion = estimate_dispersion(responses, weights, state.candidates, items, known, guess)
        dispersion = replace(dispersion, shared=shared)
        precisions = weights / dispersion.residual
        information = observed_information(state, precisions, responses - link.centre, dispersion.item)
        return cls(shapes, state, link, dispersion, precisions, responses, information)

    def evidence(self, hypotheses: IntArray) -> FloatArray:
        """Log evidence and prior of each hypothesis, up to a constant shared by all.

        With A = LᵀKL and u = L⁻¹η it is −½ log|I + A| − ½ uᵀ(I + A)⁻¹u; both terms are read off one Cholesky factor,
        that of I + A bordered by u.
        """
        seen, size = self.information, self.information.evaluated.size
        u, level = seen.whitened(), seen.project(np.ones(size))
        own, shared = seen.project(seen.project(np.eye(size)).T), np.outer(level, level) * self.link.mean_variance
        shaped = [
            seen.project(seen.project(k[np.ix_(seen.evaluated, seen.evaluated)]).T) for k in self.shapes.correlations
        ]
        pieces = np.array_split(hypotheses, -(-hypotheses.size * (size + 1) ** 2 // AT_ONCE))
        return np.concatenate([self._evidence(piece, u, own, shared, shaped) for piece in pieces])

    def _evidence(
        self, hypotheses: IntArray, u: FloatArray, own: FloatArray, shared: FloatArray, shaped: list[FloatArray]
    ) -> FloatArray:
        size = u.size
        bordered = np.empty((hypotheses.size, size + 1, size + 1))
        bordered[:, :size, size] = bordered[:, size, :size] = u
        bordered[:, size, size] = u @ u + 1.0
        for row, g in enumerate(hypotheses):
            h = self.shapes.hypotheses[g]
            variance = (h.signal * self.link.unit) ** 2
            inner = shared + own * (variance * (1.0 - h.share))
            if h.shape >= 0:
                inner += shaped[h.shape] * (variance * h.share)
            inner[np.diag_indices(size)] += 1.0
            bordered[row, :size, :size] = inner
        factors = np.linalg.cholesky(bordered)
        log_determinants = np.log(np.diagonal(factors, axis1=1, axis2=2)[:, :size]).sum(axis=1)
        prior = np.array([self.shapes.hypotheses[g].log_prior for g in hypotheses])
        fits = (factors[:, size, :size] ** 2).sum(axis=1)
        return np.asarray(prior - log_determinants - 0.5 * fits, dtype=np.float64)

    def belief(self, kept: IntArray, log_weights: FloatArray, evidence: FloatArray) -> Belief:
        """Average over the ``kept`` hypotheses."""
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        level, spread = np.zeros(self.state.n_candidates), np.zeros((self.state.n_candidates,) * 2)
        means = []
        for g, weight in zip(kept, weights, strict=True):
            prior = self.shapes.prior(self.shapes.hypotheses[g], self.link.unit, self.link.mean_variance)
            mean, covariance = conditioned(prior, self.information)
            level += weight * mean
            spread += weight * covariance
            means.append(mean)
        offsets = np.sqrt(weights)[:, None] * (np.stack(means) - level)
        return Belief(
            level + self.link.centre,
            spread + offsets.T @ offsets,
            evidence,
            self.link,
            self.dispersion,
            self.precisions,
            self.responses,
            len(self.state),
        )


def fit_belief(shapes: Shapes, state: SelectionState, common: bool, before: Belief | None = None) -> Belief:
    """Belief after all observations: linearised, noise estimated, hypotheses weighed, the likeliest averaged.

    Observations are linearised around what was believed ``before``; without it, around an unstructured belief found in
    a few steps. Hypotheses that were hopeless before are not weighed again.
    """
    middle = np.array([sum(h.shape < 0 for h in shapes.hypotheses) // 2])
    nothing = np.zeros(len(shapes.hypotheses))
    fresh = before is None
    for _ in range(FIRST_GUESSES if fresh else 0):
        before = _Fit.around(shapes, state, common, before).belief(middle, np.zeros(1), nothing)
    assert before is not None
    if len(state) == 0:
        return before
    fit = _Fit.around(shapes, state, common, before)
    open_ones = np.flatnonzero(before.evidence >= before.evidence.max() - HOPELESS)
    evidence = np.full(nothing.size, -np.inf)
    evidence[open_ones] = fit.evidence(open_ones)
    kept = _likeliest(evidence)
    belief = fit.belief(kept, evidence[kept], evidence)
    return _Fit.around(shapes, state, common, belief).belief(kept, evidence[kept], evidence) if fresh else belief


def needs_fit(belief: Belief, state: SelectionState) -> bool:
    """Whether linearisation, noise and hypotheses should be found anew."""
    if len(state) >= max(belief.fitted * GROWTH, belief.fitted + 3):
        return True
    if state.repetitions[belief.seen :].max(initial=1) > 1:
        return True  # what earlier answers on the same item weigh has changed
    now = link_of(state)
    return (now.bounded, now.binary) != (belief.link.bounded, belief.link.binary)


def _shared(state: SelectionState, belief: Belief | None, weights: FloatArray, off: FloatArray) -> float:
    """ι, by how far answers are ``off`` (t,) what was believed; as guessed where nothing is known or repeated."""
    if belief is None or state.repetitions.max(initial=1) == 1:
        return SHARED_GUESS if belief is None else belief.dispersion.shared
    cells = state.candidates * (int(state.items.max()) + 1) + state.items
    return shared_part(off * np.sqrt(weights / belief.dispersion.residual), cells)


def _likeliest(evidence: FloatArray) -> IntArray:
    order = np.argsort(-evidence, kind="stable")[:KEPT]
    return np.asarray(order[evidence[order] >= evidence[order[0]] + np.log(LEAST_WEIGHT)], dtype=np.int64)


def condition_on_round(belief: Belief, state: SelectionState) -> Belief:
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
    belief: Belief, state: SelectionState, precisions: FloatArray, responses: FloatArray
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
