"""Every candidate with its score, how sure that is, and what its answers took: one table for all views of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from bestprompt.ledger import Entry
from bestprompt.selection import SelectionResult
from bestprompt.types import SoftPromptSet


@dataclass(frozen=True, slots=True)
class AnswerCost:
    """What an answer took on average: dollars and tokens (means), and seconds (the median)."""

    dollars: float
    tokens: float
    seconds: float


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
        cost: Dollars of an answer on average; ``None`` where it was not evaluated.
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


def answer_costs(entries: Iterable[Entry]) -> dict[int, AnswerCost]:
    """Candidate → what its answers took; answers that were had for nothing do not count."""
    paid: dict[int, list[Entry]] = {}
    for entry in entries:
        if entry.final and entry.usage.calls:
            paid.setdefault(entry.candidate, []).append(entry)
    return {
        n: AnswerCost(fmean(e.cost for e in own), fmean(e.usage.tokens for e in own), median(e.latency for e in own))
        for n, own in paid.items()
    }


def ranked(choice: SelectionResult, candidates: SoftPromptSet, costs: Mapping[int, AnswerCost]) -> list[LeaderboardRow]:
    """Every candidate, the recommended one first, then by estimated score."""
    order = sorted(range(len(candidates.prompts)), key=lambda n: (n != choice.candidate, -choice.estimates[n], n))
    tied = {contender.candidate for contender in choice.shortlist}
    rows = []
    for rank, n in enumerate(order, start=1):
        half = 1.96 * float(choice.deviations[n])
        low, high = (
            choice.interval if n == choice.candidate else (choice.estimates[n] - half, choice.estimates[n] + half)
        )
        cost = costs.get(n)
        rows.append(
            LeaderboardRow(
                rank=rank,
                candidate=n,
                prompt=candidates.prompts[n],
                source=candidates.sources[n],
                estimate=choice.score if n == choice.candidate else float(choice.estimates[n]),
                low=max(0.0, float(low)),  # a score lies in [0, 1], a normal interval need not
                high=min(1.0, float(high)),
                observed=float(choice.means[n]) if choice.counts[n] else None,
                evaluations=int(choice.counts[n]),
                tied=n in tied,
                model=candidates.models[n] if candidates.models else None,
                cost=cost.dollars if cost else None,
                latency=cost.seconds if cost else None,
            )
        )
    return rows


def cheapest(rows: Sequence[LeaderboardRow]) -> LeaderboardRow | None:
    """Of those that cannot be told from the winner, the one whose answers cost least; ``None`` without prices or times.

    Where no answer has a price, the seconds it takes stand for it.
    """
    tied = [row for row in rows if row.tied and row.cost is not None]
    if not tied or not any(row.model for row in rows):
        return None
    priced = any(row.cost for row in tied)
    return min(tied, key=lambda row: ((row.cost if priced else row.latency) or 0.0, row.rank))


def cheaper_in_words(rows: Sequence[LeaderboardRow]) -> str | None:
    """That another candidate is as good, as far as is known, and costs less; ``None`` if the winner costs least."""
    best, least = next((row for row in rows if row.rank == 1), None), cheapest(rows)
    if best is None or least is None or least.rank == 1 or best.cost is None or least.cost is None:
        return None
    if best.cost:
        against = f"${1000 * least.cost:.3g} instead of ${1000 * best.cost:.3g} for 1000 calls"
    else:
        against = f"{least.latency or 0.0:.2f} instead of {best.latency or 0.0:.2f} seconds a call"
    return f"The cheapest that cannot be told from it is “{least.prompt}” on {least.model}: {against}."
