"""What the observations of a run say about latent vectors: means with their noise, item effects taken out.

Notation (paper symbol → name, shape):
    v̄_n        mean observed score of an evaluated candidate      → ``Observed.scores``     (m,)
    σ²(X)      variance of one evaluation, by kriging of log variances over the latent space → ``noise``  (N,)
    b_r        effect of item r on every candidate (pairs = common), own addition → ``shrunken_item_effects``
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bestprompt.errors import SurrogateError
from bestprompt.kriging.inputs import Observed, observed
from bestprompt.kriging.variance import variance_model
from bestprompt.selection import SelectionState
from bestprompt.selection.belief.noise import estimate_noise, shrunken_item_effects
from bestprompt.types import Evidence, FloatArray, IntArray


def first_observations(state: SelectionState, count: int, n_candidates: int) -> SelectionState:
    """The state after its first ``count`` observations, of the first ``n_candidates`` candidates."""
    who, which, scores = state.candidates[:count], state.replications[:count], state.scores[:count]
    counts = np.bincount(who, minlength=n_candidates)
    sums = _totals(who, scores, n_candidates)
    return SelectionState(who, which, scores, counts, sums, state.rotation)


def observed_vectors(
    X: FloatArray, coordinates: FloatArray, state: SelectionState, common: bool
) -> tuple[Observed, FloatArray]:
    """The evaluated ones of the latent vectors ``X`` (N, D~), and σ² (N + k,).

    Args:
        X: (N, D~) latent vectors of the candidates of ``state``.
        coordinates: (N + k, d) their coordinates, and those of k further vectors where the noise is wanted.
        state: The observations.
        common: Whether replication r is the same item for every candidate.
    """
    if common and len(state):
        adjusted = state.scores - shrunken_item_effects(state)
        state = replace(state, scores=adjusted, sums=_totals(state.candidates, adjusted, len(X)))
    noise = _noise(coordinates, state)
    return observed(X, Evidence(state.counts, state.means, noise[: len(X)])), noise


def _totals(who: IntArray, scores: FloatArray, n: int) -> FloatArray:
    return np.asarray(np.bincount(who, scores, minlength=n), dtype=np.float64)


def _noise(coordinates: FloatArray, state: SelectionState) -> FloatArray:
    rows = np.flatnonzero(state.counts > 1)
    if rows.size < 3:  # nearly nothing was evaluated twice: the overall variance of the scores is mostly noise
        return np.full(len(coordinates), float(np.median(estimate_noise(state, common=False).variances)))
    variances = np.array([np.var(state.scores[state.candidates == row], ddof=1) for row in rows])
    try:
        return variance_model("kriging")(coordinates, rows, variances, state.counts[rows])
    except SurrogateError:
        return np.full(len(coordinates), float(np.median(estimate_noise(state, common=False).variances)))
