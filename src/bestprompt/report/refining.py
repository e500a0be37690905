"""What refinement did, as plain values: predicted against observed, and whose turn it was."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bestprompt.run.result import Refinement
from bestprompt.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Predictions:
    """What was predicted of each refined prompt before its first evaluation, and what was seen: (K,) each."""

    prompts: tuple[str, ...]
    predicted: FloatArray
    std: FloatArray
    observed: FloatArray
    evaluations: IntArray


@dataclass(frozen=True, slots=True)
class Turns:
    """What a call was expected to gain at each look outside the set, and whose turn it was: (L,) each."""

    call: IntArray
    selecting: FloatArray
    refining: FloatArray
    refined: BoolArray


def predictions(refinement: Refinement) -> Predictions:
    """Predicted against observed mean scores of the refined prompts that were evaluated."""
    seen = [r for r in refinement.tried if r.evaluations]
    return Predictions(
        prompts=tuple(r.prompt for r in seen),
        predicted=np.array([r.predicted for r in seen]),
        std=np.array([r.std for r in seen]),
        observed=np.array([r.observed for r in seen]),
        evaluations=np.array([r.evaluations for r in seen], dtype=np.int64),
    )


def turns(refinement: Refinement) -> Turns:
    """The rule that shares the budget, look by look."""
    looks = refinement.looks
    return Turns(
        call=np.array([look.at for look in looks], dtype=np.int64),
        selecting=np.array([look.selection_value for look in looks]),
        refining=np.array([look.refinement_value for look in looks]),
        refined=np.array([look.turn == "refine" for look in looks], dtype=np.bool_),
    )
