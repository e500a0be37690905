"""Synthetic selection problems with known true scores, one stream of answers per (candidate, replication).

Every contestant of a macro-replication faces the same candidates, the same true scores and the same answers: the r-th
answer of candidate n is a function of (family, seed, n, r). In the families with item difficulties there are two
tables of answers: one where replication r is item r for every candidate, for contestants that ask for it, and one
where each evaluation draws its own item, as everybody else does.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from selection_replay import PREFIX, ReplayProblem, replayed

CHUNK = 128


@dataclass
class Problem:
    """One problem: coordinates ``Z`` (N, D), true scores ``truth`` (N,), and answers.

    Attributes:
        grade: Concentration of graded (Beta) scores; 0 means right or wrong.
        item_sd: Spread of item difficulty on the logit scale; 0 means no items.
        ability: (N,) logit of the chance on an item of difficulty 0; used with items only.
    """

    family: str
    seed: int
    Z: np.ndarray
    truth: np.ndarray
    grade: float = 0.0
    item_sd: float = 0.0
    ability: np.ndarray | None = None
    _answers: dict[tuple[int, int, bool], np.ndarray] = field(default_factory=dict)

    @property
    def has_items(self) -> bool:
        """Whether answers depend on an item that contestants may hold in common."""
        return self.item_sd > 0.0

    def score(self, candidate: int, replication: int, common: bool = False) -> float:
        """Answer ``replication`` of ``candidate``; with ``common`` the replication is the item."""
        chunk, place = divmod(int(replication), CHUNK)
        key = (int(candidate), chunk, common)
        if key not in self._answers:
            self._answers[key] = self._draw(*key)
        return float(self._answers[key][place])

    def _draw(self, candidate: int, chunk: int, common: bool) -> np.ndarray:
        rng = np.random.default_rng([zlib.crc32(self.family.encode()), self.seed, candidate, chunk, 1])
        chance = np.full(CHUNK, self.truth[candidate])
        if self.item_sd:
            items = np.random.default_rng([zlib.crc32(self.family.encode()), self.seed, chunk, 2]) if common else rng
            assert self.ability is not None
            chance = expit(self.ability[candidate] - self.item_sd * items.standard_normal(CHUNK))
        if self.grade:
            chance = np.clip(chance, 0.01, 0.99)
            return rng.beta(chance * self.grade, (1.0 - chance) * self.grade)
        return (rng.random(CHUNK) < chance).astype(float)


def _coordinates(rng: np.random.Generator, n: int, dimension: int = 8) -> np.ndarray:
    """(n, dimension) with falling spread, like principal components."""
    return rng.standard_normal((n, dimension)) / np.sqrt(1.0 + np.arange(dimension))


def _field(rng: np.random.Generator, Z: np.ndarray, length: float, nugget: float) -> np.ndarray:
    """(n,) one draw of a unit Gaussian field with radial covariance, ``length`` in median distances."""
    squares = ((Z[:, None] - Z[None]) ** 2).sum(-1)
    scaled = squares / np.median(squares[squares > 0])
    covariance = (1.0 - nugget) * np.exp(-0.5 * scaled / length**2) + (nugget + 1e-9) * np.eye(len(Z))
    return np.linalg.cholesky(covariance) @ rng.standard_normal(len(Z))


def _unit(x: np.ndarray) -> np.ndarray:
    return (x - x.mean()) / max(float(x.std()), 1e-12)


def _average_over_items(ability: np.ndarray, item_sd: float) -> np.ndarray:
    nodes, weights = np.polynomial.hermite_e.hermegauss(81)
    return expit(ability[:, None] - item_sd * nodes) @ (weights / weights.sum())


def make_problem(family: str, n: int, seed: int) -> Problem | ReplayProblem:
    """Problem number ``seed`` of a family with ``n`` candidates."""
    if family.startswith(PREFIX):
        return replayed(family, n, seed)
    rng = np.random.default_rng([zlib.crc32(family.encode()), n, seed])
    Z = _coordinates(rng, n)
    if family == "smooth":
        return Problem(family, seed, Z, expit(-0.3 + 0.9 * _field(rng, Z, 0.8, 0.02)))
    if family == "rough":
        return Problem(family, seed, Z, expit(-0.3 + 0.9 * _field(rng, Z, 0.35, 0.25)))
    if family == "smooth-graded":
        return Problem(family, seed, Z, expit(-0.3 + 0.9 * _field(rng, Z, 0.8, 0.02)), grade=4.0)
    if family == "no-structure":
        return Problem(family, seed, Z, expit(-0.3 + 0.9 * rng.standard_normal(n)))
    if family == "no-structure-graded":
        return Problem(family, seed, Z, expit(-0.3 + 0.9 * rng.standard_normal(n)), grade=4.0)
    if family == "ties":
        levels = np.array([0.25, 0.45, 0.6, 0.7])
        rank = np.argsort(np.argsort(_field(rng, Z, 0.6, 0.2))) / n
        return Problem(family, seed, Z, levels[np.searchsorted([0.4, 0.75, 0.93], rank)])
    if family == "ridge":
        direction = rng.standard_normal(Z.shape[1])
        along = _unit(Z @ direction)
        return Problem(family, seed, Z, expit(0.8 - 1.0 * (along - 0.7) ** 2 + 0.15 * rng.standard_normal(n)))
    if family == "clusters":
        centres = rng.standard_normal((8, Z.shape[1])) * 1.2
        member = rng.integers(8, size=n)
        Z = centres[member] + 0.35 * Z
        level = rng.normal(-0.3, 0.9, size=8)
        return Problem(family, seed, Z, expit(level[member] + 0.35 * rng.standard_normal(n)), grade=4.0)
    if family == "ill-informative":
        truth = expit(-0.3 + 0.9 * _field(rng, Z, 0.8, 0.02))
        return Problem(family, seed, np.hstack([0.5 * Z, rng.standard_normal((n, 40)) * 0.7]), truth)
    if family.startswith("items"):
        item_sd = {"items": 1.5, "items-hard": 3.0, "items-graded": 1.5}[family]
        # Abilities are widened with the item spread so that the true scores vary as in the other families.
        ability = (-0.3 + 0.9 * _field(rng, Z, 0.6, 0.2)) * np.sqrt(1.0 + 0.346 * item_sd**2)
        truth = _average_over_items(ability, item_sd)
        return Problem(family, seed, Z, truth, 8.0 if family == "items-graded" else 0.0, item_sd, ability)
    raise ValueError(f"no family called {family!r}")


FAMILIES = (
    "smooth",
    "rough",
    "smooth-graded",
    "no-structure",
    "no-structure-graded",
    "ties",
    "ridge",
    "clusters",
    "ill-informative",
)
ITEM_FAMILIES = ("items", "items-hard", "items-graded")

__all__ = ["FAMILIES", "ITEM_FAMILIES", "Problem", "make_problem"]
