"""Every prompt on every model: the candidates of a run that compares several models.

Notation (symbol → name):
    z_p     soft prompt of prompt p (D,)                          → ``candidates.Z``
    e_m     unit vector of model m (M,)
    z_pm    (z_p, c e_m), the candidate (p, m)                    → ``Z`` of the result, (M·P, D + M)
    c       root mean square distance of the prompts from their centre: two models are as far apart as two prompts

A kernel of the distance |z_pm − z_qk|² = |z_p − z_q|² + 2c² 1[m ≠ k] lets an answer to a prompt on one model tell
something about the same prompt on another, and about other prompts on the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bestprompt.types import FloatArray, SoftPromptSet


def across(candidates: SoftPromptSet, models: Sequence[str]) -> SoftPromptSet:
    """``candidates`` on each of ``models``, those of the first model first; as they are where no model is named."""
    if not models:
        return candidates
    prompts, count = len(candidates.prompts), len(models)
    block = np.repeat(spread(candidates.Z) * np.eye(count), prompts, axis=0)
    shift = np.repeat(np.arange(count) * prompts, prompts)
    parents = np.tile(candidates.parents, count)
    return replace(
        candidates,
        prompts=candidates.prompts * count,
        Z=np.hstack([np.tile(candidates.Z, (count, 1)), block]),
        X=None if candidates.X is None else np.tile(candidates.X, (count, 1)),
        parents=np.where(parents < 0, parents, parents + shift),
        sources=candidates.sources * count,
        models=tuple(model for model in models for _ in range(prompts)),
    )


def spread(Z: FloatArray) -> float:
    """c, the root mean square distance of the rows from their centre; 1 where they are all the same."""
    centred = Z - Z.mean(axis=0)
    return float(np.sqrt((centred**2).sum(axis=1).mean())) or 1.0
