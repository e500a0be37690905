"""The ask/tell core of the evaluation and selection stage.

``ask``, ``tell`` and ``recommend`` are functions of (Z, configuration, state) alone: randomness comes from streams
keyed by the number of observations, so a run replayed from its record asks exactly the same questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from bestprompt.choices import AVERAGED
from bestprompt.errors import ConfigError
from bestprompt.rng import stream
from bestprompt.selection.belief.kernels import candidate_shapes
from bestprompt.selection.conclusion.against_incumbent import against_incumbent, reason_to_end, side_by_side
from bestprompt.selection.conclusion.reach import Reach, reach
from bestprompt.selection.conclusion.stopping import reason_to_stop
from bestprompt.selection.conclusion.these_items import OnTheseItems, finalists, number_of_draws, on_these_items
from bestprompt.selection.conclusion.verdict import DRAWS, SelectionResult, allowance, conclude, preferred
from bestprompt.selection.core.config import SelectorConfig
from bestprompt.selection.core.state import Belief, SelectionState, Strategy, checked_round, empty_state, fold, in_turn
from bestprompt.selection.core.units import in_one_unit
from bestprompt.selection.core.views import View
from bestprompt.selection.core.warmup import spread_out, warmup_plan
from bestprompt.selection.strategies.averaged import AveragedStrategy
from bestprompt.selection.strategies.named import DENSE, NamedStrategy
from bestprompt.selection.strategies.rank import next_candidates, value_of_more_calls
from bestprompt.types import BoolArray, FloatArray, IntArray, Observation, Proposal

MOST_DRAWN = 10**6
# Share of the budget that settles first which of the user's own prompts is best, and the most calls to each of them on
# average. An invented prompt that wins must then beat a known one: no run should leave its user worse off.
OWN_SHARE, OWN_CALLS = 0.25, 20


class Selector:
    """Selects the best of N candidates within a budget of noisy evaluations.

    Args:
        Z: (N, D) coordinates of the candidates.
        config: Settings of the run.
        strategy: Forms beliefs and chooses; what ``config`` asks for if left out.

    Raises:
        ConfigError: A setting is out of range, or ``Z`` is not a finite matrix.
    """

    def __init__(self, Z: FloatArray, config: SelectorConfig, strategy: Strategy | None = None) -> None:
        Z = np.asarray(Z, dtype=np.float64)
        if Z.ndim != 2 or Z.shape[0] == 0:
            raise ConfigError(f"selection: Z must have one row per candidate, not shape {Z.shape}")
        if not np.isfinite(Z).all():
            raise ConfigError("selection: Z must be finite")
        config.check(Z.shape[0])
        self.Z, self.config = Z, config
        self._plan = warmup_plan(Z, config)
        self._strategy = strategy or make_strategy(Z, config, self._plan.size)

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
        if self.config.incumbent_check is not None and state.n_candidates == 2:
            return side_by_side(state, n, pending)
        chosen = self._next(state, n, waiting)
        if len(state) == 0 or self.config.policy == "random" or not state.rotation.telling:
            return in_turn(state, chosen, pending)
        return self._strategy.questions(state, self._belief(state), chosen, pending)

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
        return belief.view(state, self.config.budget - len(state), partial(self._draws, state, belief, "view"))

    def recommend(self, state: SelectionState, allowed: BoolArray | None = None) -> SelectionResult:
        """The candidate to use and how sure that is; of those ``allowed`` (N,) only, where given."""
        belief = self._belief(state)
        estimates = belief.mean
        draws = self._draws(state, belief, "verdict")
        view = belief.view(state, self.config.budget - len(state), lambda: draws)
        more = value_of_more_calls(view, max(len(state), 1), stream(self.config.seed, "more", len(state)))
        winner = self._winner(state, estimates, allowed)
        stopped, here = self.should_stop(state), self._on_these_items(state, belief, winner, draws)
        shown = self._reach(state, belief, winner, draws)
        found = conclude(self.config, state, winner, estimates, draws, belief.noise, more, stopped, here, shown)
        asked, incumbent = self.config.incumbent_check, self.config.incumbent
        if asked is not None and incumbent is not None:
            found = replace(found, checked=against_incumbent(asked, state, draws, estimates, incumbent))
        return replace(found, diagnostics=belief.diagnostics, remark=self.remark)

    @property
    def remark(self) -> str | None:
        """What the settings did not ask for by name but the number of candidates decides, in words."""
        n = self.Z.shape[0]
        if self.config.surrogate != "auto" or self.config.mode == "paper" or n <= DENSE:
            return None
        return (
            f"With {n} candidates, more than {DENSE}, the averaged kernels would take too long: a Gaussian process of "
            "finite rank (gp-rank) with M-UCB took their place."
        )

    def should_stop(self, state: SelectionState) -> str | None:
        """Why no further evaluation should be made, or ``None``."""
        config = self.config
        if len(state) >= config.budget:
            return f"the budget of {config.budget} evaluations is spent"
        if not state.left.any():
            return f"every prompt has met all {config.items} pairs: there is nothing left to ask"
        rules = (config.stop_at, config.stop_loss, config.gain_per_call, config.stop_gain, config.incumbent_check)
        if not any(rules) or len(state) < self._plan.size:
            return None
        belief = self._belief(state)
        draws = partial(self._draws, state, belief, "stop")
        if config.incumbent_check is not None and config.incumbent is not None:
            left = config.budget - len(state)
            return reason_to_end(config.incumbent_check, state, belief, draws, config.incumbent, left)
        return reason_to_stop(config, state, belief, draws, self._winner(state, belief.mean))

    # ------------------------------------------------------------------------------------------------------ internals
    def _on_these_items(
        self, state: SelectionState, belief: Belief, winner: int, draws: FloatArray
    ) -> OnTheseItems | None:
        items = state.rotation.items
        if items is None or state.rotation.repeats == "new-item":
            return None
        rng = stream(self.config.seed, "items", len(state))
        rows = finalists(winner, belief.mean, draws.std(axis=0))
        cells = belief.cells(state, rows, number_of_draws(rows, items), allowance(state.items_met(winner)), rng)
        return on_these_items(state, rows, cells, items, bool(np.isin(state.scores, (0.0, 1.0)).all()), rng)

    def _reach(self, state: SelectionState, belief: Belief, winner: int, draws: FloatArray) -> Reach | None:
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

    def _belief(self, state: SelectionState) -> Belief:
        return state.belief if state.belief is not None else self._strategy.updated(None, state)

    def _draws(self, state: SelectionState, belief: Belief, purpose: str) -> FloatArray:
        # Joint draws of N candidates cost N² each: fewer of them where N is large, never less than 1000.
        count = int(np.clip(MOST_DRAWN / state.n_candidates, 1000, DRAWS))
        return belief.draws(count, stream(self.config.seed, purpose, len(state)))

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
        if len(state) == 0 and not self._strategy.starts_blind:
            # The warm-up is under way and nothing was answered yet: look elsewhere meanwhile.
            return np.resize(spread_out(self.Z, asked + n), asked + n)[asked:]
        belief = self._belief(state)
        if asked < self._own_calls:
            return self._next_of_own(state, belief, min(n, self._own_calls - asked), waiting, rng)
        return self._strategy.choose(state, belief, waiting, self.config.budget - asked, n, rng)

    @property
    def _own_calls(self) -> int:
        """Evaluations made before any candidate but the user's own gets another."""
        own = len(self.config.examples)
        if self.config.mode == "paper" or not 1 < own < self.Z.shape[0]:
            return 0
        # Where items are few and none is asked twice, the user's prompts have met all of them before that.
        each = min(OWN_CALLS, self.config.rotation.most)
        return int(min(OWN_SHARE * self.config.budget, each * own))

    def _next_of_own(
        self, state: SelectionState, belief: Belief, n: int, waiting: IntArray, rng: np.random.Generator
    ) -> IntArray:
        own = np.array(self.config.examples)
        among = belief.view(state, self._own_calls - len(state), partial(self._draws, state, belief, "own"), own)
        under_way = np.repeat(np.arange(own.size), waiting[own])
        return np.asarray(own[next_candidates(among, n, rng, under_way)], dtype=np.int64)


def make_strategy(Z: FloatArray, config: SelectorConfig, warmed: int) -> Strategy:
    """The strategy that ``config`` names or hands in, over candidates at ``Z`` (N, D), ``warmed`` by so many calls."""
    surrogate = config.surrogate
    if surrogate == "auto" and config.mode == "paper":
        surrogate = "bnn"
    elif surrogate == "auto" and Z.shape[0] > DENSE:
        surrogate = "gp-rank"
    if surrogate in AVERAGED:
        coordinates = Z if config.units == "alike" else in_one_unit(Z)
        return AveragedStrategy(candidate_shapes(coordinates, surrogate != "none"), config.pairs == "common")
    return NamedStrategy.of(Z, config, surrogate, warmed)
