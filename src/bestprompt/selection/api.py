"""``select``: the whole sequential step as one function of arrays and a scoring callback."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bestprompt.choices import Mode, Pairs
from bestprompt.selection.conclusion.verdict import SelectionResult
from bestprompt.selection.core.config import SelectorConfig
from bestprompt.selection.selector import Selector
from bestprompt.types import Acquisition, FloatArray, Maximizer, Observation, Surrogate


def select(
    Z: FloatArray,
    score: Callable[[int, int], float],
    budget: int,
    *,
    seed: int = 0,
    mode: Mode = "default",
    surrogate: str | Surrogate = "auto",
    acquisition: str | Acquisition = "auto",
    maximizer: str | Maximizer = "auto",
    incumbent: int | None = None,
    pairs: Pairs = "independent",
    batch: int = 1,
    config: SelectorConfig | None = None,
) -> SelectionResult:
    """Finds the best of the candidates at ``Z`` (N, D) in ``budget`` evaluations.

    Args:
        Z: (N, D) coordinates of the candidates, in any units: principal components keep theirs, others are brought to
            one spread (:mod:`bestprompt.selection.core.units`).
        score: ``score(candidate, replication)`` is one evaluation, a float in [0, 1].
        budget: Evaluations allowed.
        seed: Seed of every random choice.
        mode: ``"default"`` or ``"paper"``.
        surrogate: ``"auto"``, a name in :data:`bestprompt.choices.SURROGATES`, or an object
            (:class:`bestprompt.types.Surrogate`).
        acquisition: Of a surrogate: ``"auto"``, a name in :data:`bestprompt.choices.ACQUISITIONS`, or an object
            (:class:`bestprompt.types.Acquisition`).
        maximizer: Of the acquisition: ``"auto"``, a name in :data:`bestprompt.choices.MAXIMIZERS`, or an object
            (:class:`bestprompt.types.Maximizer`).
        incumbent: The candidate in use today.
        pairs: ``"common"`` when replication r is the same item (and seed) for every candidate.
        batch: Evaluations asked for at a time.
        config: All settings at once; replaces every argument above but ``batch``.
    """
    settings = config or SelectorConfig(
        budget=budget,
        mode=mode,
        surrogate=surrogate,
        acquisition=acquisition,
        maximizer=maximizer,
        pairs=pairs,
        seed=seed,
        incumbent=incumbent,
    )
    selector = Selector(np.asarray(Z, dtype=np.float64), settings)
    state = selector.initial()
    while selector.should_stop(state) is None:
        proposals = selector.ask(state, batch)
        answers = [Observation(p.candidate, p.replication, float(score(p.candidate, p.replication))) for p in proposals]
        state = selector.tell(state, answers)
    return selector.recommend(state)
