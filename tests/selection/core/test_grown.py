"""A state that gets one more candidate in the middle of a run."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.selection import Selector, SelectorConfig, grown
from bestprompt.types import Observation

CONFIG = SelectorConfig(budget=60, pairs="common", surrogate="average")


def test_a_grown_state_is_the_state_of_the_larger_set() -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(5, 2))
    told = [Observation(n, r, float(rng.random() < 0.3 + 0.1 * n)) for n in range(4) for r in range(5)]
    small, large = Selector(Z[:4], CONFIG), Selector(Z, CONFIG)
    after = grown(small.tell(small.initial(), told))
    direct = large.tell(large.initial(), told)
    for name in ("counts", "sums", "following", "scores", "candidates", "replications"):
        np.testing.assert_array_equal(getattr(after, name), getattr(direct, name))
    assert after.belief is None
    np.testing.assert_allclose(large.recommend(after).estimates, large.recommend(direct).estimates)
    newest = large.tell(after, [Observation(4, r, 1.0) for r in range(10)])
    assert newest.counts.tolist() == [5, 5, 5, 5, 10]
    assert large.choice(newest) == 4


def test_only_allowed_candidates_are_recommended() -> None:
    selector = Selector(np.arange(3.0)[:, None], CONFIG)
    state = selector.tell(selector.initial(), [Observation(n, r, n / 2) for n in range(3) for r in range(6)])
    assert selector.recommend(state).candidate == 2
    allowed = np.array([True, True, False])
    assert selector.recommend(state, allowed).candidate == selector.choice(state, allowed) == 1
    paper = Selector(np.arange(3.0)[:, None], SelectorConfig(budget=60, mode="paper", surrogate="gp"))
    assert paper.choice(state, allowed) == 1


@pytest.mark.parametrize("new", [1, 3])
def test_new_candidates_have_no_evaluations(new: int) -> None:
    selector = Selector(np.arange(2.0)[:, None], CONFIG)
    state = grown(selector.tell(selector.initial(), [Observation(0, 0, 1.0)]), new)
    assert state.n_candidates == 2 + new
    assert state.counts[2:].tolist() == [0] * new
    assert [state.met(n) for n in range(2, 2 + new)] == [set()] * new
