"""The kriging twin and the choice of β and γ on it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from bestprompt.acquisition.functions import CountGamma, LogBeta, ModifiedUCB
from bestprompt.kriging.inputs import observed
from bestprompt.kriging.stochastic import KrigingModel
from bestprompt.tuning.synthetic import Twin, kriging_twin, twin_of
from bestprompt.tuning.tuner import Tuner
from bestprompt.types import Evidence, Posterior


@pytest.fixture(scope="module")
def warm():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40, 2))
    truth = 0.5 + 0.25 * np.sin(Z[:, 0]) * np.cos(Z[:, 1])
    counts = np.where(np.arange(40) < 8, 5, 0)
    means = np.where(counts > 0, truth + 0.1 * rng.normal(size=40), np.nan)
    evidence = Evidence(counts, means, np.full(40, 0.05))
    return SimpleNamespace(Z=Z, evidence=evidence, twin=kriging_twin(Z, evidence))


def test_twin_has_the_mean_and_error_of_stochastic_kriging(warm):
    mean, mse = KrigingModel().fit(observed(warm.Z, warm.evidence)).predict(warm.Z)
    assert warm.twin.mean == pytest.approx(mean, abs=0.05)
    exact = kriging_twin(warm.Z, warm.evidence, rank=40)
    cut = kriging_twin(warm.Z, warm.evidence, rank=5)
    assert cut.factor.shape == (40, 5)
    assert cut.variance == pytest.approx(exact.variance, rel=1e-6)
    assert exact.variance.mean() == pytest.approx(mse.mean(), rel=0.2)


def test_twin_of_any_surrogate_matches_its_draws():
    draws = np.random.default_rng(0).normal(size=(50, 4)) * [1.0, 2.0, 0.5, 0.1]
    twin = twin_of(Posterior(draws.mean(0), draws.std(0, ddof=1), draws), np.ones(4))
    assert twin.factor @ twin.factor.T == pytest.approx(np.cov(draws.T))
    with pytest.raises(ValueError, match="draws"):
        twin_of(Posterior(np.zeros(1), np.ones(1)), np.ones(1))


def by_hand(twin, evidence, budget, pair, truth, true_noise, errors, select, offset):
    """The sequential step in plain NumPy with the full covariance, one simulated run."""
    mu, covariance = twin.mean.copy(), twin.factor @ twin.factor.T
    counts = evidence.counts.copy()
    totals = counts * np.nan_to_num(evidence.means)
    acquisition = ModifiedUCB(LogBeta(pair[0]), CountGamma(pair[1] * twin.spread, offset))
    for step in range(budget):
        posterior = Posterior(mu, np.sqrt(np.maximum(np.diag(covariance), 0)))
        row = int(acquisition(posterior, counts, int(evidence.counts.sum()) + step).argmax())
        score = truth[row] + np.sqrt(true_noise[row]) * errors[step]
        column = covariance[:, row].copy()
        total = column[row] + twin.noise[row]
        mu = mu + column * (score - mu[row]) / total
        covariance = covariance - np.outer(column, column) / total
        counts[row] += 1
        totals[row] += score
    averages = np.where(counts > 0, totals / np.maximum(counts, 1), -np.inf)
    return truth[int((mu if select == "posterior" else averages).argmax())]


@pytest.mark.parametrize("tuner", [Tuner(4), Tuner.paper(4)], ids=["default", "paper"])
def test_compiled_simulation_is_the_sequential_step(warm, tuner):
    pairs, budget = [(0.3, 0.1), (1.0, 0.5)], 25
    tuning = tuner.grid(warm.twin, warm.evidence, budget, np.random.default_rng(7), pairs)
    rng = np.random.default_rng(7)
    surfaces = rng.standard_normal((4, warm.twin.factor.shape[1])) @ warm.twin.factor.T
    errors = rng.standard_normal((4, budget))
    for pair, value in zip(pairs, tuning.values, strict=True):
        drawn = tuner.truth == "draw"
        truths = warm.twin.mean + surfaces if drawn else np.tile(warm.twin.mean, (4, 1))
        noise = warm.twin.noise + (0 if drawn else warm.twin.variance)
        runs = [
            by_hand(warm.twin, warm.evidence, budget, pair, t, noise, e, tuner.select, tuner.offset)
            for t, e in zip(truths, errors, strict=True)
        ]
        assert value == pytest.approx(np.mean(runs), abs=1e-3)


def test_the_best_pair_is_kept_and_beats_the_papers_bonus():
    """Four candidates of 40 may be the best one, and 40 evaluations are left.

    A bonus that swamps every difference is round-robin: one evaluation each, and with a prior sd of .2 and noise of sd
    .5 the highest of four posterior means is .08 up. Spent on the four alone, they get it .16 up. A value has a
    standard deviation of about .2, so the mean of 256 is known to .013, and the difference is over four of its errors.
    """
    hopeful = np.arange(40) < 4
    twin = Twin(np.where(hopeful, 0.0, -2.0), 0.2 * np.eye(40), np.full(40, 0.25))
    evidence = Evidence(np.ones(40, int), twin.mean, twin.noise)
    pairs = [(0.0, 0.0), (0.3, 0.1), (1.0, 20.0)]
    tuning = Tuner(256).grid(twin, evidence, 40, np.random.default_rng(0), pairs)
    assert (tuning.beta, tuning.gamma) == pairs[int(tuning.values.argmax())]
    assert tuning.values.argmax() != 2
    assert tuning.values.max() > twin.mean.max()
    acquisition = tuning.acquisition()
    assert acquisition.gamma(np.array([0]))[0] == pytest.approx(tuning.gamma * twin.spread)
    assert acquisition.beta(10) == pytest.approx(tuning.beta * np.sqrt(2 * np.log(10)))


def test_continuous_ranges_stay_inside_and_find_as_good_a_pair(warm):
    tuning = Tuner(16).ranges(
        warm.twin, warm.evidence, 60, np.random.default_rng(1), beta=(0.05, 1.5), gamma=(0.01, 5.0), n_pairs=8
    )
    assert tuning.pairs.shape == (16, 2)
    assert (tuning.pairs >= [0.05 - 1e-9, 0.01 - 1e-9]).all()
    assert (tuning.pairs <= [1.5 + 1e-9, 5.0 + 1e-9]).all()
    assert tuning.values.max() == tuning.values[np.all(tuning.pairs == [tuning.beta, tuning.gamma], axis=1)][0]


def test_nothing_to_choose_from_is_no_trouble():
    """One candidate, no uncertainty."""
    twin = Twin(np.array([0.4]), np.zeros((1, 1)), np.array([0.1]))
    evidence = Evidence(np.array([2]), np.array([0.4]), np.array([0.1]))
    tuning = Tuner(2).grid(twin, evidence, 5, np.random.default_rng(0))
    assert tuning.values == pytest.approx(np.full(20, 0.4))
