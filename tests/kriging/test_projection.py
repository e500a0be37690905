"""Projection stochastic kriging: the weight-space form against the paper's formulas, and what training must not do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bestprompt.kriging.features import descent, features_at, train_together
from bestprompt.kriging.inputs import Observed
from bestprompt.kriging.kernels import typical_distance
from bestprompt.kriging.projection import Principal, ProjectionKriging, kriging_projection, paper_kriging
from bestprompt.kriging.stochastic import KrigingModel

LATENT = 300
SMALL = ProjectionKriging(grid=(16, 32), inputs=8, hidden=8, frequencies=64, splits=3, stretches=4, capacity=64)


def latent_problem(n, seed=0, noise=0.02, k=3):
    """Vectors (n, 300) on a curved manifold of ``k`` dimensions, a smooth truth, and noisy means of it."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(np.random.default_rng(99).standard_normal((LATENT, 2 * k)))[0]
    u = rng.uniform(-1.5, 1.5, (n, k))
    X = np.tanh(u @ basis[:, :k].T + 0.3 * np.sin(2 * u) @ basis[:, k:].T)
    truth = 0.5 + 0.3 * np.cos(u[:, 0]) - 0.1 * u[:, 1]
    variances = noise * rng.uniform(0.3, 2.0, n)
    data = Observed(X, np.arange(n), truth + np.sqrt(variances) * rng.standard_normal(n), variances)
    return data, truth


@pytest.fixture(scope="module")
def fitted():
    data, _ = latent_problem(40)
    return SMALL.fit(Principal.of(data.Z, SMALL.inputs), data, np.random.default_rng(1)), data


def direct(model, data, X):
    """eq.pskpredictor and eq.predictionuncertainty with the N x N matrices the paper writes down."""
    seen, new = model.features(data.Z), model.features(X)
    covariance = seen @ seen.T + np.diag(data.variances + model.nugget)
    reach = new @ seen.T
    mean = model.trend + reach @ np.linalg.solve(covariance, data.scores - model.trend)
    variance = (new**2).sum(1) - (reach * np.linalg.solve(covariance, reach.T).T).sum(1)
    return mean, variance


@pytest.mark.slow
def test_weight_space_prediction_equals_the_papers_formulas(fitted):
    model, data = fitted
    X = latent_problem(25, seed=5)[0].Z
    mean, std = model.predict(X)
    expected_mean, expected_variance = direct(model, data, X)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-6)
    np.testing.assert_allclose(std**2, expected_variance, atol=1e-6)
    assert model.dimension < len(data.scores)


def test_likelihood_equals_the_gaussian_density_of_the_means(fitted):
    model, data = fitted
    features = model.features(data.Z)
    n, unit = len(data.scores), model.unit
    covariance = (features @ features.T + np.diag(data.variances + model.nugget)) / unit**2
    density = multivariate_normal(np.zeros(n), covariance).logpdf((data.scores - model.trend) / unit)
    expected = (density + 0.5 * n * np.log(2 * np.pi)) / n
    assert model.log_likelihood(data) == pytest.approx(expected, abs=1e-8)


@pytest.mark.slow
def test_training_follows_the_gradient_of_the_likelihood(fitted):
    """``descent`` holds P⁻¹ fixed; its slope must still be that of eq.likelihood, here by central differences."""
    import jax
    import jax.numpy as jnp

    from bestprompt.kriging.features import FeatureFit, Rows

    model, data = fitted
    x = model.principal.coordinates(data.Z)
    scores = (data.scores - model.trend) / model.unit
    rows = Rows(*(jnp.asarray(a.astype(np.float32)) for a in (x, scores, data.variances / model.unit**2)))
    mask = (np.arange(max(SMALL.grid)) < model.dimension).astype(np.float32)
    task = FeatureFit(jnp.ones(len(x), jnp.float32), jnp.zeros(len(x), jnp.float32), jnp.asarray(mask))
    slope = jax.grad(descent)(model.network, rows, task)
    for name in ("log_amplitude", "log_nugget"):
        value = getattr(model.network, name)
        step = 0.02
        moved = [
            replace(model, network=_with(model.network, name, value + s * step)).log_likelihood(data) for s in (1, -1)
        ]
        assert float(getattr(slope, name)) == pytest.approx(-(moved[0] - moved[1]) / (2 * step), rel=0.02, abs=1e-3)


def _with(network, name, value):
    import equinox as eqx

    return eqx.tree_at(lambda n: getattr(n, name), network, value)


def test_updating_with_new_vectors_equals_conditioning_on_all(fitted):
    model, data = fitted
    first, rest = data.take(np.arange(25)), data.take(np.arange(25, 40))
    stepwise = model.conditioned(first)
    for i in range(len(rest.scores)):
        stepwise = stepwise.updated(rest.Z[i : i + 1], rest.scores[i : i + 1], rest.variances[i : i + 1])
    X = latent_problem(10, seed=6)[0].Z
    for a, b in zip(stepwise.predict(X), model.predict(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)
    assert stepwise.network is model.network


def test_further_evaluations_shrink_uncertainty_there(fitted):
    model, _ = fitted
    X = latent_problem(1, seed=8)[0].Z
    _, before = model.predict(X)
    _, after = model.updated(X, np.array([0.5]), np.array([0.01])).predict(X)
    assert after[0] < before[0]


def test_few_rows_in_many_dimensions_do_not_overfit():
    """30 rows, noisier than the truth varies, in 300 dimensions: better than the mean score, no worse than kriging."""
    errors, spreads, covered, kriging = [], [], [], []
    for seed in range(6):
        data, _ = latent_problem(30, seed=seed, noise=0.02)
        test, truth = latent_problem(200, seed=100 + seed)
        principal = Principal.of(data.Z, SMALL.inputs)
        model = SMALL.fit(principal, data, np.random.default_rng(seed))
        mean, std = model.predict(test.Z)
        errors.append(np.mean((mean - truth) ** 2))
        plain = KrigingModel(nugget=True).fit(replace(data, Z=principal.rows))
        kriging.append(np.mean((plain.predict(principal.coordinates(test.Z))[0] - truth) ** 2))
        spreads.append(truth.var())
        covered.append(np.mean(np.abs(mean - truth) < 1.96 * np.sqrt(std**2 + model.nugget)))
    assert np.mean(errors) < np.mean(spreads)
    assert np.mean(errors) < 1.2 * np.mean(kriging)
    assert np.mean(covered) > 0.75


def test_pure_noise_is_not_learned():
    """Over four sets of scores that are noise alone, predictions vary less than those of a plane fitted to them."""
    learned, fitted_plane = [], []
    for seed in range(4):
        rng, data, X = (
            np.random.default_rng([3, seed]),
            latent_problem(40, seed=seed)[0],
            latent_problem(100, seed=50)[0].Z,
        )
        noise = replace(data, scores=0.5 + 0.3 * rng.standard_normal(40), variances=np.full(40, 0.09))
        principal = Principal.of(data.Z, SMALL.inputs)
        learned.append(SMALL.fit(principal, noise, rng).predict(X)[0].var())
        seen, new = (np.column_stack([np.ones(len(Z)), principal.coordinates(Z)]) for Z in (data.Z, X))
        fitted_plane.append((new @ np.linalg.lstsq(seen, noise.scores, rcond=None)[0]).var())
    assert np.sum(learned) < np.sum(fitted_plane)


def test_only_the_span_of_the_set_matters(fitted):
    model, data = fitted
    away = np.random.default_rng(0).standard_normal(LATENT)
    away -= model.principal.axes.T @ (model.principal.axes @ away)
    for a, b in zip(model.predict(data.Z[:5]), model.predict(data.Z[:5] + away), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_growing_data_and_every_dimension_use_the_same_compiled_programs():
    principal = Principal.of(latent_problem(60)[0].Z, SMALL.inputs)
    data, _ = latent_problem(60)
    SMALL.fit(principal, data.take(np.arange(10)), np.random.default_rng(0)).predict(data.Z)
    before = train_together._cache_size(), features_at._cache_size()
    for n in (11, 20, 33, 60):
        SMALL.fit(principal, data.take(np.arange(n)), np.random.default_rng(n)).predict(data.Z)
    assert (train_together._cache_size(), features_at._cache_size()) == before


def test_the_dimension_is_chosen_by_the_one_standard_error_rule():
    recipe = ProjectionKriging(grid=(2, 4, 8), splits=3)
    table = np.full((3, 3, 2), -2.0)
    table[1, :, 1] = [-1.0, -1.1, -0.9]  # clearly better than D* = 2
    table[2, :, 1] = [-0.9, -1.12, -0.88]  # best, but not by one standard error
    assert recipe._one_standard_error(table)[:2] == (1, 1)
    table[2, :, 1] = [-0.5, -0.6, -0.4]
    assert recipe._one_standard_error(table)[:2] == (2, 1)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_handful_of_rows_still_gives_a_prediction(n):
    data, _ = latent_problem(n)
    model = SMALL.fit(Principal.of(data.Z, SMALL.inputs), data, np.random.default_rng(0))
    mean, std = model.predict(latent_problem(5, seed=9)[0].Z)
    assert np.isfinite(mean).all()
    assert (std > 0).all()


@pytest.mark.slow
def test_paper_recipe_has_no_trend_and_no_nugget():
    data, _ = latent_problem(20)
    recipe = replace(paper_kriging(), grid=(8,), inputs=8, frequencies=16, hidden=8, splits=2, stretches=2, capacity=64)
    model = recipe.fit(Principal.of(data.Z, 8), data, np.random.default_rng(0))
    assert model.trend == 0.0
    assert model.nugget < 1e-12
    assert model.checkpoint == 2


def test_paper_recipe_takes_the_most_accurate_dimension_at_the_end_of_training():
    table = np.full((3, 3, 2), -2.0)
    table[0, :, 0] = 0.0  # untrained, and best of all
    table[1, :, 1] = [-1.0, -1.1, -0.9]
    table[2, :, 1] = [-0.9, -1.12, -0.88]  # best, if not by one standard error
    assert not paper_kriging().early_stopping
    assert paper_kriging()._most_accurate(table) == (2, 1, pytest.approx(-2.9 / 3))


def test_input_uncertainty_agrees_with_brute_force(fitted):
    """X ~ N(m, Σ), then v(X) from the posterior: draw both, many times."""
    model, data = fitted
    rng = np.random.default_rng(2)
    root = 0.02 * rng.standard_normal((LATENT, LATENT)) / np.sqrt(LATENT) + 0.3 * model.principal.axes.T[
        :, :3
    ] @ rng.standard_normal((3, LATENT)) / np.sqrt(LATENT)
    mean, unknown, decided = model.input_uncertainty(data.Z[0], root.T, rng, draws=20_000)
    variance = unknown + decided
    draws = data.Z[0] + rng.standard_normal((20_000, LATENT)) @ root.T
    means, stds = model.predict(draws)
    scores = means + stds * rng.standard_normal(means.size)
    assert mean == pytest.approx(scores.mean(), abs=5 * scores.std() / np.sqrt(20_000))
    assert variance == pytest.approx(scores.var(), rel=0.06)
    assert variance > model.predict(data.Z[:1])[1][0] ** 2


def test_without_training_it_is_kriging_on_the_principal_coordinates():
    """The default's recipe: predictions of finite rank close to those of stochastic kriging with the same kernel."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 4)) @ rng.standard_normal((4, LATENT)) / np.sqrt(LATENT)
    scores = 0.5 + 0.3 * np.tanh(X[:, 0] / X[:, 0].std()) + 0.02 * rng.standard_normal(60)
    principal, variances = Principal.of(X, 8), np.full(40, 0.02**2)
    recipe = replace(kriging_projection(), inputs=8)
    found = recipe.fit(principal, Observed(X[:40], np.arange(40), scores[:40], variances), rng)
    exact = KrigingModel(nugget=True).fit(
        Observed(principal.coordinates(X[:40]), np.arange(40), scores[:40], variances),
        unit=typical_distance(principal.rows),
    )
    mean, _ = found.predict(X[40:])
    true, _ = exact.predict(principal.coordinates(X[40:]))
    assert found.checkpoint == 0
    assert np.sqrt(((mean - true) ** 2).mean()) < 0.3 * scores.std()
