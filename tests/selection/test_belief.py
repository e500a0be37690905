"""The averaged belief against brute-force Gaussian conditioning."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.selection.belief import condition_on_round, fit_belief, observed_information
from bestprompt.selection.kernels import Hypothesis, Shapes, candidate_shapes
from bestprompt.selection.noise import estimate_noise, score_scale
from bestprompt.selection.state import checked_round, empty_state, fold
from bestprompt.types import Observation


def told(n: int, many: int, seed: int = 0, item_sd: float = 0.0):
    """A state after ``many`` observations; candidate c on item r scores c/10 + item + noise."""
    rng = np.random.default_rng(seed)
    items, following, observations = rng.normal(0, item_sd, many), np.zeros(n, dtype=int), []
    for c in rng.integers(n, size=many):
        observations.append(Observation(int(c), int(following[c]), c / 10 + items[following[c]] + 0.1 * rng.normal()))
        following[c] += 1
    state = empty_state(n)
    return fold(state, checked_round(state, observations)), observations


def brute_force(prior, state, noise, centre):
    """Condition (v, b) on all observations jointly, then look at v."""
    n, items = state.n_candidates, int(state.replications.max()) + 1
    big = np.zeros((n + items, n + items))
    big[:n, :n] = prior
    big[n:, n:] = noise.item * np.eye(items)
    design = np.zeros((len(state), n + items))
    design[np.arange(len(state)), state.candidates] = 1.0
    design[np.arange(len(state)), n + state.replications] = 1.0
    spread = design @ big @ design.T + np.diag(noise.variances[state.candidates])
    gain = np.linalg.solve(spread, design @ big).T
    mean = centre + gain @ (state.scores - centre)
    covariance = big - gain @ design @ big
    _, logdet = np.linalg.slogdet(spread)
    y = state.scores - centre
    evidence = -0.5 * (y @ np.linalg.solve(spread, y) + logdet)
    return mean[:n], covariance[:n, :n], evidence


@pytest.mark.parametrize("common", [False, True])
def test_fit_equals_joint_conditioning(common):
    state, _ = told(6, 40, item_sd=0.3 if common else 0.0)
    Z = np.random.default_rng(1).standard_normal((6, 2))
    shapes = candidate_shapes(Z)
    belief = fit_belief(shapes, state, common)
    scale, centre = score_scale(state), float(state.scores.mean())
    kept = np.argsort(-belief.evidence, kind="stable")[: len(belief.log_weights)]
    exact = [brute_force(shapes.prior(shapes.hypotheses[g], scale), state, belief.noise, centre) for g in kept]
    np.testing.assert_allclose(belief.means, [mean for mean, _, _ in exact], atol=1e-8)
    np.testing.assert_allclose(belief.covariances, [covariance for _, covariance, _ in exact], atol=1e-8)
    prior = np.array([shapes.hypotheses[g].log_prior for g in kept])
    differences = np.array([e for _, _, e in exact]) + prior - belief.log_weights
    np.testing.assert_allclose(differences, differences[0], atol=1e-7)


@pytest.mark.parametrize("common", [False, True])
def test_conditioning_on_rounds_equals_conditioning_on_everything(common):
    whole, observations = told(6, 30, item_sd=0.3 if common else 0.0)
    Z = np.random.default_rng(1).standard_normal((6, 2))
    shapes = candidate_shapes(Z)
    state = empty_state(6)
    state = fold(state, checked_round(state, observations[:20]))
    belief = fit_belief(shapes, state, common)
    scale, centre = score_scale(state), float(state.scores.mean())
    for part in (observations[20:23], observations[23:]):
        state = fold(state, checked_round(state, part))
        belief = condition_on_round(belief, state)
    kept = np.argsort(-belief.evidence, kind="stable")[: len(belief.log_weights)]
    for row, g in enumerate(kept):
        mean, covariance, _ = brute_force(shapes.prior(shapes.hypotheses[g], scale), state, belief.noise, centre)
        np.testing.assert_allclose(belief.means[row], mean, atol=1e-7)
        np.testing.assert_allclose(belief.covariances[row], covariance, atol=1e-7)
    assert len(state) == len(whole) == belief.seen


def test_the_average_has_the_moments_of_its_draws():
    state, _ = told(5, 15)
    belief = fit_belief(candidate_shapes(np.random.default_rng(0).standard_normal((5, 2))), state, False)
    draws = belief.draws(40_000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), belief.mean, atol=0.01)
    np.testing.assert_allclose(np.cov(draws.T), belief.covariance, atol=0.01)
    np.testing.assert_allclose(belief.weights.sum(), 1.0)


def test_structure_is_believed_only_where_it_exists():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((40, 2))
    shapes = candidate_shapes(Z)
    for smooth in (True, False):
        truth = np.tanh(Z[:, 0]) if smooth else rng.standard_normal(40)
        state = empty_state(40)
        looks = [Observation(c, r, float(truth[c] + 0.1 * rng.normal())) for c in range(40) for r in range(3)]
        belief = fit_belief(shapes, fold(state, checked_round(state, looks)), False)
        best = shapes.hypotheses[int(np.argmax(belief.evidence))]
        assert (best.shape >= 0 and best.share > 0.9) == smooth


def test_item_variance_is_found():
    state, _ = told(8, 200, item_sd=0.5)
    noise = estimate_noise(state, common=True)
    assert 0.12 < noise.item < 0.5
    assert noise.variances.mean() == pytest.approx(0.01, rel=0.5)
    assert estimate_noise(state, common=False).item == 0.0


def test_equal_answers_leave_a_positive_variance():
    state = empty_state(3)
    state = fold(state, checked_round(state, [Observation(0, r, 1.0) for r in range(5)]))
    noise = estimate_noise(state, common=False)
    assert (noise.variances > 0).all()
    assert np.isfinite(observed_information(state, noise, 1.0).vector).all()


def test_unstructured_prior_is_exchangeable():
    shapes = Shapes(np.zeros((0, 3, 3)), (Hypothesis(-1, 0.5, 0.0),))
    prior = shapes.prior(shapes.hypotheses[0], 2.0)
    np.testing.assert_allclose(prior - 0.25, np.eye(3))
    np.testing.assert_allclose(shapes.prior(shapes.hypotheses[0], 2.0, np.array([0, 2])), prior[:2, :2])
