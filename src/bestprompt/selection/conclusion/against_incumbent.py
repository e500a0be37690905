"""Is a new candidate worse than the one in use? What is settled about that, and whether more answers would settle it.

Notation (symbol → name):
    d        v_new − v_incumbent                                         → ``AgainstIncumbent.difference``
    m, p     margin and probability asked for                            → ``IncumbentCheck``
    worse        P(d < −m) ≥ p;      not worse   P(d ≥ −m) ≥ p;      else undecided
    C, E     covariance of the two scores, variance of the mean of all answers that can still be had
    s²       aᵀ C (C + E)⁻¹ C a, a = (−1, 1): how far those answers may move E[d]
    V'       aᵀ C a − s²: what is left unknown of d after them

E[d] after them is N(E[d], s²), and they will show "worse" if it falls to −m − z_p √V' or below. Draws are spread by the
allowance of the verdict for the items that both have met, since a difference rests on those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
from scipy.stats import norm

from bestprompt.choices import IncumbentCheck
from bestprompt.selection.conclusion.verdict import allowance
from bestprompt.selection.core.state import Belief, SelectionState
from bestprompt.selection.core.views import View
from bestprompt.types import FloatArray, Proposal

Outcome = Literal["worse", "not worse", "undecided"]
UNLIKELY = 0.01  # chance to change the decision below which the questions that are left are not asked


@dataclass(frozen=True, slots=True)
class AgainstIncumbent:
    """A new candidate beside the incumbent.

    Attributes:
        outcome: What is settled.
        probability_worse: P(the new one scores less by more than ``margin``).
        difference: Expected score of the new one less that of the incumbent.
        interval: 95 % interval of that difference.
        shared: Items that both have met.
        probability: How sure it had to be.
        margin: The difference that is forgiven.
        passes: Whether the new one may take the place of the incumbent: it is not worse, or undecided where that is
            enough.
    """

    outcome: Outcome
    probability_worse: float
    difference: float
    interval: tuple[float, float]
    shared: int
    probability: float
    margin: float
    passes: bool

    @property
    def sentence(self) -> str:
        """The same in words."""
        low, high = self.interval
        by = f" by more than {self.margin:g}" if self.margin else ""
        seen = (
            f"difference {self.difference:+.3f}, 95 % interval {low:+.3f} to {high:+.3f}, on {self.shared} shared "
            f"pair{'' if self.shared == 1 else 's'}"
        )
        if self.outcome == "undecided":
            return (
                f"Undecided: the new prompt is worse than the one in use{by} with probability "
                f"{self.probability_worse:.2f}, and {self.probability:g} was asked for either way ({seen})."
            )
        sure = self.probability_worse if self.outcome == "worse" else 1.0 - self.probability_worse
        return f"The new prompt is {self.outcome} than the one in use{by} with probability {sure:.2f} ({seen})."


def against_incumbent(
    asked: IncumbentCheck, state: SelectionState, draws: FloatArray, estimates: FloatArray, incumbent: int
) -> AgainstIncumbent:
    """What ``draws`` (K, N) of the scores around ``estimates`` (N,) say of the best candidate but the incumbent."""
    new = challenger(estimates, incumbent)
    shared = shared_items(state, new, incumbent)
    expected = float(estimates[new] - estimates[incumbent])
    drawn = expected + allowance(shared) * (draws[:, new] - draws[:, incumbent] - expected)
    worse = float(np.mean(drawn < -asked.margin))
    settled: Outcome = "undecided"
    if shared:
        settled = "worse" if worse >= asked.probability else settled
        settled = "not worse" if 1.0 - worse >= asked.probability else settled
    low, high = np.quantile(drawn, [0.025, 0.975])
    passes = asked.if_undecided == "pass" if settled == "undecided" else settled == "not worse"
    interval = (float(low), float(high))
    return AgainstIncumbent(settled, worse, expected, interval, shared, asked.probability, asked.margin, passes)


def reason_to_end(
    asked: IncumbentCheck,
    state: SelectionState,
    belief: Belief,
    draws: Callable[[], FloatArray],
    incumbent: int,
    remaining: int,
) -> str | None:
    """Why none of the ``remaining`` evaluations is needed, in words; ``None`` to go on."""
    found = against_incumbent(asked, state, draws(), belief.mean, incumbent)
    if found.outcome != "undecided":
        return f"it is settled whether the new prompt is worse, with probability {asked.probability:g}"
    rows = np.array([incumbent, challenger(belief.mean, incumbent)])
    view = belief.view(state, remaining, draws).among(rows)
    chance = chance_to_decide(asked, view, found.shared)
    if chance < UNLIKELY:
        decisive = "worse" if asked.if_undecided == "pass" else "not worse"
        return f"what is left to ask would show the new prompt to be {decisive} with a chance of {chance:.3f} only"
    return None


def chance_to_decide(asked: IncumbentCheck, view: View, shared: int) -> float:
    """Chance that the answers that are left change the decision: to "worse", or to "not worse" if undecided fails.

    Args:
        asked: What must be settled.
        view: Of the incumbent and the new candidate, in this order.
        shared: Items that both have met.
    """
    calls = np.clip(view.left, 1e-12, max(view.remaining / 2.0, 1e-12))
    covariance = view.covariance * allowance(shared) ** 2
    moved = covariance @ np.linalg.solve(covariance + np.diag(view.noise / calls), covariance)
    contrast = np.array([-1.0, 1.0])
    step = float(np.sqrt(max(contrast @ moved @ contrast, 1e-15)))
    narrower = allowance(shared + int(calls.min())) / allowance(shared)
    unknown = narrower * float(np.sqrt(max(contrast @ (covariance - moved) @ contrast, 0.0)))
    expected, bar = float(view.mean[1] - view.mean[0]), float(norm.ppf(asked.probability)) * unknown
    if asked.if_undecided == "pass":
        return float(norm.cdf((-asked.margin - bar - expected) / step))
    return float(norm.sf((-asked.margin + bar - expected) / step))


def side_by_side(state: SelectionState, n: int, pending: Sequence[Proposal] = ()) -> list[Proposal]:
    """The next ``n`` questions of two candidates that are compared: the same items for both, one after the other."""
    asked = {(p.candidate, p.replication) for p in pending}
    asked |= set(zip(state.candidates.tolist(), state.replications.tolist(), strict=True))
    both = (Proposal(candidate, r) for r in state.rotation.order(0) for candidate in (0, 1))
    return list(islice((p for p in both if (p.candidate, p.replication) not in asked), n))


def challenger(estimates: FloatArray, incumbent: int) -> int:
    """The best candidate but the incumbent."""
    others = np.where(np.arange(estimates.size) == incumbent, -np.inf, estimates)
    return int(np.argmax(others))


def shared_items(state: SelectionState, one: int, other: int) -> int:
    """How many items both have met."""
    items, who = state.items, state.candidates
    return int(np.intersect1d(items[who == one], items[who == other]).size)
