"""What a run concludes: the recommended candidate, how sure that is, and what further calls would be worth.

Everything is read off joint posterior draws of all candidates' mean scores. The posterior shrinks a lucky winner
toward what is known about all candidates, which is the correction for having selected it: an interval around the raw
mean of the best of many would be too high and too narrow.

Notation (symbol → name, shape):
    v^(k)      joint posterior draws of the mean scores            → ``draws``  (K, N)
    PCS        P(v_winner = max_n v_n)                             → ``SelectionResult.probability_best``
    P_δ        P(v_winner ≥ max_n v_n − δ)                         → ``SelectionResult.probability_within_delta``
    EOC        E[max_n v_n − v_winner], the expected loss          → ``SelectionResult.expected_loss``
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bestprompt.selection.conclusion.reach import Reach
from bestprompt.selection.conclusion.these_items import OnTheseItems
from bestprompt.selection.core.config import SelectorConfig
from bestprompt.selection.core.state import SelectionState
from bestprompt.selection.core.views import Noise
from bestprompt.types import FloatArray, IntArray

if TYPE_CHECKING:
    from bestprompt.selection.conclusion.against_incumbent import AgainstIncumbent

CONVINCING = 0.9
TIED = 0.2
DRAWS = 4000
ALLOWANCE = 5.0


@dataclass(frozen=True, slots=True)
class Shortlisted:
    """One candidate of the shortlist."""

    candidate: int
    score: float
    probability_best: float
    probability_within_delta: float
    cost: float | None


@dataclass(frozen=True, slots=True)
class SelectionResult:
    """The answer of a run.

    Attributes:
        candidate: The recommended candidate.
        score: Its estimated mean score.
        interval: 95 % interval for that score, corrected for the selection.
        probability_best: Probability that it is the best candidate.
        probability_within_delta: Probability that it is at most ``delta`` worse than the best.
        expected_loss: Expected shortfall to the best candidate.
        shortlist: Candidates that cannot be told apart from it: itself, then the others, cheapest first.
        counts: (N,) evaluations per candidate.
        means: (N,) observed mean scores (0 where nothing was observed).
        estimates: (N,) posterior mean scores.
        deviations: (N,) their posterior standard deviations.
        delta: The difference in score that matters.
        incumbent: The candidate in use today, if any.
        keep_incumbent: Whether to keep the current prompt: it won, or the case against it is not convincing.
        probability_beats_incumbent: P(recommended better than incumbent); ``None`` without incumbent.
        variance_split: Shares of a single score's variance: ``prompt``, ``item`` (common pairs only) and ``rest``, the
            randomness of model and judge together, which single evaluations cannot tell apart.
        value_of_more: Score expected to be gained by spending as many calls again, as far as there is anything to ask.
        on_these_items: The same candidate on the items at hand; ``None`` where their number is not known.
        reach: What so many items can show, and how many would be needed; ``None`` likewise.
        stopped_because: Why the run ended, if it did.
        diagnostics: Of the surrogate's last fit, where one surrogate was named.
        remark: What the number of candidates decided and the settings did not ask for, in words.
        checked: Whether the best other candidate is worse than the incumbent, where that was asked.
    """

    candidate: int
    score: float
    interval: tuple[float, float]
    probability_best: float
    probability_within_delta: float
    expected_loss: float
    shortlist: tuple[Shortlisted, ...]
    counts: IntArray
    means: FloatArray
    estimates: FloatArray
    deviations: FloatArray
    delta: float
    incumbent: int | None
    keep_incumbent: bool
    probability_beats_incumbent: float | None
    variance_split: Mapping[str, float]
    value_of_more: float
    stopped_because: str | None
    on_these_items: OnTheseItems | None = None
    reach: Reach | None = None
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    remark: str | None = None
    checked: AgainstIncumbent | None = None

    @property
    def verdict(self) -> str:
        """The answer in a few sentences."""
        return self.verdict_on(f"Candidate {self.candidate}")

    def verdict_on(self, subject: str) -> str:
        """The same about ``subject``, as the recommended candidate is to be called."""
        low, high = self.interval
        text = (
            f"{subject} scores {self.score:.3f} (95 % interval {low:.3f} to {high:.3f}); it is the best "
            f"with probability {self.probability_best:.2f} and within {self.delta:g} of the best with probability "
            f"{self.probability_within_delta:.2f}."
        )
        others, beats = len(self.shortlist) - 1, self.probability_beats_incumbent
        if others:
            text += f" {others} other candidate{'s' if others > 1 else ''} cannot be told apart from it."
        if self.on_these_items is not None:
            text += f" {_on_these(self.on_these_items)}"
        if beats is None:
            return text
        if self.candidate == self.incumbent:
            return text + " It is the prompt you use today: keep your current prompt."
        beaten = f"It beats the prompt you use today with probability {beats:.2f}"
        return f"{text} {beaten} only: keep your current prompt." if self.keep_incumbent else f"{text} {beaten}."


@dataclass(frozen=True, slots=True)
class Certainty:
    """What joint draws say about one candidate being the best."""

    probability_best: float
    probability_within_delta: float
    expected_loss: float


def certainty(draws: FloatArray, candidate: int, delta: float) -> Certainty:
    """PCS, P_δ and EOC of ``candidate`` from ``draws`` (K, N)."""
    loss = draws.max(axis=1) - draws[:, candidate]
    return Certainty(float(np.mean(loss <= 1e-9)), float(np.mean(loss <= delta + 1e-9)), float(loss.mean()))


def widened(draws: FloatArray, estimates: FloatArray, items: int) -> FloatArray:
    """Draws (K, N) spread by ``allowance`` around the ``estimates``, for a winner that has met so many ``items``."""
    return np.asarray(estimates + allowance(items) * (draws - estimates))


def allowance(items: int) -> float:
    """How much wider than the belief the verdict is: sqrt(1 + 5/(1 + r)) where the winner has met r different items.

    The belief takes noise variances as known and scores as normal; with few, binary, adaptively collected answers
    both make it too sure. The allowance was set by simulation (``benchmarks/few_pairs.py``) and vanishes as r grows.
    """
    return float(np.sqrt(1.0 + ALLOWANCE / (1.0 + items)))


def preferred(estimates: FloatArray, counts: IntArray, costs: tuple[float, ...] | None, delta: float) -> int:
    """The highest estimate; where costs are known, the cheapest of the evaluated ones at most ``delta`` below it."""
    best = int(np.argmax(estimates))
    if costs is None:
        return best
    tied = np.flatnonzero((estimates >= estimates[best] - delta) & (counts > 0))
    return min({best, *tied.tolist()}, key=lambda c: (costs[c], -estimates[c], c))


def shortlist(
    draws: FloatArray, estimates: FloatArray, counts: IntArray, winner: int, config: SelectorConfig
) -> tuple[Shortlisted, ...]:
    """The winner and the evaluated ones that cannot be told from it: quite possibly better, whatever the estimates."""
    top = draws.max(axis=1, keepdims=True)
    best = np.mean(draws >= top - 1e-9, axis=0)
    within = np.mean(draws >= top - config.delta - 1e-9, axis=0)
    better = np.mean(draws >= draws[:, [winner]], axis=0)
    tied = np.flatnonzero((counts > 0) & (better >= TIED))
    costs = config.costs
    others = sorted((int(c) for c in tied if c != winner), key=lambda c: (costs[c] if costs else 0.0, -estimates[c]))
    return tuple(
        Shortlisted(c, float(estimates[c]), float(best[c]), float(within[c]), costs[c] if costs else None)
        for c in [winner, *others]
    )


def variance_split(estimates: FloatArray, deviations: FloatArray, noise: Noise) -> dict[str, float]:
    """Shares of one score's variance due to the prompt, the item and the rest (model and judge)."""
    parts = {
        "prompt": float(np.var(estimates) + np.mean(deviations**2)),
        "item": noise.item,
        "rest": float(noise.variances.mean()),
    }
    total = sum(parts.values())
    return {name: part / total for name, part in parts.items()}


def conclude(
    config: SelectorConfig,
    state: SelectionState,
    winner: int,
    estimates: FloatArray,
    draws: FloatArray,
    noise: Noise,
    value_of_more: float,
    stopped: str | None,
    on_these: OnTheseItems | None = None,
    reach: Reach | None = None,
) -> SelectionResult:
    """The recommendation of ``winner`` that follows from posterior ``estimates`` (N,) and ``draws`` (K, N).

    Probabilities and interval are read off the widened draws, expected values off the belief as it is.
    """
    deviations = np.asarray(draws.std(axis=0), dtype=np.float64)
    expected_loss = certainty(draws, winner, config.delta).expected_loss
    draws = widened(draws, estimates, state.items_met(winner))
    sure = certainty(draws, winner, config.delta)
    low, score, high = _in_range([*np.quantile(draws[:, winner], [0.025, 0.975]), float(estimates[winner])], state)
    tied = shortlist(draws, estimates, state.counts, winner, config)
    incumbent, beats = config.incumbent, None
    if incumbent is not None:
        beats = 0.0 if incumbent == winner else float(np.mean(draws[:, winner] > draws[:, incumbent]))
    return SelectionResult(
        candidate=winner,
        score=score,
        interval=(low, high),
        probability_best=sure.probability_best,
        probability_within_delta=sure.probability_within_delta,
        expected_loss=expected_loss,
        shortlist=tied,
        counts=state.counts.copy(),
        means=state.means,
        estimates=estimates.copy(),
        deviations=deviations,
        delta=config.delta,
        incumbent=incumbent,
        keep_incumbent=beats is not None and beats < CONVINCING,
        probability_beats_incumbent=beats,
        variance_split=variance_split(estimates, deviations, noise),
        value_of_more=value_of_more,
        stopped_because=stopped,
        on_these_items=on_these,
        reach=reach,
    )


def _in_range(values: list[float], state: SelectionState) -> list[float]:
    """``values`` in ascending order, kept inside [0, 1] where all scores are."""
    inside = len(state) > 0 and float(state.scores.min()) >= 0.0 and float(state.scores.max()) <= 1.0
    return sorted(min(max(float(v), 0.0), 1.0) if inside else float(v) for v in values)


def _on_these(found: OnTheseItems) -> str:
    """The statement about the items at hand, which is certain once all is asked."""
    what = f"On the {found.items} pairs at hand" if found.items > 1 else "On the one pair at hand"
    if found.interval[0] >= found.interval[1] and found.probability_best in (0.0, 1.0):
        rank = "none scores more" if found.probability_best else "another scores more"
        return f"{what} it scores {found.score:.3f}, and {rank}."
    return f"{what} it is the best with probability {found.probability_best:.2f}."
