"""The default mode's belief: an average of Gaussian beliefs, one per hypothesis, weighted by their evidence.

Notation (symbol → name, shape):
    m_g, C_g   mean and covariance of v under hypothesis g            → ``Belief.means`` (G, N), ``Belief.covariances``
    w_g        posterior probability of hypothesis g                  → ``Belief.weights``  (G,)
    Λ, η       information the observations carry about v             → ``Information.root`` (M, M), ``.vector`` (M,)
    a, u, s²   one observation as a linear look at v: u = aᵀv + N(0, s²)

An observation of candidate n on item r, given the earlier observations S of the same item, is

    u = v̂_nr − k Σ_S v̂_s / σ_s²,   a = e_n − k Σ_S e_s / σ_s²,   s² = σ_n² + k,   k = 1 / (1/τ² + Σ_S 1/σ_s²),

because the item effect b_r has the conditional mean k Σ_S (v̂_s − v_s)/σ_s² and variance k. With independent pairs τ² is
0, so a = e_n. Conditioning on a block of such looks is exact and costs O(N²) per look; noise, scale and hypotheses are
estimated anew, from all observations, each time their number has grown by a fixed factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from bestprompt.selection.kernels import Hypothesis, Shapes
from bestprompt.selection.noise import Noise, estimate_noise, score_scale
from bestprompt.selection.state import SelectionState
from bestprompt.types import FloatArray, IntArray

GROWTH = 1.3
KEPT = 5
LEAST_WEIGHT = 0.01
HOPELESS = 12.0


@dataclass(frozen=True, slots=True)
class Belief:
    """Average of G Gaussian beliefs about the N mean scores.

    Attributes:
        means: (G, N)
        covariances: (G, N, N)
        log_weights: (G,) log evidence up to a constant.
        evidence: Log evidence of every hypothesis at the last fit; −inf where it was not weighed again.
        noise: Noise variances used.
        fitted: Number of observations at the last fit.
        seen: Number of observations conditioned on.
    """

    means: FloatArray
    covariances: FloatArray
    log_weights: FloatArray
    evidence: FloatArray
    noise: Noise
    fitted: int
    seen: int

    @property
    def weights(self) -> FloatArray:
        """(G,) posterior probabilities of the hypotheses."""
        w = np.exp(self.log_weights - self.log_weights.max())
        return np.asarray(w / w.sum(), dtype=np.float64)

    @property
    def mean(self) -> FloatArray:
        """(N,) posterior mean of the average."""
        return np.asarray(self.weights @ self.means, dtype=np.float64)

    @property
    def covariance(self) -> FloatArray:
        """(N, N) posterior covariance of the average: within the hypotheses and between them."""
        w = self.weights
        offsets = np.sqrt(w)[:, None] * (self.means - w @ self.means)
        within = np.tensordot(w, self.covariances, axes=1)
        return np.asarray(within + offsets.T @ offsets, dtype=np.float64)

    def draws(self, count: int, rng: np.random.Generator) -> FloatArray:
        """(count, N) joint draws of the mean scores."""
        parts = []
        for g, many in enumerate(rng.multinomial(count, self.weights)):
            if many:
                values, vectors = np.linalg.eigh(self.covariances[g])
                root = vectors * np.sqrt(np.maximum(values, 0.0))
                parts.append(self.means[g] + rng.standard_normal((many, root.shape[0])) @ root.T)
        return np.concatenate(parts)


@dataclass(frozen=True, slots=True)
class Information:
    """What the observations say about the M evaluated candidates.

    Attributes:
        root: L with L Lᵀ = Λ: (M, M), or (M,) where Λ is diagonal (no item effects).
        vector: (M,) η.
        evaluated: (M,) which candidates they are.
    """

    root: FloatArray
    vector: FloatArray
    evaluated: IntArray

    def project(self, x: FloatArray) -> FloatArray:
        """Lᵀ x for x of shape (M,) or (M, k)."""
        if self.root.ndim == 2:
            return np.asarray(self.root.T @ x, dtype=np.float64)
        return np.asarray(self.root * x if x.ndim == 1 else self.root[:, None] * x, dtype=np.float64)


def observed_information(state: SelectionState, noise: Noise, centre: float) -> Information:
    """Λ and η of all observations about v − ``centre``, item effects integrated out."""
    n, who = state.n_candidates, state.candidates
    weights = 1.0 / noise.variances[who]
    values = weights * (state.scores - centre)
    diagonal = np.bincount(who, weights, minlength=n)
    vector = np.bincount(who, values, minlength=n).astype(np.float64)
    evaluated = np.flatnonzero(state.counts)
    if noise.item <= 0.0 or len(state) == 0:
        return Information(np.sqrt(diagonal[evaluated]), vector[evaluated], evaluated)
    items = int(state.replications.max()) + 1
    table = np.zeros((items, n))
    table[state.replications, who] = weights
    gain = 1.0 / (1.0 / noise.item + table.sum(axis=1))
    totals = np.bincount(state.replications, values, minlength=items)
    vector -= table.T @ (gain * totals)
    table = table[:, evaluated]
    matrix = np.diag(diagonal[evaluated]) - (table * gain[:, None]).T @ table
    root = cholesky(matrix, lower=True, check_finite=False)
    return Information(np.asarray(root), vector[evaluated], evaluated)


def fit_belief(shapes: Shapes, state: SelectionState, common: bool, before: Belief | None = None) -> Belief:
    """Belief after all observations: noise estimated, hypotheses weighed, the likeliest kept.

    Hypotheses that were hopeless at the fit ``before`` are not weighed again.
    """
    noise, scale = estimate_noise(state, common), score_scale(state)
    centre = float(state.scores.mean()) if len(state) else 0.5
    information = observed_information(state, noise, centre)
    evidence = np.zeros(len(shapes.hypotheses)) if before is None else before.evidence.copy()
    open_ones = np.flatnonzero(evidence >= evidence.max() - HOPELESS)
    if information.evaluated.size:
        values = [_evidence(shapes, shapes.hypotheses[g], scale, information) for g in open_ones]
        evidence = np.full(evidence.size, -np.inf)
        evidence[open_ones] = values
    kept = _likeliest(evidence) if information.evaluated.size else open_ones[-1:]
    fits = [_condition(shapes.prior(shapes.hypotheses[g], scale), information) for g in kept]
    return Belief(
        np.stack([mean for mean, _ in fits]) + centre,
        np.stack([covariance for _, covariance in fits]),
        evidence[kept],
        evidence,
        noise,
        len(state),
        len(state),
    )


def needs_fit(belief: Belief, observations: int) -> bool:
    """Whether noise and hypotheses should be estimated anew."""
    return observations >= max(belief.fitted * GROWTH, belief.fitted + 3)


def _likeliest(evidence: FloatArray) -> IntArray:
    order = np.argsort(-evidence, kind="stable")[:KEPT]
    return np.asarray(order[evidence[order] >= evidence[order[0]] + np.log(LEAST_WEIGHT)], dtype=np.int64)


def _capacitance(inside: FloatArray, information: Information) -> FloatArray:
    """Cholesky factor of I + LᵀKL: at least 1 in every direction, so never ill-conditioned."""
    inner = information.project(information.project(inside).T)
    inner[np.diag_indices(inner.shape[0])] += 1.0
    return np.asarray(cholesky(inner, lower=True, overwrite_a=True, check_finite=False), dtype=np.float64)


def _evidence(shapes: Shapes, hypothesis: Hypothesis, scale: float, information: Information) -> float:
    """Log evidence and prior, up to a constant shared by all hypotheses: −½ log|I + LᵀKL| + ½ ηᵀCη + log prior."""
    inside = shapes.prior(hypothesis, scale, information.evaluated)
    factor = _capacitance(inside, information)
    reach = inside @ information.vector
    explained = solve_triangular(factor, information.project(reach), lower=True, check_finite=False)
    fit = information.vector @ reach - explained @ explained
    return float(0.5 * fit - np.log(np.diag(factor)).sum()) + hypothesis.log_prior


def _condition(prior: FloatArray, information: Information) -> tuple[FloatArray, FloatArray]:
    """Mean (N,) and covariance (N, N) of v − centre given the observations: C = K − KL (I + LᵀKL)⁻¹ LᵀK."""
    rows = information.evaluated
    if rows.size == 0:
        return np.zeros(prior.shape[0]), prior
    factor = _capacitance(prior[np.ix_(rows, rows)], information)
    half = solve_triangular(factor, information.project(prior[rows]), lower=True, check_finite=False)
    covariance = prior - half.T @ half
    return covariance[:, rows] @ information.vector, covariance


def condition_on_round(belief: Belief, state: SelectionState) -> Belief:
    """Belief after the observations of ``state`` it has not seen yet, hypotheses and noise as they are."""
    looks, values, variances = _looks(belief, state)
    reach = belief.covariances @ looks.T  # (G, N, q)
    spread = looks @ reach + np.diag(variances)  # (G, q, q)
    surprise = values - belief.means @ looks.T  # (G, q)
    factor = np.linalg.cholesky(spread)
    half = np.linalg.solve(factor, np.swapaxes(reach, 1, 2))  # (G, q, N)
    white = np.linalg.solve(factor, surprise[:, :, None])[:, :, 0]
    log_determinant = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    return Belief(
        belief.means + np.einsum("gqn,gq->gn", half, white),
        belief.covariances - np.swapaxes(half, 1, 2) @ half,
        belief.log_weights - 0.5 * (white**2).sum(axis=1) - log_determinant,
        belief.evidence,
        belief.noise,
        belief.fitted,
        len(state),
    )


def _looks(belief: Belief, state: SelectionState) -> tuple[FloatArray, FloatArray, FloatArray]:
    """New observations as linear looks: a (q, N), u (q,), s² (q,)."""
    new = np.arange(belief.seen, len(state))
    precision = 1.0 / belief.noise.variances
    who = state.candidates
    looks = np.zeros((new.size, state.n_candidates))
    values = state.scores[new].copy()
    variances = belief.noise.variances[who[new]].copy()
    looks[np.arange(new.size), who[new]] = 1.0
    if belief.noise.item > 0.0:
        for row, t in enumerate(new):
            same = np.flatnonzero(state.replications[:t] == state.replications[t])
            weight = precision[who[same]]
            k = 1.0 / (1.0 / belief.noise.item + weight.sum())
            np.add.at(looks[row], who[same], -k * weight)
            values[row] -= k * float(weight @ state.scores[same])
            variances[row] += k
    return looks, values, variances
