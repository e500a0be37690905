"""A small latent world without a language model: texts are lattice points, their score is a bump outside the set."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.kriging.projection import ProjectionKriging
from bestprompt.refinement import Refiner, RefinerConfig
from bestprompt.selection import SelectionState
from bestprompt.selection.core.state import empty_state, fold
from bestprompt.types import Observation

LATENT, K, STEP = 120, 3, 0.1


class World:
    """Encoder, decoder and scores; ``decode`` snaps to a lattice."""

    latent_dim = LATENT

    def __init__(self, seed: int = 0, n: int = 40) -> None:
        rng = np.random.default_rng(seed)
        self.basis = 0.25 * np.linalg.qr(rng.standard_normal((LATENT, K)))[0] * np.sqrt(LATENT) / 4
        self.optimum = np.array([1.4, 1.1, -0.9])
        points = rng.standard_normal((3 * n, K)) * 0.7
        self.texts = list(dict.fromkeys(self.decode(points @ self.basis.T)))[:n]
        self.X = self.encode(self.texts)
        self.decoded = 0

    def point(self, text: str) -> np.ndarray:
        return STEP * np.array([int(i) for i in text.split()], float)

    def encode(self, texts) -> np.ndarray:
        return np.array([self.point(text) for text in texts]) @ self.basis.T

    def decode(self, X) -> list[str]:
        self.decoded = getattr(self, "decoded", 0) + len(X)
        u = X @ self.basis / (self.basis**2).sum(0)
        return [" ".join(str(int(i)) for i in row) for row in np.rint(u / STEP)]

    def truth(self, text: str) -> float:
        return float(0.1 + 0.8 * np.exp(-((self.point(text) - self.optimum) ** 2).sum() / 4.0))

    def score(self, text: str, replication: int, noise: float = 0.1) -> float:
        key = [abs(hash_of(text)), replication]
        return self.truth(text) + noise * float(np.random.default_rng(key).standard_normal())

    def observed(self, replications: int = 2, texts=None) -> SelectionState:
        """Every text evaluated ``replications`` times."""
        texts = self.texts if texts is None else texts
        state = empty_state(len(texts))
        for r in range(replications):
            state = fold(state, [Observation(n, r, self.score(text, r)) for n, text in enumerate(texts)])
        return state


def hash_of(text: str) -> int:
    return sum((i + 1) * ord(c) for i, c in enumerate(text))


RECIPE = ProjectionKriging(grid=(8, 16), inputs=6, hidden=8, frequencies=24, splits=3, stretches=4, capacity=64)


@pytest.fixture(scope="session")
def world():
    return World()


@pytest.fixture(scope="session")
def state(world):
    """Every text of the world evaluated twice."""
    return world.observed(2)


@pytest.fixture(scope="session")
def refiner():
    """Makes refiners with a small network."""

    def make(world, accepts=lambda text, parent: "accepted", **settings):
        return Refiner(world, accepts, RefinerConfig(kriging=RECIPE, **settings))

    return make
