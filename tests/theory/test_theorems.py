"""The paper's theorems and propositions, as statements a program can fail."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bestprompt.acquisition.functions import CountGamma, LogBeta, ModifiedUCB
from bestprompt.acquisition.maximize import Argmax
from bestprompt.acquisition.sparse import SparseTheta
from bestprompt.surrogates.linear import gaussian_weights
from bestprompt.types import Posterior


# ------------------------------------------------------------------------------------- Theorem 1: consistency of M-UCB
def run_m_ucb(features, truth, noise, acquisition, budget, rng):
    """Algorithm 1 with a linear model of the given features; returns counts and selected candidate at checkpoints."""
    n, p = features.shape
    counts, totals = np.zeros(n, int), np.zeros(n)
    trace = {}
    for step in range(budget):
        seen = counts > 0
        averages = totals[seen] / counts[seen]
        belief = gaussian_weights(features[seen], averages, noise[seen] / counts[seen], np.zeros(p), np.ones(p))
        spread = np.linalg.solve(belief.factor, features.T)
        posterior = Posterior(features @ belief.mean, np.sqrt((spread**2).sum(0)))
        scores = acquisition(posterior, counts, step + 1)
        row = int(Argmax()(lambda rows, scores=scores: scores[rows], n, 1, rng)[0])
        counts[row] += 1
        totals[row] += truth[row] + np.sqrt(noise[row]) * rng.standard_normal()
        if step + 1 in (budget // 10, budget):
            observed = np.where(counts > 0, totals / np.maximum(counts, 1), -np.inf)
            trace[step + 1] = counts.copy(), int(observed.argmax())
    return trace


@pytest.mark.parametrize("bonus", ["paper", "default"])
def test_theorem_1_every_prompt_is_evaluated_without_bound_and_the_choice_converges(bonus):
    """The surrogate is wrong on purpose (one slope for five unrelated scores): the count bonus alone must see to it."""
    truth = np.array([0.2, 0.5, 0.45, 0.3, 0.55])
    features, noise = np.column_stack([np.ones(5), [0.0, 0.3, 0.5, 0.9, 1.0]]), np.full(5, 0.04)
    acquisition = ModifiedUCB.paper() if bonus == "paper" else ModifiedUCB(LogBeta(1.0), CountGamma(1.0))
    chosen = []
    for seed in range(4):
        trace = run_m_ucb(features, truth, noise, acquisition, 3000, np.random.default_rng(seed))
        early, late = trace[300][0], trace[3000][0]
        # In the end counts grow like β_t² ∝ ln t. Before that the bonus, β·c/√r, outweighs every difference in mean
        # until r ≈ 2c² ln t/Δ², here 130 for c = 1 and Δ = .35, 520 for c = 2: growth is faster, nearly even.
        assert (late > np.log(3000) / np.log(300) * early).all()
        assert late.min() > 130
        chosen.append(trace[3000][1])
    assert (truth[chosen] == truth.max()).all()


def test_without_the_count_bonus_the_theorem_fails():
    """The contrast that shows the test above tests something.

    A misspecified surrogate and γ = 0 starve the best prompt.
    """
    truth = np.array([0.2, 0.6, 0.2, 0.25, 0.3])
    features, noise = np.column_stack([np.ones(5), [0.0, 0.1, 0.5, 0.9, 1.0]]), np.full(5, 0.01)
    none = ModifiedUCB(LogBeta(0.1), CountGamma(0.0))
    counts = run_m_ucb(features, truth, noise, none, 2000, np.random.default_rng(2))[2000][0]
    assert counts.min() < 10


# ---------------------------------------------------------------------------------------- Theorem 2: PR-M-UCB is M-UCB
def expected_acquisition(theta, alpha):
    return theta @ alpha / theta.sum()


@pytest.mark.parametrize("alpha", [[0.3, 0.9, 0.1], [0.7, 0.7, 0.2], [1.0, 1.0, 1.0], [-2.0, -1.0, -1.0]])
def test_theorem_2_support_of_the_maximisers(alpha):
    """All θ on a grid of [0, 1]³ (without 0): union of supports of the maximisers = maximisers of α, exactly."""
    alpha = np.array(alpha)
    grid = [np.array(t) for t in itertools.product((0.0, 0.25, 0.5, 1.0), repeat=3) if any(t)]
    values = np.array([expected_acquisition(theta, alpha) for theta in grid])
    assert values.max() == pytest.approx(alpha.max(), abs=1e-15)
    maximisers = [theta for theta, value in zip(grid, values, strict=True) if value >= values.max() - 1e-12]
    support = {int(i) for theta in maximisers for i in np.flatnonzero(theta)}
    assert support == {int(i) for i in np.flatnonzero(alpha == alpha.max())}


# -------------------------------------------------------------------- Propositions 2 and 3: gradient, and its estimate
def exact_gradient(theta, alpha):
    """∇ Σ α_i θ_i / Σθ = (α − α̃) / Σθ."""
    return (alpha - expected_acquisition(theta, alpha)) / theta.sum()


def test_gradient_of_the_expected_acquisition():
    rng = np.random.default_rng(0)
    theta, alpha = rng.uniform(0.1, 0.9, 6), rng.normal(size=6)
    numerical = [
        (expected_acquisition(theta + e, alpha) - expected_acquisition(theta - e, alpha)) / 2e-6
        for e in 1e-6 * np.eye(6)
    ]
    assert exact_gradient(theta, alpha) == pytest.approx(numerical, abs=1e-7)
    # E over ∇p: Σ_i α_i ∇p_i, the proposition's own form.
    jacobian = np.eye(6) / theta.sum() - np.outer(theta, np.ones(6)) / theta.sum() ** 2
    assert alpha @ jacobian == pytest.approx(exact_gradient(theta, alpha))


def reinforce_moments(alpha, samples, baseline, rate=1e-7):
    """Exact mean and total variance of a step's movement over its rate: all samples enumerated, p = θ/Σθ each."""
    n, everything = alpha.size, np.arange(alpha.size)
    start = SparseTheta(n, np.random.default_rng(5)).value(everything)
    mean, square = np.zeros(n), 0.0
    for rows in itertools.product(range(n), repeat=samples):
        theta, rows = SparseTheta(n, np.random.default_rng(5)), np.array(rows)
        advantages = alpha[rows]
        if baseline:
            advantages = (advantages - advantages.mean()) * samples / (samples - 1)
        theta.ascend(rows, advantages, rate)
        moved, chance = (theta.value(everything) - start) / rate, np.prod(start[rows] / start.sum())
        mean, square = mean + chance * moved, square + chance * float(moved @ moved)
    return start, mean, square - float(mean @ mean)


def test_reinforce_step_is_an_unbiased_gradient_step():
    """E of the movement = rate × exact gradient, with and without baseline; the baseline cuts the variance."""
    alpha, spread = np.array([2.0, 2.3, 2.1, 2.6]), {}
    for baseline in (False, True):
        start, mean, spread[baseline] = reinforce_moments(alpha, 3, baseline)
        assert mean == pytest.approx(exact_gradient(start, alpha), abs=1e-6)
    assert spread[True] < 0.1 * spread[False]


# ------------------------------------------------------------------------------------ Proposition 1: K draws are enough
def test_proposition_1_the_sampled_maximum_converges():
    """α̂(ẑ*) → max α as K grows, at the rate K^(−1/2), for the exact posterior of a linear model."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(30, 4))
    belief = gaussian_weights(features[:8], rng.normal(size=8), np.full(8, 0.3), np.zeros(4), np.ones(4))
    std = np.sqrt((np.linalg.solve(belief.factor, features.T) ** 2).sum(0))
    acquisition, counts = ModifiedUCB(LogBeta(1.0), CountGamma(0.3)), np.arange(30) % 4
    best = acquisition(Posterior(features @ belief.mean, std), counts, 20).max()

    def gap(k):
        draws = belief.draw(k, rng) @ features.T
        estimate = Posterior(draws.mean(0), draws.std(0, ddof=1))
        return abs(acquisition(estimate, counts, 20).max() - best)

    gaps = [np.mean([gap(k) for _ in range(30)]) for k in (20, 320, 5120)]
    assert gaps[0] > gaps[1] > gaps[2]
    # The slope of 30 averaged gaps over a factor 256 in K has a standard error of about .03.
    assert np.log(gaps[0] / gaps[2]) / np.log(256) == pytest.approx(0.5, abs=0.1)
