"""Properties of ask/tell that hold for every run."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bestprompt.selection import Selector, SelectorConfig
from bestprompt.types import Observation

runs = st.fixed_dictionaries(
    {
        "n": st.integers(1, 15),
        "budget": st.integers(1, 30),
        "seed": st.integers(0, 50),
        "pairs": st.sampled_from(["common", "independent"]),
        "policy": st.sampled_from(["auto", "random"]),
    }
)


def score(candidate: int, replication: int) -> float:
    return float(np.random.default_rng([candidate, replication]).random() < (candidate % 5) / 5)


@settings(max_examples=12, deadline=None)
@given(runs, st.data())
def test_tell_is_order_free_and_budget_is_never_exceeded(run, data):
    Z = np.random.default_rng(run["seed"]).standard_normal((run["n"], 3))
    options = {k: run[k] for k in ("budget", "seed", "pairs", "policy")}
    selector = Selector(Z, SelectorConfig(**options))
    state, shuffled, asked = selector.initial(), selector.initial(), 0
    while True:
        size = data.draw(st.integers(1, 9))
        proposals = selector.ask(state, size)
        assert selector.ask(shuffled, size) == proposals
        if not proposals:
            break
        assert len(proposals) <= size
        asked += len(proposals)
        assert asked <= run["budget"]
        round_ = [Observation(p.candidate, p.replication, score(p.candidate, p.replication)) for p in proposals]
        state = selector.tell(state, round_)
        shuffled = selector.tell(shuffled, data.draw(st.permutations(round_)))
    assert asked == len(state) == run["budget"]
    assert state.counts.sum() == run["budget"]
    np.testing.assert_array_equal(state.scores, shuffled.scores)
    np.testing.assert_allclose(state.sums, np.bincount(state.candidates, state.scores, minlength=run["n"]))
    first, second = selector.recommend(state), selector.recommend(shuffled)
    assert first.verdict == second.verdict
    assert 0 <= first.probability_best <= first.probability_within_delta <= 1
    assert first.interval[0] <= first.interval[1]
