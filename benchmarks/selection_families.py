"""Synthetic selection problems with known true scores, one stream of answers per (candidate, replication).

Every contestant of a macro-replication faces the same candidates, the same true scores and the same answers: the r-th
answer of candidate n is a function of (family, seed, n, r). In the families with item difficulties there are two
tables of answers: one where replication r is item r for every candidate, for contestants that ask for it, and one
where each evaluation draws its own item, as everybody else does.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.polynomial import hermite_e
from scipy.special import expit, factorial, logit, ndtr

from selection_replay import PREFIX, ReplayProblem, replayed

CHUNK = 128
LEVEL, SPREAD = -0.3, 0.9  # of the candidates' logits in most families
TIES, TIE_RANKS = np.array([0.25, 0.45, 0.6, 0.7]), (0.4, 0.75, 0.93)
RIDGES = 4000  # directions that the moments of a ridge are averaged over
HIDDEN = 300  # choices of the coordinates that count, over which their moments are averaged
Moments = tuple[np.ndarray, np.ndarray]


@dataclass
class Problem:
    """One problem: coordinates ``Z`` (N, D), true scores ``truth`` (N,), and answers.

    Attributes:
        grade: Concentration of graded (Beta) scores; 0 means right or wrong.
        item_sd: Spread of item difficulty on the logit scale; 0 means no items.
        ability: (N,) logit of the chance on an item of difficulty 0; used with items only.
        prior: Makes the mean (N,) and covariance (N, N) of the logits of the chances, given ``Z``: what somebody who
            knows the family believes before any answer (``selection_oracle.py``).
        blind_prior: The same of somebody who does not know which coordinates count; ``None`` where all do.
    """

    family: str
    seed: int
    Z: np.ndarray
    truth: np.ndarray
    grade: float = 0.0
    item_sd: float = 0.0
    ability: np.ndarray | None = None
    prior: Callable[[], Moments] | None = None
    blind_prior: Callable[[], Moments] | None = None
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


def _correlation(Z: np.ndarray, length: float, nugget: float) -> np.ndarray:
    """(n, n) radial correlation, ``length`` in median distances."""
    squares = ((Z[:, None] - Z[None]) ** 2).sum(-1)
    scaled = squares / np.median(squares[squares > 0])
    return (1.0 - nugget) * np.exp(-0.5 * scaled / length**2) + (nugget + 1e-9) * np.eye(len(Z))


def _field(rng: np.random.Generator, Z: np.ndarray, length: float, nugget: float) -> np.ndarray:
    """(n,) one draw of a unit Gaussian field with radial covariance, ``length`` in median distances."""
    return np.linalg.cholesky(_correlation(Z, length, nugget)) @ rng.standard_normal(len(Z))


def _field_moments(Z: np.ndarray, length: float, nugget: float, scale: float = 1.0) -> Moments:
    """Of ``scale`` (LEVEL + SPREAD times a unit field)."""
    return np.full(len(Z), scale * LEVEL), (scale * SPREAD) ** 2 * _correlation(Z, length, nugget)


def _plain_moments(n: int) -> Moments:
    return np.full(n, LEVEL), SPREAD**2 * np.eye(n)


def _tie_moments(Z: np.ndarray, length: float, nugget: float) -> Moments:
    """Of a step function g of a unit field: cov(g(x), g(y)) = Σ_k c_k²/k! ρ^k, c_k the Hermite coefficients of g."""
    nodes, weights = hermite_e.hermegauss(181)
    steps = logit(TIES)[np.searchsorted(TIE_RANKS, ndtr(nodes))]
    orders = np.arange(12)
    values = np.stack([hermite_e.hermeval(nodes, np.eye(len(orders))[k]) for k in orders])
    coefficients = values @ (steps * weights / weights.sum())
    powers = _correlation(Z, length, nugget)[None] ** orders[1:, None, None]
    covariance = np.tensordot(coefficients[1:] ** 2 / factorial(orders[1:]), powers, axes=1)
    variance = float((steps**2) @ (weights / weights.sum()) - coefficients[0] ** 2)
    np.fill_diagonal(covariance, variance)
    return np.full(len(Z), coefficients[0]), covariance


def _ridge_moments(Z: np.ndarray) -> Moments:
    """Over the directions that a ridge may have, by simulation."""
    directions = np.random.default_rng(0).standard_normal((RIDGES, Z.shape[1]))
    along = Z @ directions.T
    along = (along - along.mean(axis=0)) / along.std(axis=0)
    levels = 0.8 - (along - 0.7) ** 2
    return levels.mean(axis=1), np.cov(levels) + 0.15**2 * np.eye(len(Z))


def _hidden_moments(shown: np.ndarray, count: int, length: float, nugget: float) -> Moments:
    """Over the ``count`` columns of ``shown`` that may be the field's coordinates, in any order, by simulation."""
    rng, n = np.random.default_rng(0), len(shown)
    unit = (shown - shown.mean(axis=0)) / shown.std(axis=0)
    correlation = np.zeros((n, n))
    for _ in range(HIDDEN):
        columns = rng.permutation(shown.shape[1])[:count]
        correlation += _correlation(unit[:, columns] / np.sqrt(1.0 + np.arange(count)), length, nugget) / HIDDEN
    return np.full(n, LEVEL), SPREAD**2 * correlation


def _cluster_moments(member: np.ndarray) -> Moments:
    same = (member[:, None] == member[None]).astype(float)
    return np.full(len(member), LEVEL), SPREAD**2 * same + 0.35**2 * np.eye(len(member))


def _widened(item_sd: float) -> float:
    """Abilities are widened with the item spread so that the true scores vary as in the other families."""
    return float(np.sqrt(1.0 + 0.346 * item_sd**2))


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
    if family in FIELDS:
        length, nugget, grade = FIELDS[family]
        truth = expit(LEVEL + SPREAD * _field(rng, Z, length, nugget))
        return Problem(family, seed, Z, truth, grade, prior=partial(_field_moments, Z, length, nugget))
    if family.startswith("no-structure"):
        truth = expit(LEVEL + SPREAD * rng.standard_normal(n))
        return Problem(family, seed, Z, truth, 4.0 * family.endswith("graded"), prior=partial(_plain_moments, n))
    if family == "ties":
        rank = np.argsort(np.argsort(_field(rng, Z, 0.6, 0.2))) / n
        truth = TIES[np.searchsorted(TIE_RANKS, rank)]
        return Problem(family, seed, Z, truth, prior=partial(_tie_moments, Z, 0.6, 0.2))
    if family == "ridge":
        direction = rng.standard_normal(Z.shape[1])
        along = _unit(Z @ direction)
        truth = expit(0.8 - 1.0 * (along - 0.7) ** 2 + 0.15 * rng.standard_normal(n))
        return Problem(family, seed, Z, truth, prior=partial(_ridge_moments, Z))
    if family == "clusters":
        centres = rng.standard_normal((8, Z.shape[1])) * 1.2
        member = rng.integers(8, size=n)
        Z = centres[member] + 0.35 * Z
        level = rng.normal(LEVEL, SPREAD, size=8)
        truth = expit(level[member] + 0.35 * rng.standard_normal(n))
        return Problem(family, seed, Z, truth, grade=4.0, prior=partial(_cluster_moments, member))
    if family == "ill-informative":
        truth = expit(LEVEL + SPREAD * _field(rng, Z, 0.8, 0.02))
        shown = np.hstack([0.5 * Z, rng.standard_normal((n, 40)) * 0.7])
        blind = partial(_hidden_moments, shown, Z.shape[1], 0.8, 0.02)
        return Problem(family, seed, shown, truth, prior=partial(_field_moments, Z, 0.8, 0.02), blind_prior=blind)
    if family.startswith("items"):
        item_sd = ITEM_SPREADS[family]
        wider = _widened(item_sd)
        ability = (LEVEL + SPREAD * _field(rng, Z, 0.6, 0.2)) * wider
        truth, grade = _average_over_items(ability, item_sd), 8.0 if family == "items-graded" else 0.0
        prior = partial(_field_moments, Z, 0.6, 0.2, wider)
        return Problem(family, seed, Z, truth, grade, item_sd, ability, prior)
    raise ValueError(f"no family called {family!r}")


# Name → length in median distances, nugget, concentration of graded answers.
FIELDS = {"smooth": (0.8, 0.02, 0.0), "rough": (0.35, 0.25, 0.0), "smooth-graded": (0.8, 0.02, 4.0)}
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
ITEM_SPREADS = {"items": 1.5, "items-hard": 3.0, "items-graded": 1.5}
ITEM_FAMILIES = tuple(ITEM_SPREADS)
HIDING_FAMILIES = ("ill-informative",)  # not all of the coordinates count


# Families whose problems cannot be told apart before anything is asked. Coordinates in clusters, and those with forty
# more than the others, can be told by looking at them, and graded answers with items are of one family.
LOOK_ALIKES = (
    ("smooth", "rough", "no-structure", "ties", "ridge"),
    ("smooth-graded", "no-structure-graded"),
    ("items", "items-hard"),
)


def look_alikes(family: str) -> tuple[str, ...]:
    """The families that look like ``family``, itself among them."""
    return next((group for group in LOOK_ALIKES if family in group), (family,))


def prior_of(family: str, problem: Problem) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean and covariance of the logits at the coordinates of ``problem``, and spread of the items, as ``family`` has.

    Of coordinates it is only known that they may count (``blind_prior``).
    """
    if family == problem.family:
        prior = problem.blind_prior or problem.prior
        assert prior is not None
        return *prior(), problem.item_sd
    Z, item_sd = problem.Z, ITEM_SPREADS.get(family, 0.0)
    if family in FIELDS:
        return *_field_moments(Z, *FIELDS[family][:2]), item_sd
    if family == "ties":
        return *_tie_moments(Z, 0.6, 0.2), item_sd
    if family == "ridge":
        return *_ridge_moments(Z), item_sd
    if family in ITEM_SPREADS:
        return *_field_moments(Z, 0.6, 0.2, _widened(item_sd)), item_sd
    return *_plain_moments(len(Z)), item_sd


__all__ = [
    "FAMILIES",
    "HIDING_FAMILIES",
    "ITEM_FAMILIES",
    "LOOK_ALIKES",
    "Problem",
    "look_alikes",
    "make_problem",
    "prior_of",
]
