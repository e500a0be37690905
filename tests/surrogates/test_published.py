"""Paper mode's surrogates are those of the paper's first experiment, each by its name."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.kriging.kernels import typical_distance
from bestprompt.selection import SelectorConfig
from bestprompt.selection.strategies.named import NamedStrategy, surrogate_of
from bestprompt.surrogates.base import make_surrogate
from bestprompt.surrogates.published import published_options
from bestprompt.types import Evidence

Z = np.random.default_rng(0).normal(size=(12, 3))


def fitted(name: str):
    evidence = Evidence(np.full(12, 5), 0.5 + 0.1 * Z[:, 0], np.full(12, 0.04))
    return make_surrogate(name, **published_options(name, Z)).fit(Z, evidence, np.random.default_rng(1)), evidence


def test_linear_regression_has_standard_normal_weights_and_no_intercept():
    model, evidence = fitted("blr")
    precision = np.eye(3) + Z.T @ Z / (0.04 / 5)
    assert model.belief.mean == pytest.approx(np.linalg.solve(precision, Z.T @ evidence.means / (0.04 / 5)))


def test_the_gaussian_process_has_the_papers_kernel_and_learns_nothing_of_it():
    model, evidence = fitted("gp")
    kernel = np.exp(-((Z[:, None] - Z[None]) ** 2).sum(-1) / typical_distance(Z) ** 2)
    exact = kernel @ np.linalg.solve(kernel + 0.04 / 5 * np.eye(12), evidence.means)
    assert model.posterior(Z).mean == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("name", ["blr", "gp", "gp-rank", "bnn", "vae"])
def test_paper_mode_takes_them_by_name_and_the_users_options_outrank_them(name):
    config = SelectorConfig(budget=20, mode="paper", surrogate=name, surrogate_options={"n_draws": 7})
    found = surrogate_of(name, Z, config)
    assert found == make_surrogate(name, **{**published_options(name, Z), "n_draws": 7})
    assert found != make_surrogate(name, n_draws=7)
    first = surrogate_of(name, Z, SelectorConfig(budget=20, mode="paper", edition="first", surrogate=name))
    assert (first == make_surrogate(name)) == (name != "bnn")


def test_pr_m_ucb_of_a_run_recorded_before_its_step_was_scaled_goes_on_unscaled():
    def search(**chosen):
        config = SelectorConfig(budget=20, mode="paper", surrogate="blr", maximizer="reinforce", **chosen)
        return NamedStrategy.of(Z, config, "blr", 5).maximizer

    unscaled = {"rate": 0.1, "baseline": None, "standardise": False}
    assert search(edition="first") == search(maximizer_options=unscaled)
    assert search(edition="first") != search()
    assert search(edition="first", maximizer_options={"rate": 10.0}) == search(
        maximizer_options={**unscaled, "rate": 10.0}
    )
