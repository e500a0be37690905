"""Saying beforehand that a task cannot tell prompts apart on a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bestprompt.tasks.base import Task
from bestprompt.types import FloatArray


def separation(scores: FloatArray) -> tuple[float, float, float]:
    """How far prompt means spread, against what chance alone would spread them.

    With S (P, n) the scores of P prompts on the same n items, m_p their means and s_p² their variances over items:
    ``spread = sd(m_1 … m_P)``, ``se = sqrt(mean(s_p²) / n)``, ``ratio = spread / se``. Equal prompts give a ratio
    near 1, so 2 is a clear difference.

    Args:
        scores: (P, n) with P, n ≥ 2.

    Returns:
        ``(ratio, spread, se)``; the ratio is 0 where all scores are equal and infinite where only prompts differ.
    """
    spread = float(np.std(scores.mean(axis=1), ddof=1))
    se = float(np.sqrt(np.mean(np.var(scores, axis=1, ddof=1)) / scores.shape[1]))
    if se == 0:
        return (float("inf") if spread > 0 else 0.0), spread, se
    return spread / se, spread, se


def floor_warning(task: Task, model_name: str, pilot_scores: Sequence[Sequence[float]] = ()) -> str | None:
    """One sentence when the task does not separate prompts on this model, else ``None``.

    Args:
        task: The task about to be run.
        model_name: The model's ``name``.
        pilot_scores: For each of a few prompts, its scores on a few items; empty before a pilot was run. What a pilot
            shows outranks what was measured before: it may be another version of the model.
    """
    scores = np.concatenate([np.asarray(row, float).ravel() for row in pilot_scores]) if pilot_scores else np.empty(0)
    where = f"{task.name} on {model_name}"
    if scores.size and scores.max() == 0:
        return f"{where} is on the floor: all {scores.size} pilot answers scored 0, so prompts cannot be told apart."
    if scores.size > 1 and scores.min() == scores.max():
        return f"{where}: all {scores.size} pilot answers scored {scores[0]:.2f}, so prompts cannot be told apart."
    means = [float(np.mean(row)) for row in pilot_scores if len(row)]
    if len(means) > 1 and min(means) == max(means):
        return f"{where}: all {len(means)} pilot prompts scored {means[0]:.2f} on average: no difference between them."
    measured = task.measured_on.get(model_name)
    if measured is False:
        return (
            f"{where} was measured not to separate prompts: expect differences no larger than chance; "
            f"{_alternatives(task, model_name)}"
        )
    return None


def _alternatives(task: Task, model_name: str) -> str:
    others = sorted(name for name, separates in task.measured_on.items() if separates and name != model_name)
    return f"it does on {', '.join(others)}." if others else "choose another task or a stronger model."
