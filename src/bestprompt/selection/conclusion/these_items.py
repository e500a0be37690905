"""What a run can say about the items it was given, as opposed to items like them.

Notation (symbol → name, shape):
    M          items at hand                                        → ``OnTheseItems.items``
    s_nm       mean score of candidate n on item m, over as many answers as one likes
    v_n^M      (1/M) Σ_m s_nm: what n scores on these M items
    ȳ_nm, A    mean of the A answers seen of n on m
    p_nm       E[s_nm | f_n, b_m]; σ² variance of one answer around it, ι the share of σ² that is the cell's own

v_n, the mean over all items like these, stays uncertain by (σ_item² + ι σ²)/M when everything has been asked; v_n^M
does not. Where the same question has the same answer, ι is 1 and an answered cell is known: s_nm = ȳ_nm. Elsewhere
s_nm is normal, its mean between p_nm and ȳ_nm. Cells that were not asked are drawn around p_nm, f and b from their
joint posterior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bestprompt.selection.core.state import SelectionState
from bestprompt.selection.core.views import Cells
from bestprompt.types import FloatArray, IntArray

FINALISTS = 30
CELLS_AT_ONCE = 4 * 10**6
FEWEST_DRAWS, MOST_DRAWS = 200, 2000


@dataclass(frozen=True, slots=True)
class OnTheseItems:
    """The recommended candidate on the items at hand.

    Attributes:
        items: How many there are.
        asked: On how many of them the candidate was evaluated.
        score: Its expected mean score on all of them.
        interval: 95 % interval of that mean; of no width once all were asked and the same question has the same answer.
        probability_best: Probability that no other candidate has a higher mean on them.
    """

    items: int
    asked: int
    score: float
    interval: tuple[float, float]
    probability_best: float


def finalists(winner: int, estimates: FloatArray, deviations: FloatArray) -> IntArray:
    """The candidates that may be best, the winner first."""
    order = np.argsort(-(estimates + 2.0 * deviations), kind="stable")
    return np.concatenate([[winner], order[order != winner][: FINALISTS - 1]]).astype(np.int64)


def number_of_draws(rows: IntArray, items: int) -> int:
    """K: as many as memory allows, within reason."""
    return int(np.clip(CELLS_AT_ONCE // (rows.size * items), FEWEST_DRAWS, MOST_DRAWS))


def on_these_items(
    state: SelectionState, rows: IntArray, cells: Cells, items: int, binary: bool, rng: np.random.Generator
) -> OnTheseItems:
    """What is known of the mean scores of the candidates ``rows`` on the ``items`` items, the first of them the winner.

    Args:
        state: All observations.
        rows: (F,) candidates, as in ``cells``.
        cells: What answers are expected.
        items: M.
        binary: Whether scores are right or wrong.
        rng: Of what is not known.
    """
    place = np.full(state.n_candidates, -1, dtype=np.int64)
    place[rows] = np.arange(rows.size)
    mine = place[state.candidates] >= 0
    where = place[state.candidates[mine]], state.items[mine]
    answers, sums = np.zeros((rows.size, items)), np.zeros((rows.size, items))
    np.add.at(answers, where, 1.0)
    np.add.at(sums, where, state.scores[mine])
    if cells.shared >= 1.0 and binary:
        drawn = (rng.random(cells.mean.shape) < cells.mean).astype(np.float64)
        values = np.where(answers > 0, sums, drawn)
    else:
        own = cells.shared * cells.variance
        weight = answers * own / (answers * own + (1.0 - cells.shared) * cells.variance + 1e-12)
        weight = np.where((answers > 0) & (cells.shared >= 1.0), 1.0, weight)
        mean = cells.mean + weight * (sums / np.maximum(answers, 1.0) - cells.mean)
        values = mean + np.sqrt(own * (1.0 - weight)) * rng.standard_normal(cells.mean.shape)
    means = values.mean(axis=2)
    low, high = np.quantile(means[:, 0], [0.025, 0.975])
    return OnTheseItems(
        items,
        int(np.count_nonzero(answers[0])),
        float(means[:, 0].mean()),
        (float(low), float(high)),
        float(np.mean(means[:, 0] >= means.max(axis=1) - 1e-9)),
    )
