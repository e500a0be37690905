"""The ask/tell core of the evaluation and selection stage.

``ask``, ``tell`` and ``recommend`` are functions of (Z, configuration, state) alone: randomness comes from streams
keyed by the number of observations, so a run replayed from its record asks exactly the same questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bestprompt.errors import ConfigError
from bestprompt.rng import stream
from bestprompt.selection.auto import AutoStrategy
from bestprompt.selection.averaged import AveragedStrategy
from bestprompt.selection.belief import Belief
from bestprompt.selection.config import SelectorConfig
from bestprompt.selection.kernels import candidate_shapes
from bestprompt.selection.named import DENSE, NamedBelief, NamedStrategy
from bestprompt.selection.rank import View, next_candidates, value_of_more_calls, value_of_next_call
from bestprompt.selection.reach import Reach, reach
from bestprompt.selection.state import SelectionState, checked_round, empty_state, fold
from bestprompt.selection.these_items import OnTheseItems, finalists, number_of_draws, on_these_items
from bestprompt.selection.verdict import DRAWS, Recommendation, allowance, certainty, conclude, preferred, widened
from bestprompt.selection.warmup import spread_out, warmup_plan
from bestprompt.types import BoolArray, FloatArray, IntArray, Observation, Proposal

MOST_DRAWN = 10**6
# Candidates whose covariances a decision looks at where a surrogate is named: the rest have no prospect.
LOOKED_AT = 500
# Share of the budget that settles first which of the user's own prompts is best, and the most calls to each of them on
# average. An invented prompt that wins must then beat a known one: no run should leave its user worse off.
OWN_SHARE, OWN_CALLS = 0.25, 20


class Selector:
    """Selects the best of N candidates within a budget of noisy evaluations.

    Args:
        Z: (N, D) coordinates of the candidates.
        config: Settings of the run.

    Raises:
        ConfigError: A setting is out of range, or ``Z`` is not a finite matrix.
    """

    def __init__(self, Z: FloatArray, config: SelectorConfig) -> None:
        Z = np.asarray(Z, dtype=np.float64)
        if Z.ndim != 2 or Z.shape[0] == 0:
            raise ConfigError(f"selection: Z must have one row per candidate, not shape {Z.shape}")
        if not np.isfinite(Z).all():
            raise ConfigError("selection: Z must be finite")
        config.check(Z.shape[0])
        self.Z, self.config = Z, config
        self._plan = warmup_plan(Z, config)
        # Typed loosely: each strategy takes back the belief it made itself.
        self._strategy: Any = self._make_strategy()

    def initial(self) -> SelectionState:
        """The state before any evaluation."""
        return empty_state(self.Z.shape[0], self.config.rotation)

    def ask(self, state: SelectionState, n: int = 1, pending: Sequence[Proposal] = ()) -> list[Proposal]:
        """The next ``n`` evaluations; ``pending`` ones are under way.

        Fewer when the budget or the warm-up ends, or when nearly everything has been asked.
        """
        waiting = np.bincount([p.candidate for p in pending], minlength=state.n_candidates)
        n = int(min(n, self.config.budget - len(state) - len(pending), (state.left - waiting).sum()))
        if n <= 0:
            return []
        proposals: list[Proposal] = []
        for c in map(int, self._next(state, n, waiting)):
            met = state.met(c).union(p.replication for p in (*pending, *proposals) if p.candidate == c)
            following = next((r for r in state.rotation.order(c) if r not in met), None)
            if following is not None:
                proposals.append(Proposal(c, following))
        return proposals

    def tell(self, state: SelectionState, observations: Sequence[Observation]) -> SelectionState:
        """The state after a round of observations, in whatever order they came.

        Raises:
            TaskError: A score is not finite, a candidate does not exist, or an evaluation was told before.
        """
        if not observations:
            return state
        after = fold(state, checked_round(state, observations))
        if len(after) < self._plan.size or self.config.policy == "random":
            return after
        return replace(after, belief=self._strategy.updated(state.belief, after))

    def choice(self, state: SelectionState, allowed: BoolArray | None = None) -> int:
        """The candidate ``recommend`` would name, without the rest."""
        return self._winner(state, self._belief(state).mean, allowed)

    def view(self, state: SelectionState) -> View:
        """What a decision about the next evaluation may look at."""
        belief = self._belief(state)
        return self._view(state, belief, self._draws(state, belief, "view"))

    def recommend(self, state: SelectionState, allowed: BoolArray | None = None) -> Recommendation:
        """The candidate to use and how sure that is; of those ``allowed`` (N,) only, where given."""
        belief = self._belief(state)
        estimates = belief.mean
        draws = self._draws(state, belief, "verdict")
        view = self._view(state, belief, draws)
        more = value_of_more_calls(view, max(len(state), 1), stream(self.config.seed, "more", len(state)))
        winner = self._winner(state, estimates, allowed)
        stopped, here = self.should_stop(state), self._on_these_items(state, belief, winner, draws)
        shown = self._reach(state, belief, winner, draws)
        found = conclude(self.config, state, winner, estimates, draws, belief.noise, more, stopped, here, shown)
        return replace(found, diagnostics=belief.diagnostics) if isinstance(belief, NamedBelief) else found

    def should_stop(self, state: SelectionState) -> str | None:
        """Why no further evaluation should be made, or ``None``."""
        config = self.config
        if len(state) >= config.budget:
            return f"the budget of {config.budget} evaluations is spent"
        if not state.left.any():
            return f"every prompt has met all {config.items} pairs: there is nothing left to ask"
        if (
            not any((config.stop_at, config.stop_loss, config.gain_per_call, config.stop_gain))
            or len(state) < self._plan.size
        ):
            return None
        belief = self._belief(state)
        draws = self._draws(state, belief, "stop")
        winner = self._winner(state, belief.mean)
        wide = widened(draws, belief.mean, state.items_met(winner))
        within = certainty(wide, winner, config.delta).probability_within_delta
        if config.stop_at is not None and within >= config.stop_at:
            return f"within {config.delta:g} of the best with probability {within:.3f}"
        loss = certainty(draws, winner, config.delta).expected_loss
        if config.stop_loss is not None and loss < config.stop_loss:
            return f"the expected loss {loss:.4f} is below {config.stop_loss:g}"
        view = self._view(state, belief, draws)
        if config.gain_per_call is not None and value_of_next_call(view) < config.gain_per_call:
            return f"a further call is expected to gain less than its price of {config.gain_per_call:g}"
        if config.stop_gain:
            # As wide as the verdict: a belief that is too sure would give up too soon.
            wider = replace(view, covariance=view.covariance * allowance(state.items_met(winner)) ** 2)
            ends = np.isfinite(state.rotation.most)
            calls = int(state.left.sum()) if ends else view.remaining
            gain = value_of_more_calls(wider, calls, stream(config.seed, "gain", len(state)))
            if gain < config.stop_gain:
                what = f"the {calls} questions that were not asked" if ends else "the calls that are left"
                return f"{what} are expected to gain {gain:.4f}, less than {config.stop_gain:g}"
        return None

    # ------------------------------------------------------------------------------------------------------ internals
    def _on_these_items(
        self, state: SelectionState, belief: Any, winner: int, draws: FloatArray
    ) -> OnTheseItems | None:
        items = state.rotation.items
        if items is None or state.rotation.repeats == "new-item":
            return None
        rng = stream(self.config.seed, "items", len(state))
        rows = finalists(winner, belief.mean, draws.std(axis=0))
        cells = belief.cells(state, rows, number_of_draws(rows, items), allowance(state.items_met(winner)), rng)
        return on_these_items(state, rows, cells, items, bool(np.isin(state.scores, (0.0, 1.0)).all()), rng)

    def _reach(self, state: SelectionState, belief: Any, winner: int, draws: FloatArray) -> Reach | None:
        rotation = state.rotation
        if rotation.items is None or rotation.repeats == "new-item":
            return None
        better = np.mean(draws > draws[:, [winner]], axis=0)
        better[winner] = -1.0
        rival = int(np.argmax(better))
        # Of two answers to one question under two prompts, what is not the item's and comes again with the question.
        own = 1.0 if rotation.repeats == "never" else belief.noise.shared
        spread = float(np.sqrt(own * (belief.noise.variances[winner] + belief.noise.variances[rival])))
        gap = abs(float(belief.mean[winner] - belief.mean[rival])) if rival != winner else None
        return reach(rotation.items, spread, gap)

    def _make_strategy(self) -> AutoStrategy | AveragedStrategy | NamedStrategy:
        config, name = self.config, self.config.surrogate
        if name == "auto" and config.named:
            name = "bnn"
        elif name == "auto" and self.Z.shape[0] > DENSE:
            name = "gp-rank"
        if name not in ("auto", "average", "none"):
            return NamedStrategy(self.Z, config, name, self._plan.size)
        averaged = AveragedStrategy(candidate_shapes(self.Z, name != "none"), config.pairs == "common")
        return AutoStrategy(averaged, self.Z, config.seed) if name == "auto" else averaged

    def _belief(self, state: SelectionState) -> Any:
        if state.belief is not None:
            return state.belief
        if len(state) == 0 and isinstance(self._strategy, NamedStrategy):
            raise ConfigError("there is nothing to recommend before the first observation")
        return self._strategy.updated(None, state)

    def _draws(self, state: SelectionState, belief: Any, purpose: str) -> FloatArray:
        # Joint draws of N candidates cost N² each: fewer of them where N is large, never less than 1000.
        count = int(np.clip(MOST_DRAWN / state.n_candidates, 1000, DRAWS))
        draws: FloatArray = belief.draws(count, stream(self.config.seed, purpose, len(state)))
        return draws

    def _view(self, state: SelectionState, belief: Any, draws: FloatArray, rows: IntArray | None = None) -> View:
        """What a decision among the candidates ``rows`` looks at; without them, among all that have a prospect."""
        remaining = self.config.budget - len(state)
        if isinstance(belief, Belief):
            view: View = self._strategy.view(state, belief, remaining)
            return view if rows is None else view.among(rows)
        mean, variances = belief.mean, belief.noise.variances
        if rows is None:
            rows = np.argsort(-(mean + 2.0 * draws.std(axis=0)), kind="stable")[:LOOKED_AT]
        covariance = np.atleast_2d(np.cov(draws[:, rows].T))
        return View(mean[rows], covariance, variances[rows], remaining, state.left[rows])

    def _winner(self, state: SelectionState, estimates: FloatArray, allowed: BoolArray | None = None) -> int:
        observed = self.config.mode == "paper" or self.config.policy == "random"
        # The paper's rule: highest observed mean; among equal means the first, which it leaves open.
        rated = np.where(state.counts > 0, state.means, -np.inf) if observed else estimates
        if allowed is not None:
            rated = np.where(allowed, rated, -np.inf)
        return (
            int(np.argmax(rated)) if observed else preferred(rated, state.counts, self.config.costs, self.config.delta)
        )

    def _next(self, state: SelectionState, n: int, waiting: IntArray) -> IntArray:
        asked = len(state) + int(waiting.sum())
        rng = stream(self.config.seed, "ask", len(state), int(waiting.sum()))
        if self.config.policy == "random":
            return rng.choice(np.flatnonzero(state.left > waiting), size=n)
        planned = self._plan[asked : asked + n]
        if planned.size:
            return planned
        if len(state) == 0 and isinstance(self._strategy, NamedStrategy):
            # The warm-up is under way and nothing was answered yet: look elsewhere meanwhile.
            return np.resize(spread_out(self.Z, asked + n), asked + n)[asked:]
        belief = self._belief(state)
        if asked < self._own_calls:
            return self._next_of_own(state, belief, min(n, self._own_calls - asked), waiting, rng)
        chosen: IntArray = self._strategy.choose(state, belief, waiting, self.config.budget - asked, n, rng)
        return chosen

    @property
    def _own_calls(self) -> int:
        """Evaluations made before any candidate but the user's own gets another."""
        own = len(self.config.examples)
        if self.config.mode == "paper" or not 1 < own < self.Z.shape[0]:
            return 0
        return min(int(OWN_SHARE * self.config.budget), OWN_CALLS * own)

    def _next_of_own(
        self, state: SelectionState, belief: Any, n: int, waiting: IntArray, rng: np.random.Generator
    ) -> IntArray:
        own = np.array(self.config.examples)
        view = self._view(state, belief, self._draws(state, belief, "own"), own)
        among = replace(view, remaining=self._own_calls - len(state))
        under_way = np.repeat(np.arange(own.size), waiting[own])
        return np.asarray(own[next_candidates(among, n, rng, under_way)], dtype=np.int64)
