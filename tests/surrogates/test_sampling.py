"""Chains over a whole run: they keep moving as the posterior narrows, and what cannot move is an error."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import numpy as np
import pytest

from bestprompt.errors import SurrogateError
from bestprompt.surrogates.bnn import BayesianNeuralNetwork, NetworkModel
from bestprompt.surrogates.hamiltonian import HMC
from bestprompt.surrogates.inference import STANDARD_NORMAL, Batch, WeightPrior
from bestprompt.surrogates.network import DenseNetwork
from bestprompt.surrogates.sampling import Target, sample
from bestprompt.types import Evidence

SETTINGS = HMC(n_chains=2, n_warmup=150, n_burn=20, thin=2, n_leapfrog=16)
RECIPE = BayesianNeuralNetwork((4,), inference="hmc", hmc=SETTINGS, n_draws=200)


def evidence_after(problem, n, noise=0.1):
    """``n`` evaluations in turn over 40 candidates, their means exact: the posterior narrows and does not wander."""
    counts = np.zeros(48, np.int64)
    counts[:40] = n // 40 + (np.arange(40) < n % 40)
    return Evidence(counts, problem.truth, np.full(48, noise))


def step_sizes(fitted):
    return np.asarray(fitted.state.chains.step_size)


@pytest.fixture(scope="module")
def early(problem):
    return RECIPE.fit(problem.Z, evidence_after(problem, 80), np.random.default_rng(0))


@pytest.mark.slow
def test_a_run_of_growing_evidence_keeps_moving_and_ends_where_a_cold_start_does(problem):
    rng, fitted, adapted_at = np.random.default_rng(0), None, set()
    for n in (40 * 1.2 ** np.arange(24)).astype(int):
        fitted = RECIPE.fit(problem.Z, evidence_after(problem, n), rng, previous=fitted)
        assert fitted.diagnostics["acceptance"] > 0.5
        adapted_at.add(fitted.state.n_evaluations)
    assert len(adapted_at) < 12  # most rounds go on as they are
    # Without a state to continue, the fit is cold but in the units of the run, so that both have the same prior.
    cold = RECIPE.fit(problem.Z, evidence_after(problem, n), rng, previous=replace(fitted, state=None))
    assert cold.units is fitted.units
    by_run, afresh = fitted.posterior(problem.Z), cold.posterior(problem.Z)
    # The least effective sample size over candidates, and the draws kept, bound the Monte Carlo error of each:
    # std/sqrt(ess) of a mean, 1/sqrt(2 ess) of a log std.
    share = sum(1 / min(fit.diagnostics["ess"], RECIPE.n_draws) for fit in (fitted, cold))
    assert share < 0.05
    assert np.abs((by_run.mean - afresh.mean) / afresh.std).max() < 4 * np.sqrt(share)
    assert np.abs(np.log(by_run.std / afresh.std)).max() < 4 * np.sqrt(share / 2)


@pytest.mark.slow
def test_chains_adapt_again_when_evaluations_have_grown_by_half(problem, early):
    rng = np.random.default_rng(1)
    soon = RECIPE.fit(problem.Z, evidence_after(problem, 119), rng, previous=early)
    assert (step_sizes(soon) == step_sizes(early)).all()
    later = RECIPE.fit(problem.Z, evidence_after(problem, 120), rng, previous=soon)
    assert (step_sizes(later) != step_sizes(early)).all()
    assert later.state.n_evaluations == 120


@pytest.mark.slow
def test_chains_adapt_at_once_when_they_accept_too_little(problem, early, compilations):
    """The noise is found to be far smaller than thought: a posterior far narrower at the same number of evaluations."""
    before = len(compilations)
    sharp = RECIPE.fit(problem.Z, evidence_after(problem, 80, noise=0.001), np.random.default_rng(1), previous=early)
    assert sharp.diagnostics["acceptance"] > 0.5
    assert (step_sizes(sharp) < step_sizes(early)).all()
    assert len(compilations) == before


@pytest.mark.slow
def test_chains_that_are_lost_start_afresh(problem, early, compilations):
    """From positions that are not finite no adaptation helps."""
    early.posterior(problem.Z)
    before = len(compilations)
    chains = early.state.chains
    nowhere = jax.tree.map(lambda x: x * np.float32(np.nan), chains.position)
    lost = replace(early, state=early.state._replace(chains=chains._replace(position=nowhere)))
    compiled_by_the_product = len(compilations) - before
    found = RECIPE.fit(problem.Z, evidence_after(problem, 80), np.random.default_rng(1), previous=lost)
    assert found.diagnostics["acceptance"] > 0.5
    assert np.isfinite(found.posterior(problem.Z).mean).all()
    assert len(compilations) == before + compiled_by_the_product


@pytest.mark.slow
def test_chains_that_do_not_move_even_afresh_are_an_error():
    model, starts = NetworkModel(DenseNetwork((3, 4, 1)), STANDARD_NORMAL), []
    batch = Batch(np.zeros((64, 3), np.float32), np.zeros(64, np.float32), np.ones(64, np.float32))
    rng = np.random.default_rng(0)

    def start():
        starts.append(jax.tree.map(lambda x: x * np.float32(np.nan), model.network.normal_weights(rng, 2)))
        return starts[-1]

    target = Target(model, batch, 64, np.eye(3, dtype=np.float32))
    with pytest.raises(SurrogateError, match=r"hardly move, even from a fresh start.*hmc\.n_warmup") as caught:
        sample(target, SETTINGS, 400, start, rng, None)
    diagnostics = {"acceptance": 0.0, "divergences": 840.0, "n_leapfrog": 16.0, "lowest_acceptance": 0.0}
    assert caught.value.diagnostics == diagnostics
    assert len(starts) == 1


@pytest.mark.slow
def test_chains_that_have_not_mixed_go_on_with_longer_trajectories(linear, compilations):
    """Two weights that only their sum is known of: a valley sqrt(199) times as long as wide, across its axes.

    One leapfrog step goes about as far as the valley is wide; a hundred such steps hardly get around.
    """
    Z = np.array([[1.0, 1.0], [1.0, -1.0]], np.float32)
    precision = np.array(
        [99.0, 0.0], np.float32
    )  # with the prior: variances 1/199 of the sum's direction, 1 of the other
    target = Target(linear, Batch(Z, np.zeros(2, np.float32), precision), 10, np.eye(2, dtype=np.float32))
    settings, rng = HMC(n_warmup=150, n_leapfrog=2), np.random.default_rng(0)
    exact = np.linalg.inv(np.eye(2) + 99.0 * np.ones((2, 2)))

    def start():
        return rng.normal(size=(4, 2)).astype(np.float32)

    found = sample(target, settings, 400, start, rng, None)
    assert found.is_usable
    assert found.state.n_leapfrog > 2
    draws = np.asarray(found.draws).reshape(-1, 2)
    scaled, ess = draws / np.sqrt(np.diag(exact)), found.mixing.ess
    assert np.abs(scaled.mean(0)).max() < 4 / np.sqrt(min(ess, 400))
    before = len(compilations)
    again = sample(target, settings, 400, start, rng, found.state)
    assert again.state.n_leapfrog >= found.state.n_leapfrog
    assert len(compilations) == before


@dataclass(frozen=True)
class Square:
    """f(z; w) = z₁ w² + z₂ w: the evidence is about w², so that w may be √v or −√v."""

    prior: WeightPrior = STANDARD_NORMAL

    def predict(self, weights, Z):
        return Z[:, 0] * weights**2 + Z[:, 1] * weights


@pytest.mark.slow
@pytest.mark.parametrize(("watched", "mixes"), [((1.0, 0.0), True), ((0.0, 1.0), False)])
def test_two_modes_are_refused_with_words_unless_f_is_the_same_in_both(watched, mixes):
    batch = Batch(np.array([[1.0, 0.0]], np.float32), np.array([9.0], np.float32), np.array([100.0], np.float32))
    target = Target(Square(), batch, 10, np.array([watched], np.float32))
    settings, rng, apart = HMC(n_warmup=150), np.random.default_rng(0), np.array([-3.0, 3.0, -3.0, 3.0], np.float32)
    if mixes:
        assert sample(target, settings, 100, lambda: apart, rng, None).is_usable
        return
    with pytest.raises(SurrogateError, match=r"have not mixed, even from a fresh start .* R-hat .* 'vi'") as caught:
        sample(target, settings, 100, lambda: apart, rng, None)
    assert caught.value.diagnostics["rhat"] > 1.5
    assert caught.value.diagnostics["ess"] < 10
    assert caught.value.diagnostics["acceptance"] > 0.5
    assert caught.value.diagnostics["n_leapfrog"] == 8 * settings.n_leapfrog
