"""Replayed score tables of a real language model as selection problems.

A table is ``benchmarks/tables/NAME.npz`` in the format of :mod:`bestprompt.replay`, its family is ``table:NAME``.
Macro-replication ``seed`` takes N of the prompts and an order of the items at random; the true score of a prompt is its
mean over the whole table. Contestants that ask for common items get the items in that order, over and over; all others
draw an item afresh for every evaluation.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from bestprompt.replay import ScoreTable
from bestprompt.replay.table import MISSING

TABLES = Path(__file__).parent / "tables"
PREFIX = "table:"


@dataclass
class ReplayProblem:
    """One problem from a table: coordinates ``Z`` (N, D), ``truth`` (N,), ``scores`` (N, I, R) in [0, 1]."""

    family: str
    seed: int
    Z: np.ndarray
    truth: np.ndarray
    scores: np.ndarray
    order: np.ndarray
    has_items: bool = True

    def score(self, candidate: int, replication: int, common: bool = False) -> float:
        """Answer ``replication`` of ``candidate``; with ``common`` the replication decides the item."""
        _, items, replicates = self.scores.shape
        if common:
            again, place = divmod(int(replication), items)
            return float(self.scores[candidate, self.order[place], again % replicates])
        key = [zlib.crc32(self.family.encode()), self.seed, int(candidate), int(replication)]
        rng = np.random.default_rng(key)
        return float(self.scores[candidate, rng.integers(items), rng.integers(replicates)])


@lru_cache(maxsize=8)
def load_table(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Scores (P, I, R) in [0, 1] and coordinates (P, D) of a table."""
    table = ScoreTable.load(path).complete()
    everywhere = (table.percents != MISSING).all(axis=(0, 1))  # some replicates are of a part of the prompts
    return table.percents[:, :, everywhere] / 100.0, table.candidates.Z


def table_families(folder: Path = TABLES) -> dict[str, int]:
    """Name of every stored table as a family -> how many prompts it has."""
    return {PREFIX + path.stem: len(load_table(path)[1]) for path in sorted(folder.glob("*.npz"))}


def replayed(family: str, n: int, seed: int, folder: Path = TABLES) -> ReplayProblem:
    """Problem number ``seed`` of a table, with ``n`` of its prompts."""
    scores, Z = load_table(folder / f"{family.removeprefix(PREFIX)}.npz")
    if n > len(Z):
        raise ValueError(f"{family} has {len(Z)} prompts, not {n}")
    rng = np.random.default_rng([zlib.crc32(family.encode()), n, seed])
    chosen = np.sort(rng.permutation(len(Z))[:n])
    return ReplayProblem(
        family, seed, Z[chosen], scores[chosen].mean(axis=(1, 2)), scores[chosen], rng.permutation(scores.shape[1])
    )
