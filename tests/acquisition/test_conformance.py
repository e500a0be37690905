"""One contract for every acquisition and every maximiser."""

from __future__ import annotations

import pytest

from bestprompt.acquisition.base import Occasion, make_acquisition
from bestprompt.acquisition.batches import Exhaustive, OneByOne, Sampled, make_maximizer
from bestprompt.acquisition.functions import Open, Thompson
from bestprompt.acquisition.maximize import Argmax, Reinforce
from bestprompt.choices import ACQUISITIONS, MAXIMIZERS
from bestprompt.errors import ConfigError
from bestprompt.testing import acquisition_checks, maximizer_checks

OCCASION = Occasion(seed=2, paper=False, beta=None, gamma=None, scale=0.2, best=lambda: 0.6)
BY_NAME = {name: make_acquisition(name, OCCASION) for name in ACQUISITIONS}


@pytest.mark.parametrize("check", acquisition_checks, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", [*BY_NAME, "open"])
def test_acquisitions_keep_the_contract(name, check):
    check(Open(BY_NAME["ucb"], most=3.0) if name == "open" else BY_NAME[name])


@pytest.mark.parametrize("check", maximizer_checks, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "maximizer",
    [
        pytest.param(Argmax(), id="argmax"),
        pytest.param(Reinforce(), id="reinforce", marks=pytest.mark.slow),
        pytest.param(Reinforce.paper(), id="paper", marks=pytest.mark.slow),
    ],
)
def test_maximisers_keep_the_contract(maximizer, check):
    check(maximizer)


def test_names_and_objects():
    assert isinstance(make_maximizer("argmax", {}), Exhaustive)
    assert make_maximizer("reinforce", {"starts": 3}) == Sampled(Reinforce(starts=3))
    assert make_maximizer("reinforce", {}, paper=True) == Sampled(Reinforce.paper())
    assert make_maximizer(Argmax(), {}) == OneByOne(Argmax())
    assert make_acquisition(Thompson(5), OCCASION) == Thompson(5)
    with pytest.raises(ConfigError, match=f"choose one of {', '.join(MAXIMIZERS)}"):
        make_maximizer("anneal", {})
    with pytest.raises(ConfigError, match="'best-of' is unknown"):
        make_acquisition("best-of", OCCASION)
