"""One small problem for all surrogates, and the model whose posterior is known."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bestprompt.surrogates.inference import STANDARD_NORMAL, WeightPrior
from bestprompt.testing import gentle_problem


@dataclass(frozen=True)
class Linear:
    """f(z; W) = Wᵀz; at the unit vectors it shows the weights."""

    prior: WeightPrior = STANDARD_NORMAL

    def predict(self, weights, Z):
        return Z @ weights


@pytest.fixture(scope="session")
def linear():
    return Linear()


@pytest.fixture(scope="session")
def problem():
    return gentle_problem()


@pytest.fixture(scope="session")
def make_problem():
    return gentle_problem
