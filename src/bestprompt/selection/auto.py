"""``surrogate = auto``: the averaged belief, to which a network's kernel is added when held-out scores speak for it.

Notation (symbol → name, shape):
    ṽ_n, s_n²   mean score of candidate n with item effects taken out, and its variance    → ``Targets``  (M,), (M,)
    l_n(h)      log N(ṽ_n; μ_n, C_nn + s_n²) of a belief formed without n's fold           → ``Targets.log_density``
    d_n         l_n(average with the kernel of kind k) − l_n(average)                      → ``AutoStrategy.compared``

The average already holds a linear kernel and radial ones at several lengths, so the linear surrogate and the GP (exact,
hence any finite rank of it) compete within it by their evidence. What it cannot hold are the surrogates that learn how
candidates resemble one another: the Bayesian network and the variational autoencoder. Their fits give a kernel
(``FittedFeatures.correlation``), and that is one more correlation for hypotheses with nugget, scale and item effects
like all others. A kernel learned from the scores makes the same scores look likely, so evidence cannot judge it:
it enters only when it predicts candidates left out of the fit better, by ``MARGIN`` standard errors of the mean of d_n.

A needless kernel does little harm, as evidence still weighs it against the others; a wide margin would cost
more than it protects.

The comparison runs once ``FEWEST`` candidates were evaluated and again whenever the observations have doubled; a kind
behind by a standard error is not tried again. It looks at no more than ``MOST`` candidates, which bounds its cost:
about half a second of processor time at 120 candidates, besides some ten seconds of compilation once per process. All
is a function of the observations, so a replayed run compares at the same points with the same outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from bestprompt.rng import stream
from bestprompt.selection.averaged import AveragedStrategy
from bestprompt.selection.belief import Belief
from bestprompt.selection.information import observed_information
from bestprompt.selection.noise import estimate_noise
from bestprompt.selection.rank import View
from bestprompt.selection.state import SelectionState
from bestprompt.surrogates.base import make_surrogate
from bestprompt.surrogates.network import row_shape
from bestprompt.types import BoolArray, Evidence, FloatArray, IntArray, Proposal

KINDS = ("bnn", "vae")
FITTING = {"steps": 300, "warm_steps": 50, "n_draws": 32, "batch_rows": 64}
FEWEST = 48
MOST = 256
FOLDS = 4
MARGIN = 1.0


@dataclass(frozen=True, slots=True)
class Choice:
    """What the last comparison concluded.

    Attributes:
        kind: The surrogate whose kernel is in the average, or ``None``.
        kernel: (N, N) that kernel.
        open: Kinds that may still be tried.
        compared: Observations at that comparison, 0 before the first.
    """

    kind: str | None = None
    kernel: FloatArray | None = None
    open: tuple[str, ...] = KINDS
    compared: int = 0

    def due(self, state: SelectionState) -> bool:
        """Whether ``state`` is worth another comparison."""
        enough = int(np.count_nonzero(state.counts)) >= FEWEST and len(state) >= 2 * self.compared
        return enough and len(self.open) > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoBelief(Belief):
    """A belief that remembers the choice of its kernels."""

    choice: Choice


@dataclass(frozen=True, slots=True)
class Targets:
    """What held-out candidates are judged by: ṽ (M,) and s² (M,)."""

    values: FloatArray
    variances: FloatArray

    def log_density(self, belief: Belief) -> FloatArray:
        """(M,) l_n."""
        spread = np.diag(belief.covariance) + self.variances
        return np.asarray(-0.5 * (np.log(2.0 * np.pi * spread) + (self.values - belief.mean) ** 2 / spread))


@dataclass(frozen=True, slots=True)
class AutoStrategy:
    """The averaged strategy with kernels that are learned on the way.

    Attributes:
        averaged: Strategy over the fixed hypotheses.
        Z: (N, D) coordinates of the candidates.
        seed: Of the run.
    """

    averaged: AveragedStrategy
    Z: FloatArray
    seed: int

    def updated(self, before: Belief | None, state: SelectionState) -> AutoBelief:
        """Belief after ``state``, given the belief before its last round."""
        choice = before.choice if isinstance(before, AutoBelief) else Choice()
        if choice.due(state):
            newer = self.compared(choice, state)
            if newer.kind or choice.kind:
                before = None  # the hypotheses have changed
            choice = newer
        belief = _with_kernel(self.averaged, choice.kernel).updated(before, state)
        return AutoBelief(**{f.name: getattr(belief, f.name) for f in fields(Belief)}, choice=choice)

    def view(self, state: SelectionState, belief: Belief, remaining: int) -> View:
        """What decisions look at."""
        return self.averaged.view(state, belief, remaining)

    def choose(
        self, state: SelectionState, belief: Belief, waiting: IntArray, remaining: int, n: int, rng: np.random.Generator
    ) -> IntArray:
        """``n`` candidates to evaluate next."""
        return self.averaged.choose(state, belief, waiting, remaining, n, rng)

    def questions(
        self, state: SelectionState, belief: AutoBelief, chosen: IntArray, pending: Sequence[Proposal]
    ) -> list[Proposal]:
        """What the ``chosen`` candidates are asked, besides what is ``pending``."""
        return self.averaged.questions(state, belief, chosen, pending)

    def compared(self, choice: Choice, state: SelectionState) -> Choice:
        """The choice after comparing the open kinds on the candidates evaluated most."""
        rows = np.sort(np.argsort(-state.counts, kind="stable")[: min(MOST, np.count_nonzero(state.counts))])
        few, shapes, Z = _restricted(state, rows), self.averaged.shapes, _widened(self.Z)
        strategy = replace(
            self.averaged, shapes=replace(shapes, correlations=shapes.correlations[:, rows[:, None], rows])
        )
        targets = targets_of(few, self.averaged.common)
        folds = stream(self.seed, "auto", len(state)).permutation(rows.size) % FOLDS

        def kernel(kind: str, used: BoolArray, where: FloatArray, fold: int) -> FloatArray:
            surrogate: Any = make_surrogate(kind, **FITTING)
            evidence = Evidence(used.astype(np.int64), targets.values, targets.variances)
            rng = stream(self.seed, "auto", len(state), kind, fold)
            return np.asarray(surrogate.fit(Z[rows], evidence, rng).correlation(where))

        def held_out(kind: str | None) -> FloatArray:
            result = np.zeros(rows.size)
            for fold in range(FOLDS):
                used = folds != fold
                learned = None if kind is None else kernel(kind, used, Z[rows], fold)
                belief = _with_kernel(strategy, learned).updated(None, _observations(few, used))
                result[~used] = targets.log_density(belief)[~used]
            return result

        plain = held_out(None)
        gains = {kind: held_out(kind) - plain for kind in choice.open}
        margins = {kind: d.mean() / (d.std(ddof=1) / np.sqrt(d.size) + 1e-12) for kind, d in gains.items()}
        best = max(margins, key=lambda kind: float(margins[kind]))
        still_open = tuple(kind for kind in choice.open if margins[kind] > -1.0)
        if margins[best] <= MARGIN:
            return Choice(None, None, still_open, len(state))
        learned = kernel(best, np.ones(rows.size, dtype=np.bool_), Z, FOLDS)
        return Choice(best, learned, still_open, len(state))


def targets_of(state: SelectionState, common: bool) -> Targets:
    """ṽ and s² of candidates that were all evaluated; generalised least squares where items have effects."""
    centre = float(state.scores.mean())
    noise = estimate_noise(state, common)
    information = observed_information(
        state, 1.0 / noise.variances[state.candidates], state.scores - centre, noise.item
    )
    root = information.root
    if root.ndim == 1:
        return Targets(centre + information.vector / root**2, 1.0 / root**2)
    return Targets(centre + cho_solve((root, True), information.vector), 1.0 / (root**2).sum(axis=1))


def _widened(Z: FloatArray) -> FloatArray:
    """``Z`` (N, D) with zero columns up to a power of two: few shapes to compile for, and the same kernels."""
    width = row_shape(Z.shape[1], smallest=16)
    return np.concatenate([Z, np.zeros((len(Z), width - Z.shape[1]))], axis=1)


def _with_kernel(strategy: AveragedStrategy, kernel: FloatArray | None) -> AveragedStrategy:
    """The strategy with one more correlation, in the same hypotheses as the first."""
    if kernel is None:
        return strategy
    shapes = strategy.shapes
    more = [replace(h, shape=len(shapes.correlations)) for h in shapes.hypotheses if h.shape == 0]
    correlations = np.concatenate([shapes.correlations, kernel[None]])
    return replace(strategy, shapes=replace(shapes, correlations=correlations, hypotheses=(*shapes.hypotheses, *more)))


def _restricted(state: SelectionState, rows: IntArray) -> SelectionState:
    """The same run as if only the candidates ``rows`` (M,), in this order, existed."""
    place = np.full(state.n_candidates, -1, dtype=np.int64)
    place[rows] = np.arange(rows.size)
    kept = place[state.candidates] >= 0
    return replace(
        state,
        candidates=place[state.candidates[kept]],
        replications=state.replications[kept],
        scores=state.scores[kept],
        counts=state.counts[rows],
        sums=state.sums[rows],
        belief=None,
    )


def _observations(state: SelectionState, used: BoolArray) -> SelectionState:
    """The same run without the observations of candidates not ``used`` (N,)."""
    kept = used[state.candidates]
    return replace(
        state,
        candidates=state.candidates[kept],
        replications=state.replications[kept],
        scores=state.scores[kept],
        counts=np.where(used, state.counts, 0),
        sums=np.where(used, state.sums, 0.0),
    )
