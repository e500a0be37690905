"""M-UCB's bonus in paper mode, tuned on the twin over ranges where that is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.errors import ConfigError
from bestprompt.selection import Selector, SelectorConfig
from bestprompt.selection.strategies import bonus
from bestprompt.types import Observation

Z = np.random.default_rng(0).normal(size=(20, 2))


def warmed_up(**changes):
    selector = Selector(Z, SelectorConfig(budget=60, mode="paper", surrogate="blr", examples=(0, 1, 2, 3), **changes))
    state, rng = selector.initial(), np.random.default_rng(1)
    asked = selector.ask(state, 20)
    scores = [0.5 + 0.1 * Z[p.candidate, 0] + 0.1 * rng.normal() for p in asked]
    told = [Observation(p.candidate, p.replication, s) for p, s in zip(asked, scores, strict=True)]
    return selector, selector.tell(state, told)


def test_ranges_tune_it_once_after_the_warm_up_with_the_surrogates_own_belief(monkeypatch):
    seen = []
    usual = bonus.twin_of
    monkeypatch.setattr(bonus, "twin_of", lambda posterior, noise: seen.append(posterior) or usual(posterior, noise))
    selector, state = warmed_up(tuning="ranges")
    tuned = state.belief.bonus.acquisition
    (lowest, highest), scale = bonus.PUBLISHED_BETA, tuned.gamma.factor
    assert lowest <= tuned.beta.factor <= highest
    assert scale > 0.0
    assert tuned.gamma.offset == 0.0
    assert seen[0].mean == pytest.approx(state.belief.posterior.mean)
    (proposal,) = selector.ask(state, 1)
    later = selector.tell(state, [Observation(proposal.candidate, proposal.replication, 0.5)])
    assert later.belief.bonus is state.belief.bonus
    assert len(seen) == 1


def test_without_them_it_is_the_experiments():
    _, state = warmed_up()
    assert state.belief.bonus is None


def test_what_is_given_cannot_be_tuned_too():
    with pytest.raises(ConfigError, match="without beta and gamma"):
        warmed_up(tuning="ranges", gamma=1.0)
