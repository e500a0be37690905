"""What the report shows, as plain values: pure functions of the ledger and the recommendation.

Each figure is one function here and one drawing function in ``figures.py``, so tests check numbers, not pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bestprompt.ledger import Entry
from bestprompt.run.leaderboard import LeaderboardRow as LeaderboardRow
from bestprompt.run.result import Recommendation, Refinement
from bestprompt.types import BoolArray, FloatArray, IntArray, SoftPromptSet


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How the run went, call by call: (t,) each."""

    call: IntArray
    running_best: FloatArray
    candidate: IntArray
    score: FloatArray


@dataclass(frozen=True, slots=True)
class CandidateMap:
    """Candidates in the first two coordinates of the soft-prompt space: (N,) each; ``edges`` link child to parent."""

    x: FloatArray
    y: FloatArray
    estimate: FloatArray
    evaluations: IntArray
    edges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Predictions:
    """What was predicted of each refined prompt before its first evaluation, and what was seen: (K,) each."""

    prompts: tuple[str, ...]
    predicted: FloatArray
    std: FloatArray
    observed: FloatArray
    evaluations: IntArray


@dataclass(frozen=True, slots=True)
class Turns:
    """What a call was expected to gain at each look outside the set, and whose turn it was: (L,) each."""

    call: IntArray
    selecting: FloatArray
    refining: FloatArray
    refined: BoolArray


@dataclass(frozen=True, slots=True)
class SampleAnswer:
    """One answer that the winner got."""

    input: str
    output: str
    extracted: str | None
    score: float


def leaderboard(recommendation: Recommendation) -> list[LeaderboardRow]:
    """Every candidate, the recommended one first, then by estimated score."""
    return list(recommendation.leaderboard)


def progress(entries: Sequence[Entry], n_candidates: int) -> RunProgress:
    """The observed mean of the candidate that leads after each evaluation.

    A candidate leads by its mean shrunken toward the mean of all scores with the weight of four evaluations, so that
    one lucky answer does not lead.
    """
    final = [e for e in entries if e.final and e.score is not None]
    sums, counts = np.zeros(n_candidates), np.zeros(n_candidates)
    best = np.zeros(len(final))
    for t, entry in enumerate(final):
        sums[entry.candidate] += entry.score or 0.0
        counts[entry.candidate] += 1
        overall = sums.sum() / (t + 1)
        shrunken = np.where(counts > 0, (sums + 4 * overall) / (counts + 4), -np.inf)
        leader = int(np.argmax(shrunken))
        best[t] = shrunken[leader]
    return RunProgress(
        call=np.arange(1, len(final) + 1),
        running_best=best,
        candidate=np.array([e.candidate for e in final], dtype=np.int64),
        score=np.array([e.score for e in final], dtype=np.float64),
    )


def candidate_map(candidates: SoftPromptSet, recommendation: Recommendation) -> CandidateMap:
    """Where the candidates lie; a set without a second coordinate is drawn on a line."""
    Z = candidates.Z
    flat = np.zeros(len(Z))
    return CandidateMap(
        x=Z[:, 0] if Z.shape[1] > 0 else flat,
        y=Z[:, 1] if Z.shape[1] > 1 else flat,
        estimate=recommendation.choice.estimates,
        evaluations=recommendation.choice.counts,
        edges=tuple((n, int(p)) for n, p in enumerate(candidates.parents) if p >= 0),
    )


def predictions(refinement: Refinement) -> Predictions:
    """Predicted against observed mean scores of the refined prompts that were evaluated."""
    seen = [r for r in refinement.tried if r.evaluations]
    return Predictions(
        prompts=tuple(r.prompt for r in seen),
        predicted=np.array([r.predicted for r in seen]),
        std=np.array([r.std for r in seen]),
        observed=np.array([r.observed for r in seen]),
        evaluations=np.array([r.evaluations for r in seen], dtype=np.int64),
    )


def turns(refinement: Refinement) -> Turns:
    """The rule that shares the budget, look by look."""
    looks = refinement.looks
    return Turns(
        call=np.array([look.at for look in looks], dtype=np.int64),
        selecting=np.array([look.selection_value for look in looks]),
        refining=np.array([look.refinement_value for look in looks]),
        refined=np.array([look.turn == "refine" for look in looks], dtype=np.bool_),
    )


def samples(entries: Sequence[Entry], candidate: int, most: int = 5) -> tuple[list[SampleAnswer], list[SampleAnswer]]:
    """Answers of ``candidate``: the best and the worst, at most ``most`` each, none in both lists."""
    answered = [e for e in entries if e.candidate == candidate and e.status == "ok" and e.score is not None]
    ordered = sorted(answered, key=lambda e: (-(e.score or 0.0), e.replication))
    made = [SampleAnswer(_input(e), e.output or "", e.extracted, e.score or 0.0) for e in ordered]
    good = [s for s in made if s.score > 0.5][:most]
    bad = [s for s in reversed(made) if s.score <= 0.5][:most]
    return good, bad


def _input(entry: Entry) -> str:
    messages = entry.request["messages"]
    return str(messages[-1]["content"])
