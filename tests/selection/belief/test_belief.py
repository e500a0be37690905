"""The averaged belief against brute-force Gaussian conditioning."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.selection.belief.belief import condition_on_round
from bestprompt.selection.belief.fitting import KEPT, LEAST_WEIGHT, fit_belief, needs_fit
from bestprompt.selection.belief.kernels import Hypothesis, Shapes, candidate_shapes
from bestprompt.selection.belief.noise import estimate_noise
from bestprompt.selection.core.state import checked_round, empty_state, fold
from bestprompt.types import Observation


def told(n: int, many: int, seed: int = 0, item_sd: float = 0.0, bounded: bool = False):
    """A state after ``many`` observations; candidate c on item r scores c/10 + item + noise, or right or wrong."""
    rng = np.random.default_rng(seed)
    items, following, observations = rng.normal(0, item_sd, many), np.zeros(n, dtype=int), []
    for c in rng.integers(n, size=many):
        score = c / 10 + items[following[c]] + 0.1 * rng.normal()
        observations.append(Observation(int(c), int(following[c]), float(score > 0.3) if bounded else score))
        following[c] += 1
    state = empty_state(n)
    return fold(state, checked_round(state, observations)), observations


def shapes_of(n: int = 6) -> Shapes:
    return candidate_shapes(np.random.default_rng(1).standard_normal((n, 2)))


def brute_force(shapes, g, state, belief):
    """Condition (f, b) on all linearised observations jointly, then look at f."""
    n, items, link = state.n_candidates, int(state.replications.max()) + 1, belief.link
    big = np.zeros((n + items, n + items))
    big[:n, :n] = shapes.prior(shapes.amounts(link.unit, link.mean_variance)[g])
    big[n:, n:] = belief.dispersion.item * np.eye(items)
    design = np.zeros((len(state), n + items))
    design[np.arange(len(state)), state.candidates] = 1.0
    design[np.arange(len(state)), n + state.replications] = 1.0
    spread = design @ big @ design.T + np.diag(1.0 / belief.precisions)
    gain = np.linalg.solve(spread, design @ big).T
    y = belief.responses - link.centre
    covariance = big - gain @ design @ big
    evidence = -0.5 * (y @ np.linalg.solve(spread, y) + np.linalg.slogdet(spread)[1])
    return (link.centre + gain @ y)[:n], covariance[:n, :n], evidence + shapes.log_priors[g]


def one_pass(shapes, state, common):
    """A belief that was linearised around another, so that evidence and belief share one linearisation."""
    return fit_belief(shapes, state, common, fit_belief(shapes, state, common))


@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("bounded", [False, True])
def test_fit_equals_joint_conditioning_averaged_over_hypotheses(common, bounded):
    state, _ = told(6, 40, item_sd=0.3 if common else 0.0, bounded=bounded)
    shapes = shapes_of()
    belief = one_pass(shapes, state, common)
    assert belief.link.bounded == bounded
    weighed = np.flatnonzero(np.isfinite(belief.evidence))
    exact = {g: brute_force(shapes, g, state, belief) for g in weighed}
    differences = np.array([exact[g][2] - belief.evidence[g] for g in weighed])
    np.testing.assert_allclose(differences, differences[0], atol=1e-7)
    order = np.argsort(-belief.evidence, kind="stable")[:KEPT]
    kept = order[belief.evidence[order] >= belief.evidence.max() + np.log(LEAST_WEIGHT)]
    w = np.exp(belief.evidence[kept] - belief.evidence.max())
    w /= w.sum()
    mean = sum(weight * exact[g][0] for weight, g in zip(w, kept, strict=True))
    within = sum(weight * exact[g][1] for weight, g in zip(w, kept, strict=True))
    between = sum(weight * np.outer(exact[g][0] - mean, exact[g][0] - mean) for weight, g in zip(w, kept, strict=True))
    np.testing.assert_allclose(belief.level, mean, atol=1e-8)
    np.testing.assert_allclose(belief.spread, within + between, atol=1e-8)


@pytest.mark.parametrize("common", [False, True])
def test_conditioning_on_rounds_equals_conditioning_on_everything(common):
    """With one hypothesis and scores beyond [0, 1] all is linear, so rounds and one block must agree exactly."""
    _, observations = told(6, 30, item_sd=0.3 if common else 0.0)
    shapes = Shapes(np.zeros((0, 6, 6)), (Hypothesis(-1, 0.5, 0.0),))
    state = empty_state(6)
    state = fold(state, checked_round(state, observations[:20]))
    belief = fit_belief(shapes, state, common)
    for part in (observations[20:23], observations[23:]):
        state = fold(state, checked_round(state, part))
        belief = condition_on_round(belief, state)
    mean, covariance, _ = brute_force(shapes, 0, state, belief)
    np.testing.assert_allclose(belief.level, mean, atol=1e-7)
    np.testing.assert_allclose(belief.spread, covariance, atol=1e-7)
    assert belief.seen == 30


def test_right_or_wrong_answers_meet_the_exact_posterior():
    """One candidate, logistic link: against numerical integration of prior times likelihood."""
    shapes = Shapes(np.zeros((0, 1, 1)), (Hypothesis(-1, 0.5, 0.0),))
    grid = np.linspace(-8, 8, 4001)
    for right, wrong in ((3, 1), (12, 2), (30, 30)):
        state = empty_state(1)
        scores = [1.0] * right + [0.0] * wrong
        state = fold(state, checked_round(state, [Observation(0, r, s) for r, s in enumerate(scores)]))
        belief = fit_belief(shapes, state, False)
        density = np.exp(
            -0.5 * grid**2 / (1.0 + 2.25) - right * np.log1p(np.exp(-grid)) - wrong * np.log1p(np.exp(grid))
        )
        density /= density.sum()
        mean = float(density @ grid)
        assert belief.level[0] == pytest.approx(mean, abs=0.06)
        assert belief.spread[0, 0] == pytest.approx(float(density @ (grid - mean) ** 2), rel=0.15)
        assert belief.mean[0] == pytest.approx(float(density @ (1.0 / (1.0 + np.exp(-grid)))), abs=0.01)


def test_draws_have_the_moments_of_the_belief():
    state, _ = told(5, 60, bounded=True)
    belief = fit_belief(shapes_of(5), state, False)
    draws = belief.draws(40_000, np.random.default_rng(0))
    assert draws.min() > 0.0
    assert draws.max() < 1.0
    np.testing.assert_allclose(draws.mean(axis=0), belief.mean, atol=0.01)
    np.testing.assert_allclose(np.cov(draws.T), belief.covariance, atol=0.01)


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
    assert (estimate_noise(state, common=False).variances > 0).all()
    for score in (0.0, 0.4, 1.0):
        alike = fold(empty_state(3), checked_round(empty_state(3), [Observation(0, r, score) for r in range(5)]))
        belief = fit_belief(shapes_of(3), alike, common=True)
        assert np.isfinite(belief.mean).all()
        assert (np.diag(belief.spread) > 0).all()


def test_unstructured_prior_is_exchangeable():
    shapes = Shapes(np.zeros((0, 3, 3)), (Hypothesis(-1, 0.5, 0.0),))
    prior = shapes.prior(shapes.amounts(2.0, 0.25)[0])
    np.testing.assert_allclose(prior - 0.25, np.eye(3))


def test_a_score_beyond_one_changes_the_link_at_once():
    state, _ = told(4, 20, bounded=True)
    belief = fit_belief(shapes_of(4), state, False)
    assert belief.link.binary
    assert not needs_fit(belief, state)
    for score, bounded in ((0.5, True), (1.5, False)):
        more = fold(state, checked_round(state, [Observation(0, 99, score)]))
        assert needs_fit(belief, more)
        assert fit_belief(shapes_of(4), more, False, belief).link.bounded == bounded
