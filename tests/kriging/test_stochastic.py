"""Stochastic kriging against an independent implementation, its own definition, and numerical slopes."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import tinygp

from bestprompt.errors import SurrogateError
from bestprompt.kriging.inputs import Observed, observed
from bestprompt.kriging.kernels import correlation, same_point, squared_distances, typical_distance
from bestprompt.kriging.stochastic import Hyperparameters, KrigingModel
from bestprompt.types import Evidence


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(25, 4))
    scores = 2.0 + np.sin(Z[:, 0]) + 0.3 * rng.normal(size=25)
    return Observed(Z, np.arange(25), scores, rng.uniform(0.02, 0.3, size=25))


@pytest.mark.parametrize("kernel", ["rbf", "matern52"])
def test_agrees_with_tinygp_for_a_known_mean(data, kernel):
    h = Hyperparameters(amplitude=0.8, length=1.7)
    mean, variance = KrigingModel(kernel, constant_trend=False, fixed=h).fit(data).predict(data.Z[:7] + 0.3)
    with jax.enable_x64(True):
        # tinygp's exp-squared has a factor ½ in the exponent, ours (the paper's) has not.
        peer = tinygp.kernels.ExpSquared(1.7 / np.sqrt(2), distance=tinygp.kernels.distance.L2Distance())
        if kernel == "matern52":
            peer = tinygp.kernels.Matern52(1.7, distance=tinygp.kernels.distance.L2Distance())

        @jax.jit  # one program instead of a hundred
        def of_the_peer(Z, scores, variances, at):
            likelihood, conditioned = tinygp.GaussianProcess(0.8 * peer, Z, diag=variances).condition(scores, at)
            return likelihood, conditioned.loc, conditioned.variance

        likelihood, *moments = map(np.asarray, of_the_peer(data.Z, data.scores, data.variances, data.Z[:7] + 0.3))
    assert mean == pytest.approx(moments[0], abs=1e-8)
    assert variance == pytest.approx(moments[1], abs=1e-6)
    fitted = KrigingModel(kernel, constant_trend=False, fixed=h).fit(data)
    assert fitted.log_likelihood == pytest.approx(float(likelihood))


def test_constant_trend_is_the_limit_of_a_vague_prior_on_it(data):
    """Universal kriging: mean and MSE of a GP whose constant has variance 10⁶."""
    h = Hyperparameters(amplitude=0.8, length=1.7, nugget=0.05)
    kriging = KrigingModel(nugget=True, fixed=h).fit(data)
    query = np.concatenate([data.Z[:2], data.Z[:3] + 0.5])
    mean, mse = kriging.predict(query)

    def prior(A, B):
        return 1e6 + 0.8 * correlation("rbf", squared_distances(A, B), 1.7)[0] + 0.05 * same_point(A, B)

    gain = np.linalg.solve(prior(data.Z, data.Z) + np.diag(data.variances), prior(data.Z, query)).T
    assert mean == pytest.approx(gain @ data.scores, abs=1e-4)
    covariance = prior(query, query) - gain @ prior(data.Z, query)
    assert mse == pytest.approx(np.diag(covariance), abs=1e-4)
    assert kriging.covariance(query) == pytest.approx(covariance, abs=1e-4)


@pytest.mark.parametrize("constant_trend", [True, False])
@pytest.mark.parametrize("kernel", ["rbf", "matern52"])
def test_likelihood_slope_is_the_numerical_one(data, kernel, constant_trend):
    model = KrigingModel(kernel, constant_trend, nugget=True)
    squared, same = squared_distances(data.Z, data.Z), same_point(data.Z, data.Z)
    at = np.log([0.5, 1.2, 0.04])
    _, slope = model._log_likelihood(at, data, squared, same)
    for i in range(3):
        step = np.eye(3)[i] * 1e-5
        up, down = (model._log_likelihood(at + s, data, squared, same)[0] for s in (step, -step))
        assert slope[i] == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-6)


def test_fit_recovers_hyperparameters_and_beats_wrong_ones():
    rng = np.random.default_rng(3)
    Z = rng.uniform(-3, 3, size=(150, 2))
    true = Hyperparameters(amplitude=1.5, length=1.2)
    covariance = 1.5 * correlation("rbf", squared_distances(Z, Z), 1.2)[0]
    surface = np.linalg.cholesky(covariance + 1e-9 * np.eye(150)) @ rng.normal(size=150)
    noise = np.full(150, 0.05)
    data = Observed(Z, np.arange(150), surface + np.sqrt(noise) * rng.normal(size=150), noise)
    fitted = KrigingModel().fit(data)
    assert fitted.hyperparameters.length == pytest.approx(true.length, rel=0.3)
    assert fitted.hyperparameters.amplitude == pytest.approx(true.amplitude, rel=0.8)
    wrong = KrigingModel(fixed=Hyperparameters(1.5, 0.3)).fit(data)
    assert fitted.log_likelihood > wrong.log_likelihood


def test_replications_shrink_the_error_towards_zero():
    Z = np.array([[0.0], [1.0]])
    h = Hyperparameters(1.0, 0.5)

    def mse(count):
        evidence = Evidence(np.array([count, 1]), np.array([0.2, 0.4]), np.array([0.1, 0.1]))
        return KrigingModel(fixed=h).fit(observed(Z, evidence)).predict(Z)[1][0]

    assert mse(1) > mse(10) > mse(1000)
    assert mse(100_000) < 1e-5


def test_exact_noise_free_conflict_is_refused_in_words():
    twice = Observed(np.zeros((2, 1)), np.arange(2), np.array([0.0, 1.0]), np.zeros(2))
    with pytest.raises(SurrogateError, match="not positive definite"):
        KrigingModel(fixed=Hyperparameters(1.0, 1.0)).fit(twice).predict(np.zeros((1, 1)))


def test_natural_units():
    assert typical_distance(np.zeros((5, 2))) == 1.0
    assert typical_distance(np.array([[0.0], [3.0]])) == 3.0
    A = np.array([[1e3, 0.1], [1e3, 0.1], [1e3, 0.2]])
    assert squared_distances(A, A) == pytest.approx(np.array([[0, 0, 0.01], [0, 0, 0.01], [0.01, 0.01, 0]]), abs=1e-12)
    assert same_point(A, A[:1]).ravel().tolist() == [1.0, 1.0, 0.0]
