"""What the report shows of the prompts, as plain values: pure functions of the ledger and the recommendation.

Each figure is one function here or beside (``course``, ``answers``, ``wording``, ``assurance``, ``refining``) and one
drawing function in ``figures.py``, so tests check numbers, not pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bestprompt.ledger import Entry
from bestprompt.report.course import Estimates
from bestprompt.run.result import Recommendation
from bestprompt.types import SoftPromptSet


@dataclass(frozen=True, slots=True)
class LeaderboardRow:
    """One candidate on the leaderboard.

    Attributes:
        rank: From 1; the recommended one is first.
        candidate: Its number.
        prompt: The text.
        source: Where it came from.
        estimate: Estimated mean score.
        low: Of its 95 % interval.
        high: Of the same.
        observed: Mean observed score; ``None`` where it was not evaluated.
        evaluations: How often it was.
        tied: Whether it cannot be told from the recommended one, or is it.
        model: Which model answers, where a run compares several.
        cost: Dollars of an answer on average; ``None`` where it is not known.
        latency: Seconds that an answer takes, the median; ``None`` likewise.
    """

    rank: int
    candidate: int
    prompt: str
    source: str
    estimate: float
    low: float
    high: float
    observed: float | None
    evaluations: int
    tied: bool
    model: str | None = None
    cost: float | None = None
    latency: float | None = None


@dataclass(frozen=True, slots=True)
class SourceRow:
    """What the prompts of one source gave: how many there are, calls to them, the best of them."""

    source: str
    prompts: int
    calls: int
    best: LeaderboardRow
    tied: int


def leaderboard(recommendation: Recommendation, entries: Sequence[Entry] = ()) -> list[LeaderboardRow]:
    """Every candidate, the recommended one first, then by estimated score; ``entries`` tell cost and latency."""
    choice, candidates = recommendation.choice, recommendation.candidates
    order = sorted(range(len(candidates.prompts)), key=lambda n: (n != choice.candidate, -choice.estimates[n], n))
    tied = {contender.candidate for contender in choice.shortlist}
    prices = answer_prices(entries)
    rows = []
    for rank, n in enumerate(order, start=1):
        half = 1.96 * float(choice.deviations[n])
        low, high = (
            choice.interval if n == choice.candidate else (choice.estimates[n] - half, choice.estimates[n] + half)
        )
        cost, latency = prices.get(n, (None, None))
        rows.append(
            LeaderboardRow(
                rank=rank,
                candidate=n,
                prompt=candidates.prompts[n],
                source=candidates.sources[n],
                estimate=recommendation.score if n == choice.candidate else float(choice.estimates[n]),
                low=max(0.0, float(low)),  # a score lies in [0, 1], a normal interval need not
                high=min(1.0, float(high)),
                observed=float(choice.means[n]) if choice.counts[n] else None,
                evaluations=int(choice.counts[n]),
                tied=n in tied,
                cost=cost,
                latency=latency,
            )
        )
    return rows


def provisional(candidates: SoftPromptSet, known: Estimates, entries: Sequence[Entry] = ()) -> list[LeaderboardRow]:
    """The leaderboard while a run goes on: by what each prompt's own answers say, those without any last."""
    order = sorted(range(len(candidates.prompts)), key=lambda n: (known.counts[n] == 0, -known.mean[n], n))
    prices, best = answer_prices(entries), order[0]
    rows = []
    for rank, n in enumerate(order, start=1):
        mean, half = float(known.mean[n]), 1.96 * float(known.deviation[n])
        cost, latency = prices.get(n, (None, None))
        # Within two standard deviations of the leader: nobody can tell them apart yet.
        near = known.mean[best] - mean <= 2.0 * float(np.hypot(known.deviation[n], known.deviation[best]))
        rows.append(
            LeaderboardRow(
                rank=rank,
                candidate=n,
                prompt=candidates.prompts[n],
                source=candidates.sources[n],
                estimate=mean,
                low=max(0.0, mean - half),
                high=min(1.0, mean + half),
                observed=None,
                evaluations=int(known.counts[n]),
                tied=bool(known.counts[n]) and bool(near),
                cost=cost,
                latency=latency,
            )
        )
    return rows


def answer_prices(entries: Sequence[Entry]) -> dict[int, tuple[float, float]]:
    """Candidate → dollars of an answer on average, and the median of the seconds it took."""
    paid: dict[int, list[Entry]] = {}
    for entry in entries:
        if entry.final and entry.usage.calls:
            paid.setdefault(entry.candidate, []).append(entry)
    return {
        n: (float(np.mean([e.cost for e in made])), float(np.median([e.latency for e in made])))
        for n, made in paid.items()
    }


def sources(rows: Sequence[LeaderboardRow]) -> list[SourceRow]:
    """What each source gave, the one with the best prompt first."""
    found: dict[str, list[LeaderboardRow]] = {}
    for row in rows:  # best first
        found.setdefault(row.source, []).append(row)
    return [
        SourceRow(source, len(own), sum(r.evaluations for r in own), own[0], sum(r.tied for r in own))
        for source, own in found.items()
    ]
