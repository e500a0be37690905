"""Chains over a whole run: they keep moving as the posterior narrows, and what cannot move is an error."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest

from bestprompt.errors import SurrogateError
from bestprompt.surrogates.bnn import BayesianNeuralNetwork, NetworkModel
from bestprompt.surrogates.inference import HMC, STANDARD_NORMAL, Batch
from bestprompt.surrogates.network import Network
from bestprompt.surrogates.sampling import sample
from bestprompt.types import Evidence

SETTINGS = HMC(n_chains=2, n_warmup=150, n_burn=20, thin=2, n_leapfrog=16)
RECIPE = BayesianNeuralNetwork((4,), inference="hmc", hmc=SETTINGS, n_draws=400)


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
    # The least effective sample size over candidates bounds the Monte Carlo error of each: std/sqrt(ess) of a mean,
    # 1/sqrt(2 ess) of a log std.
    share = 1 / fitted.diagnostics["ess"] + 1 / cold.diagnostics["ess"]
    assert share < 0.05
    assert np.abs((by_run.mean - afresh.mean) / afresh.std).max() < 4 * np.sqrt(share)
    assert np.abs(np.log(by_run.std / afresh.std)).max() < 4 * np.sqrt(share / 2)


def test_chains_adapt_again_when_evaluations_have_grown_by_half(problem, early):
    rng = np.random.default_rng(1)
    soon = RECIPE.fit(problem.Z, evidence_after(problem, 119), rng, previous=early)
    assert (step_sizes(soon) == step_sizes(early)).all()
    later = RECIPE.fit(problem.Z, evidence_after(problem, 120), rng, previous=soon)
    assert (step_sizes(later) != step_sizes(early)).all()
    assert later.state.n_evaluations == 120


def test_chains_adapt_at_once_when_they_accept_too_little(problem, early, compilations):
    """The noise is found to be far smaller than thought: a posterior far narrower at the same number of evaluations."""
    before = len(compilations)
    sharp = RECIPE.fit(problem.Z, evidence_after(problem, 80, noise=0.001), np.random.default_rng(1), previous=early)
    assert sharp.diagnostics["acceptance"] > 0.5
    assert (step_sizes(sharp) < step_sizes(early)).all()
    assert len(compilations) == before


def test_chains_that_are_lost_start_afresh(problem, early, compilations):
    """From positions that are not finite no adaptation helps."""
    before = len(compilations)
    chains = early.state.chains
    nowhere = jax.tree.map(lambda x: x * np.float32(np.nan), chains.position)
    lost = replace(early, state=early.state._replace(chains=chains._replace(position=nowhere)))
    compiled_by_the_product = len(compilations) - before
    found = RECIPE.fit(problem.Z, evidence_after(problem, 80), np.random.default_rng(1), previous=lost)
    assert found.diagnostics["acceptance"] > 0.5
    assert np.isfinite(found.posterior(problem.Z).mean).all()
    assert len(compilations) == before + compiled_by_the_product


def test_chains_that_do_not_move_even_afresh_are_an_error():
    model, starts = NetworkModel(Network((3, 4, 1)), STANDARD_NORMAL), []
    batch = Batch(np.zeros((64, 3), np.float32), np.zeros(64, np.float32), np.ones(64, np.float32))
    rng = np.random.default_rng(0)

    def start():
        starts.append(jax.tree.map(lambda x: x * np.float32(np.nan), model.network.normal_weights(rng, 2)))
        return starts[-1]

    with pytest.raises(SurrogateError, match=r"hardly move, even from a fresh start.*hmc\.n_warmup") as caught:
        sample(model, SETTINGS, batch, 64, 200, start, rng, None)
    assert caught.value.diagnostics == {"acceptance": 0.0, "divergences": 840.0, "lowest_acceptance": 0.0}
    assert len(starts) == 1
