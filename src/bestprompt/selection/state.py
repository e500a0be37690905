"""What a selection run is told and what it remembers: configuration, observations, and the fold of one into the other.

Notation (paper symbol → name, shape):
    T      evaluations allowed                       → ``SelectorConfig.budget``
    N      number of candidates                      → ``SelectionState.n_candidates``
    R      warm-up evaluations per candidate         → ``SelectorConfig.replications``
    r_n    evaluations of candidate n so far         → ``SelectionState.counts``  (N,)
    v̄_n    mean observed score                       → ``SelectionState.means``   (N,)
    v̂_t    observed scores, in the order of telling  → ``SelectionState.scores``  (t,)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from bestprompt.errors import ConfigError, TaskError
from bestprompt.selection.rotation import BLOCK, IN_ORDER, Rotation
from bestprompt.types import FloatArray, IntArray, Observation

if TYPE_CHECKING:
    from bestprompt.selection.belief import Belief
    from bestprompt.selection.named import NamedBelief

Mode = Literal["default", "paper"]
Pairs = Literal["common", "independent"]
Policy = Literal["auto", "random"]
Start = Literal["space-filling", "random", "given"]


@dataclass(frozen=True, slots=True)
class SelectorConfig:
    """Every setting of a selection run.

    Attributes:
        budget: Evaluations allowed, T.
        mode: ``"default"``, or ``"paper"`` for the published procedure to the letter.
        surrogate: ``"auto"`` averages Gaussian process kernels, a linear one and the unstructured model by their
            evidence, and adds the kernel of a network once that predicts held-out candidates better; ``"average"``
            leaves networks out, ``"none"`` all structure; ``"gp"``, ``"gp-rank"``, ``"blr"``, ``"bnn"`` and ``"vae"``
            fit that surrogate and choose by M-UCB.
        pairs: ``"common"`` when replication r is the same item for every candidate, else ``"independent"``.
        items: How many items there are, where that is known; after so many replications they come again.
        replications: Warm-up evaluations per warm-up candidate in paper mode, R.
        seed: Seed of every random choice.
        policy: ``"auto"``, or ``"random"`` for the paper's baseline, which evaluates candidates at random.
        warmup: How warm-up candidates are found; ``"given"`` uses ``examples``.
        warmup_fraction: Share of the candidates warmed up in paper mode where no examples are given.
        examples: Candidates evaluated first, e.g. the user's own prompts.
        incumbent: The candidate in use today, if any.
        costs: What one call with each candidate costs, in any unit; ties go to the cheapest.
        delta: The difference in score that matters.
        stop_probability: Stop when the recommended candidate is within ``delta`` of the best with this probability;
            ``None`` never stops for this reason.
        stop_loss: Stop when the expected shortfall of the recommended candidate falls below this; ``None`` never.
        price: Score one further call must be expected to gain to be worth making; ``None`` spends the budget.
        beta: Multiplier b of M-UCB's b sqrt(2 ln t); ``None`` is 1 in paper mode, and tuned on the kriging twin, with
            the count bonus, where a named surrogate runs in default mode.
        gamma: Scale of the paper's count bonus c / sqrt(m).
        surrogate_options: Keyword arguments of a named surrogate.
    """

    budget: int
    mode: Mode = "default"
    surrogate: str = "auto"
    pairs: Pairs = "independent"
    items: int | None = None
    replications: int = 5
    seed: int = 0
    policy: Policy = "auto"
    warmup: Start = "space-filling"
    warmup_fraction: float = 0.05
    examples: tuple[int, ...] = ()
    incumbent: int | None = None
    costs: tuple[float, ...] | None = None
    delta: float = 0.02
    stop_probability: float | None = None
    stop_loss: float | None = None
    price: float | None = None
    beta: float | None = None
    gamma: float = 2.0
    surrogate_options: tuple[tuple[str, object], ...] = ()

    @property
    def rotation(self) -> Rotation:
        """In which order candidates meet the items; the paper's procedure knows of none."""
        rotates = self.pairs == "common" and self.mode == "default"
        return Rotation(BLOCK, self.items) if rotates else IN_ORDER

    def check(self, n_candidates: int) -> None:
        """Raises ``ConfigError`` when a setting cannot be used with ``n_candidates`` candidates."""
        problems = {
            "budget must be a positive whole number": self.budget < 1,
            "mode must be 'default' or 'paper'": self.mode not in ("default", "paper"),
            "pairs must be 'common' or 'independent'": self.pairs not in ("common", "independent"),
            "policy must be 'auto' or 'random'": self.policy not in ("auto", "random"),
            "items must be a positive whole number": self.items is not None and self.items < 1,
            "replications must be at least 1": self.replications < 1,
            "delta must not be negative": not self.delta >= 0.0,
            "there must be one cost per candidate": self.costs is not None and len(self.costs) != n_candidates,
            "incumbent must be the number of a candidate": self.incumbent is not None
            and not 0 <= self.incumbent < n_candidates,
            "examples must be numbers of candidates": any(not 0 <= e < n_candidates for e in self.examples),
            "stop_probability must lie between 0 and 1": self.stop_probability is not None
            and not 0.0 < self.stop_probability < 1.0,
        }
        for message, wrong in problems.items():
            if wrong:
                raise ConfigError(f"selection: {message} ({n_candidates} candidates, {self!r})")


@dataclass(frozen=True, slots=True)
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
        belief: What the default mode believes after these observations; a function of the rest.
    """

    candidates: IntArray
    replications: IntArray
    scores: FloatArray
    counts: IntArray
    sums: FloatArray
    rotation: Rotation = IN_ORDER
    belief: Belief | NamedBelief | None = None

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

    @property
    def following(self) -> IntArray:
        """(N,) the replication each candidate gets next."""
        return self.rotation.following(self.candidates, self.replications, self.n_candidates)

    def met(self, candidate: int) -> set[int]:
        """The replications of ``candidate`` so far."""
        return set(self.replications[self.candidates == candidate].tolist())


def empty_state(n_candidates: int, rotation: Rotation = IN_ORDER) -> SelectionState:
    """Nothing evaluated yet."""
    none = np.zeros(0, dtype=np.int64)
    zeros = np.zeros(n_candidates, dtype=np.int64)
    return SelectionState(none, none, np.zeros(0), zeros, np.zeros(n_candidates), rotation)


def grown(state: SelectionState, new: int = 1) -> SelectionState:
    """The same observations with ``new`` more candidates, not evaluated yet; the belief has to be formed anew."""
    return replace(
        state,
        counts=np.concatenate([state.counts, np.zeros(new, dtype=np.int64)]),
        sums=np.concatenate([state.sums, np.zeros(new)]),
        belief=None,
    )


def checked_round(state: SelectionState, observations: Sequence[Observation]) -> list[Observation]:
    """One round's observations in canonical order.

    Raises:
        TaskError: A score is not a finite number, a candidate does not exist, or an evaluation was told before.
    """
    ordered = sorted(observations, key=lambda o: (o.candidate, o.replication))
    told = set(zip(state.candidates.tolist(), state.replications.tolist(), strict=True))
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
