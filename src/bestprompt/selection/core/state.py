"""What a selection run remembers: its observations, how a round is folded into them, and what is believed after them.

Notation (paper symbol → name, shape):
    N      number of candidates                      → ``SelectionState.n_candidates``
    r_n    evaluations of candidate n so far         → ``SelectionState.counts``  (N,)
    v̄_n    mean observed score                       → ``SelectionState.means``   (N,)
    v̂_t    observed scores, in the order of telling  → ``SelectionState.scores``  (t,)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from bestprompt.errors import TaskError
from bestprompt.selection.core.rotation import IN_ORDER, Rotation
from bestprompt.selection.core.views import Cells, Noise, View
from bestprompt.types import FloatArray, IntArray, Observation, Proposal


class Belief(Protocol):
    """What is believed of the N candidates' mean scores after some observations; a value that never changes."""

    @property
    def mean(self) -> FloatArray:
        """(N,) posterior mean scores."""
        ...

    @property
    def noise(self) -> Noise:
        """Variances of one score around its candidate's mean."""
        ...

    @property
    def diagnostics(self) -> Mapping[str, float]:
        """Of the last fit, for the user to see."""
        ...

    def draws(self, count: int, rng: np.random.Generator) -> FloatArray:
        """(K, N) joint draws of the mean scores; K is ``count`` unless the belief holds draws of its own."""
        ...

    def view(
        self,
        state: SelectionState,
        remaining: int,
        draws: Callable[[], FloatArray],
        rows: IntArray | None = None,
    ) -> View:
        """What a decision about the next of ``remaining`` evaluations looks at.

        Args:
            state: The observations.
            remaining: Evaluations left.
            draws: Makes (K, N) of this belief, which takes time: not called where covariances are known.
            rows: The candidates in question; all that have a prospect if left out.
        """
        ...

    def cells(
        self, state: SelectionState, rows: IntArray, count: int, widening: float, rng: np.random.Generator
    ) -> Cells:
        """Joint draws of what the candidates ``rows`` are expected to score on every item of the rotation.

        Levels are spread by ``widening`` around their means.
        """
        ...


class Strategy(Protocol):
    """Forms beliefs and chooses evaluations; holds settings only, so that a replayed run does the same."""

    @property
    def starts_blind(self) -> bool:
        """Whether a belief can be formed before the first observation."""
        ...

    def updated(self, before: Belief | None, state: SelectionState) -> Belief:
        """The belief after ``state``; ``before`` is that before its last round, formed anew where it is of no use."""
        ...

    def choose(
        self, state: SelectionState, belief: Belief, waiting: IntArray, remaining: int, n: int, rng: np.random.Generator
    ) -> IntArray:
        """``n`` candidates to evaluate next; ``waiting`` (N,) evaluations are under way."""
        ...

    def questions(
        self, state: SelectionState, belief: Belief, chosen: IntArray, pending: Sequence[Proposal]
    ) -> list[Proposal]:
        """What the ``chosen`` candidates are asked, besides what is ``pending``."""
        ...


@dataclass(frozen=True)
class SelectionState:
    """All a run has seen; ``tell`` returns a new one.

    Rows of one round are kept sorted by (candidate, replication), so the order in which a round's answers arrive
    changes nothing.

    Attributes:
        candidates: (t,) evaluated candidate of each observation.
        replications: (t,) its replication.
        scores: (t,) its score.
        counts: (N,) evaluations so far.
        sums: (N,) sum of the scores.
        rotation: In which order candidates meet their replications.
        belief: What is believed after these observations; a function of the rest.
    """

    candidates: IntArray
    replications: IntArray
    scores: FloatArray
    counts: IntArray
    sums: FloatArray
    rotation: Rotation = IN_ORDER
    belief: Belief | None = None

    def __len__(self) -> int:
        return int(self.scores.size)

    @property
    def n_candidates(self) -> int:
        """Number of candidates, N."""
        return int(self.counts.size)

    @property
    def means(self) -> FloatArray:
        """(N,) observed means; 0 where nothing was observed."""
        return np.asarray(self.sums / np.maximum(self.counts, 1), dtype=np.float64)

    @cached_property
    def items(self) -> IntArray:
        """(t,) the item of each observation."""
        return self.rotation.item(self.replications)

    @property
    def left(self) -> FloatArray:
        """(N,) evaluations each candidate can still have: none, once it has met every item and none may be repeated."""
        return self.rotation.left(self.counts)

    @property
    def repetitions(self) -> IntArray:
        """(t,) how many observations share candidate and item with each, itself included; 1 where nothing repeats."""
        if not self._may_repeat:
            return np.ones(len(self), dtype=np.int64)
        cells = self._cells(self.candidates, self.items)
        return np.asarray(np.bincount(cells)[cells], dtype=np.int64)

    @property
    def met_before(self) -> IntArray:
        """(N,) how often each candidate has met the item it gets next."""
        if not self._may_repeat:
            return np.zeros(self.n_candidates, dtype=np.int64)
        following = self._cells(np.arange(self.n_candidates), self.rotation.item(self.following))
        met = np.bincount(self._cells(self.candidates, self.items), minlength=int(following.max()) + 1)
        return np.asarray(met[following], dtype=np.int64)

    @property
    def _may_repeat(self) -> bool:
        return self.rotation.repeats == "same-item" and self.rotation.items is not None

    def _cells(self, candidates: IntArray, items: IntArray) -> IntArray:
        """(k,) a number for each pair of candidate and item."""
        assert self.rotation.items is not None, "the number of items is known where they may come again"
        return np.asarray(candidates * self.rotation.items + items, dtype=np.int64)

    @cached_property
    def following(self) -> IntArray:
        """(N,) the replication each candidate gets next."""
        return self.rotation.following(self.candidates, self.replications, self.n_candidates)

    def items_met(self, candidate: int) -> int:
        """Different items that ``candidate`` has met."""
        return int(np.unique(self.items[self.candidates == candidate]).size)

    def met(self, candidate: int) -> set[int]:
        """The replications of ``candidate`` so far."""
        return set(self.replications[self.candidates == candidate].tolist())


def empty_state(n_candidates: int, rotation: Rotation = IN_ORDER) -> SelectionState:
    """Nothing evaluated yet."""
    none = np.zeros(0, dtype=np.int64)
    zeros = np.zeros(n_candidates, dtype=np.int64)
    return SelectionState(none, none, np.zeros(0), zeros, np.zeros(n_candidates), rotation)


def in_turn(state: SelectionState, chosen: Iterable[int], pending: Sequence[Proposal] = ()) -> list[Proposal]:
    """The next replication, in the rotation's order, of each of the ``chosen``; none for those that have met all."""
    proposals: list[Proposal] = []
    left = state.left
    for c in map(int, chosen):
        asked = {p.replication for p in (*pending, *proposals) if p.candidate == c}
        following: int | None = int(state.following[c]) if left[c] > 0.0 else None
        if asked:
            following = state.rotation.first_unmet(c, state.met(c) | asked)
        if following is not None:
            proposals.append(Proposal(c, following))
    return proposals


def grown(state: SelectionState, new: int = 1, barred: Iterable[int] = ()) -> SelectionState:
    """The same observations with ``new`` more candidates, not evaluated yet; the belief has to be formed anew.

    The first of them must not meet the items ``barred``.
    """
    return replace(
        state,
        counts=np.concatenate([state.counts, np.zeros(new, dtype=np.int64)]),
        sums=np.concatenate([state.sums, np.zeros(new)]),
        rotation=state.rotation.barring(state.n_candidates, frozenset(barred)),
        belief=None,
    )


def among(state: SelectionState, rows: IntArray) -> SelectionState:
    """The observations of the candidates ``rows`` alone, which are counted from 0 in that order."""
    place = np.full(state.n_candidates, -1, dtype=np.int64)
    place[rows] = np.arange(rows.size)
    mine = place[state.candidates] >= 0
    return SelectionState(
        place[state.candidates[mine]],
        state.replications[mine],
        state.scores[mine],
        state.counts[rows],
        state.sums[rows],
        replace(state.rotation, barred=()),
    )


def checked_round(state: SelectionState, observations: Sequence[Observation]) -> list[Observation]:
    """One round's observations in canonical order.

    Raises:
        TaskError: A score is not a finite number, a candidate does not exist, or an evaluation was told before.
    """
    ordered = sorted(observations, key=lambda o: (o.candidate, o.replication))
    alike = np.isin(state.replications, [o.replication for o in ordered])
    told = set(zip(state.candidates[alike].tolist(), state.replications[alike].tolist(), strict=True))
    for o in ordered:
        if not 0 <= o.candidate < state.n_candidates or o.replication < 0:
            raise TaskError(f"there is no candidate {o.candidate}, replication {o.replication}")
        if not math.isfinite(o.score):
            raise TaskError(
                f"candidate {o.candidate}, replication {o.replication} was scored {o.score}: a score must be a finite "
                "number. Give a failed evaluation a definite score (usually 0) or leave it out."
            )
        key = (o.candidate, o.replication)
        if key in told:
            raise TaskError(f"candidate {o.candidate}, replication {o.replication} was told twice")
        told.add(key)
    return ordered


def fold(state: SelectionState, ordered: Sequence[Observation]) -> SelectionState:
    """The state after a checked round; the belief is left as it was."""
    who = np.array([o.candidate for o in ordered], dtype=np.int64)
    which = np.array([o.replication for o in ordered], dtype=np.int64)
    values = np.array([o.score for o in ordered], dtype=np.float64)
    counts, sums = state.counts.copy(), state.sums.copy()
    np.add.at(counts, who, 1)
    np.add.at(sums, who, values)
    return replace(
        state,
        candidates=np.concatenate([state.candidates, who]),
        replications=np.concatenate([state.replications, which]),
        scores=np.concatenate([state.scores, values]),
        counts=counts,
        sums=sums,
    )
