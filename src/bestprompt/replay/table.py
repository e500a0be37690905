"""The file of a score table: prompts × items × replicates of real scores, beside what the prompts are.

Notation (symbol → name, shape):
    P, I, R          prompts, items, replicates of one question
    X, Z             latent vectors and soft prompts      → ``candidates.X`` (P, D~), ``candidates.Z`` (P, D)
    h(ŷ, y)          scores in whole percents             → ``percents``  (P, I, R) uint8, ``MISSING`` where not asked
    ŷ                answers, as hashes                   → ``answers``   (P, I, R) uint64, 0 where not known
    temperature      of each replicate                    → ``temperatures`` (R,); the first is 0 in tables of ours

The file is a compressed ``npz`` without pickles. A table that is still being made is a table already: items that not
every prompt has met are left out when it is read (:meth:`ScoreTable.complete`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bestprompt.errors import TaskError
from bestprompt.types import SoftPromptSet

MISSING = 255


@dataclass(frozen=True)
class ScoreTable:
    """Scores and what they are scores of.

    Attributes:
        candidates: The prompts with their coordinates.
        inputs: (I,) what the prompts were asked about.
        percents: (P, I, R) scores in whole percents, ``MISSING`` where nothing was asked.
        answers: (P, I, R) hashes of the answers, 0 where they are not known.
        temperatures: (R,) of the replicates.
        facts: Names of task and model, and their fingerprints.
    """

    candidates: SoftPromptSet
    inputs: tuple[str, ...]
    percents: NDArray[np.uint8]
    answers: NDArray[np.uint64]
    temperatures: tuple[float, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def complete(self) -> ScoreTable:
        """The items that every prompt has met at the first temperature."""
        met = np.flatnonzero((self.percents[:, :, 0] != MISSING).all(axis=0))
        inputs = tuple(self.inputs[i] for i in met)
        return replace(self, inputs=inputs, percents=self.percents[:, met], answers=self.answers[:, met])

    @property
    def missing(self) -> int:
        """How many scores of the first replicate are still to come."""
        return int((self.percents[:, :, 0] == MISSING).sum())

    def save(self, path: Path) -> None:
        """Writes the file, all of it or nothing."""
        c = self.candidates
        X = np.zeros((len(c.prompts), 0)) if c.X is None else c.X
        fresh = path.with_suffix(".new")
        with fresh.open("wb") as file:
            np.savez_compressed(
                file,
                prompts=np.array(c.prompts),
                sources=np.array(c.sources),
                parents=c.parents,
                Z=c.Z,
                X=X.astype(np.float16),  # a 2000th in [-1, 1], and half the file
                inputs=np.array(self.inputs),
                scores=self.percents,
                answers=self.answers,
                temperatures=np.array(self.temperatures),
                facts=np.array(json.dumps(dict(self.facts))),
            )
        fresh.replace(path)

    @classmethod
    def load(cls, path: str | Path) -> ScoreTable:
        """The table as stored, unasked questions included.

        Raises:
            TaskError: There is no such file, or it holds no score table.
        """
        try:
            with np.load(path, allow_pickle=False) as stored:
                return cls._of(dict(stored))
        except (OSError, ValueError, KeyError) as error:
            raise TaskError(f"{path} holds no score table: {error}") from error

    @classmethod
    def _of(cls, stored: Mapping[str, Any]) -> ScoreTable:
        scores, prompts = stored["scores"], stored["prompts"]
        shape = (len(prompts), len(stored["inputs"]), len(stored["temperatures"]))
        if scores.dtype != np.uint8 or scores.shape != shape or (scores[scores != MISSING] > 100).any():
            raise ValueError(f"scores must be whole percents, uint8 of shape {shape} (prompts, items, replicates)")
        X = stored["X"].astype(np.float64)
        for name, rows in (("Z", stored["Z"]), ("X", X), ("sources", stored["sources"])):
            if len(rows) != len(prompts):
                raise ValueError(f"{name} has {len(rows)} rows for {len(prompts)} prompts")
        candidates = SoftPromptSet(
            tuple(prompts.tolist()),
            stored["Z"].astype(np.float64),
            X if X.shape[1] else None,
            stored["parents"].astype(np.int64),
            tuple(stored["sources"].tolist()),
        )
        temperatures = tuple(stored["temperatures"].tolist())
        facts = json.loads(str(stored["facts"]))
        return cls(candidates, tuple(stored["inputs"].tolist()), scores, stored["answers"], temperatures, facts)
