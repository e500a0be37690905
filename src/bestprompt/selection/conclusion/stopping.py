"""Why a run should end before its budget does.

Notation (symbol → name):
    P_δ    P(v_winner ≥ max_n v_n − δ)                          → ``SelectorConfig.stop_at`` is its bar
    EOC    E[max_n v_n − v_winner]                              → ``SelectorConfig.stop_loss``
    g_1    gain per call of the best investment in one candidate → ``SelectorConfig.gain_per_call``
    g      gain of all that could still be asked                → ``SelectorConfig.stop_gain``
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bestprompt.rng import stream
from bestprompt.selection.conclusion.verdict import allowance, certainty, widened
from bestprompt.selection.core.config import SelectorConfig
from bestprompt.selection.core.state import Belief, SelectionState
from bestprompt.selection.strategies.rank import gains_clearly, value_of_more_calls, value_of_next_call
from bestprompt.types import FloatArray


def reason_to_stop(
    config: SelectorConfig, state: SelectionState, belief: Belief, draws: Callable[[], FloatArray], winner: int
) -> str | None:
    """The rule of ``config`` that says that enough is known of ``winner``, in words; ``None`` to go on.

    Args:
        config: Which rules there are.
        state: All observations.
        belief: After them.
        draws: Makes (K, N) of the belief, which takes time: called for the rules that look at them.
        winner: The candidate that would be recommended.
    """
    if config.stop_at is not None or config.stop_loss is not None:
        drawn = draws()
        wide = widened(drawn, belief.mean, state.items_met(winner))
        within = certainty(wide, winner, config.delta).probability_within_delta
        if config.stop_at is not None and within >= config.stop_at:
            return f"within {config.delta:g} of the best with probability {within:.3f}"
        loss = certainty(drawn, winner, config.delta).expected_loss
        if config.stop_loss is not None and loss < config.stop_loss:
            return f"the expected loss {loss:.4f} is below {config.stop_loss:g}"
    view = belief.view(state, config.budget - len(state), draws)
    if config.gain_per_call is not None and value_of_next_call(view) < config.gain_per_call:
        return f"a further call is expected to gain less than its price of {config.gain_per_call:g}"
    if config.stop_gain:
        # As wide as the verdict: a belief that is too sure would give up too soon.
        wider = replace(view, covariance=view.covariance * allowance(state.items_met(winner)) ** 2)
        ends = np.isfinite(state.rotation.most)
        calls = int(state.left.sum()) if ends else view.remaining
        if gains_clearly(wider, calls, config.stop_gain):
            return None
        gain = value_of_more_calls(wider, calls, stream(config.seed, "gain", len(state)))
        if gain < config.stop_gain:
            what = f"the {calls} questions that were not asked" if ends else "the calls that are left"
            return f"{what} are expected to gain {gain:.4f}, less than {config.stop_gain:g}"
    return None
