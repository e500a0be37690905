"""One small problem for all surrogates, and the model whose posterior is known."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from bestprompt.surrogates.inference import STANDARD_NORMAL, Prior
from bestprompt.types import Evidence


@dataclass(frozen=True)
class Linear:
    """f(z; W) = Wᵀz; at the unit vectors it shows the weights."""

    prior: Prior = STANDARD_NORMAL

    def predict(self, weights, Z):
        return Z @ weights


@pytest.fixture(scope="session")
def linear():
    return Linear()


def drawn_problem(seed):
    """48 candidates in 3 dimensions on a gentle surface, 30 of them evaluated with unequal known noise."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(48, 3)) * [1.0, 0.7, 0.3]
    truth = 0.5 + 0.2 * np.tanh(Z[:, 0]) + 0.1 * Z[:, 1]
    noise = np.where(np.arange(48) % 2 == 0, 0.01, 0.04)
    counts = np.where(np.arange(48) < 30, 1 + np.arange(48) % 5, 0)
    means = truth + rng.normal(size=48) * np.sqrt(noise / np.maximum(counts, 1))
    return SimpleNamespace(Z=Z, truth=truth, evidence=Evidence(counts, np.where(counts > 0, means, np.nan), noise))


@pytest.fixture(scope="session")
def problem():
    return drawn_problem(5)


@pytest.fixture(scope="session")
def make_problem():
    return drawn_problem
