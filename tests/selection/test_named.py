"""Paper mode and named surrogates."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.selection import Selector, SelectorConfig, select
from bestprompt.selection.warmup import spread_out, warmup_plan


def easy(n=20):
    Z = np.random.default_rng(0).standard_normal((n, 3))
    truth = 1.0 / (1.0 + np.exp(-2.0 * Z[:, 0]))
    return Z, truth, lambda c, r: float(np.random.default_rng([c, r]).random() < truth[c])


def test_paper_mode_warms_up_then_goes_round_and_selects_the_highest_mean():
    Z, _, score = easy()
    config = SelectorConfig(budget=60, mode="paper", surrogate="blr", warmup="random", warmup_fraction=0.1)
    rec = select(Z, score, 60, config=config)
    # γ(0) = ∞: every candidate is tried before any is repeated after the warm-up.
    assert rec.counts.min() >= 1
    assert sorted(rec.counts)[-2] >= 5
    assert rec.means[rec.candidate] == rec.means.max()


def test_warmup_of_the_paper():
    Z, _, _ = easy(40)
    plan = warmup_plan(Z, SelectorConfig(budget=100, mode="paper"))
    assert plan.size == 10
    assert (np.bincount(plan)[np.unique(plan)] == 5).all()
    given = warmup_plan(Z, SelectorConfig(budget=100, mode="paper", examples=(4, 9), replications=3))
    assert sorted(given.tolist()) == [4, 4, 4, 9, 9, 9]
    assert warmup_plan(Z, SelectorConfig(budget=3, mode="paper")).size == 3


def test_spread_out_rows_are_far_apart_and_distinct():
    Z = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 0.0], [0.0, 5.0]])
    assert set(spread_out(Z, 3, first=(0,)).tolist()) == {0, 2, 3}
    assert sorted(spread_out(np.zeros((4, 2)), 9).tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["blr", "gp", "bnn"])
def test_named_surrogates_in_default_mode(name):
    Z, truth, score = easy()
    options = (("steps", 200),) if name == "bnn" else ()
    config = SelectorConfig(budget=80, surrogate=name, surrogate_options=options)
    rec = select(Z, score, 80, config=config, batch=16)
    assert truth.max() - truth[rec.candidate] < 0.2
    assert rec.counts.sum() == 80


def test_paper_mode_uses_the_network_by_default_and_replays():
    Z, _, score = easy()
    config = SelectorConfig(budget=30, mode="paper", surrogate_options=(("steps", 100),))
    first = select(Z, score, 30, config=config, batch=10)
    again = select(Z, score, 30, config=config, batch=10)
    assert first.verdict == again.verdict
    np.testing.assert_array_equal(first.counts, again.counts)


def test_many_candidates_fall_back_to_a_finite_rank_and_sampling():
    Z = np.random.default_rng(0).standard_normal((2500, 3))
    selector = Selector(Z, SelectorConfig(budget=40))
    rec = select(Z, lambda c, r: float(np.tanh(Z[c, 0]) / 2 + 0.5), 40, batch=10)
    assert selector.ask(selector.initial(), 3)
    assert Z[rec.candidate, 0] > 0.5
