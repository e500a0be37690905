"""How a run went, call by call: what led and how surely, what it had cost, and where the calls went.

Notation (symbol → name, shape), after t answers:
    m      mean of all scores so far
    s²     variance of a score around its prompt's mean, after a right and a wrong answer are added to each prompt:
           a prompt whose four answers were right may well be wrong once in a while
    n      answers to each prompt so far                       (N,)
    μ      (Σ scores + 4 m) / (n + 4)   → ``Course.leader``'s estimate
    σ      s / √(n + 4)                 → ``Course.deviation``

The weight of four answers toward the mean of all keeps one lucky answer from leading. This is a formula of each
prompt's own answers, quick enough for a page that is drawn anew every second; the run's own belief shares evidence
between prompts and pairs, and its estimate is what the last point of the figure shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bestprompt.ledger import Entry
from bestprompt.types import FloatArray, IntArray

WEIGHT = 4.0


@dataclass(frozen=True, slots=True)
class Estimates:
    """Each prompt by its own answers: (N,) each; see the notation above."""

    mean: FloatArray
    deviation: FloatArray
    counts: IntArray


@dataclass(frozen=True, slots=True)
class Course:
    """The run after each answer: (t,) each.

    Attributes:
        leader: The candidate that leads.
        estimate: Its estimated mean score.
        deviation: The standard deviation of that estimate.
        candidate: The candidate that answered.
        score: What its answer scored.
        calls: Calls made so far, failed attempts included.
        tokens: Tokens used so far.
        dollars: Their price.
    """

    leader: IntArray
    estimate: FloatArray
    deviation: FloatArray
    candidate: IntArray
    score: FloatArray
    calls: IntArray
    tokens: IntArray
    dollars: FloatArray

    def __len__(self) -> int:
        return int(self.leader.size)

    def thinned(self, most: int = 160) -> IntArray:
        """At most so many of the points, the first and the last among them."""
        return np.unique(np.linspace(0, max(len(self) - 1, 0), min(most, len(self))).astype(np.int64))


@dataclass(frozen=True, slots=True)
class Strip:
    """The calls that went to one prompt, along the run.

    Attributes:
        candidate: Its number.
        calls: Answers it gave.
        counts: (B,) how many of them in each stretch of the run.
        scores: (B,) their mean score; 0 where there were none.
    """

    candidate: int
    calls: int
    counts: IntArray
    scores: FloatArray


def pooled_variance(sums: FloatArray, squares: FloatArray, counts: IntArray) -> float:
    """s², from (N,) sums of scores, of their squares, and numbers of answers."""
    asked = counts > 0
    n, total = counts[asked] + 2.0, sums[asked] + 1.0
    return float((squares[asked] + 1.0 - total**2 / n).sum() / max(n.sum(), 1.0))


def estimates(sums: FloatArray, squares: FloatArray, counts: IntArray) -> Estimates:
    """What is known of N prompts from (N,) sums of scores, of their squares, and numbers of answers."""
    m = float(sums.sum()) / max(int(counts.sum()), 1)
    variance = pooled_variance(sums, squares, counts)
    return Estimates((sums + WEIGHT * m) / (counts + WEIGHT), np.sqrt(variance / (counts + WEIGHT)), counts)


def course(entries: Sequence[Entry], n_candidates: int) -> Course:
    """The run after each answer that settled an evaluation."""
    sums, squares, counts = np.zeros(n_candidates), np.zeros(n_candidates), np.zeros(n_candidates, dtype=np.int64)
    rows = []
    calls = tokens = 0
    dollars = 0.0
    for entry in entries:
        calls, tokens, dollars = calls + entry.usage.calls, tokens + entry.usage.tokens, dollars + entry.cost
        if not entry.final or entry.score is None:
            continue
        n, score = entry.candidate, entry.score
        sums[n], squares[n], counts[n] = sums[n] + score, squares[n] + score**2, counts[n] + 1
        known = estimates(sums, squares, counts)
        leader = int(np.argmax(np.where(counts > 0, known.mean, -np.inf)))
        rows.append((leader, known.mean[leader], known.deviation[leader], n, score, calls, tokens, dollars))
    leaders, estimate, deviation, who, scores, made, used, paid = zip(*rows, strict=True) if rows else [()] * 8
    return Course(
        leader=_whole(leaders),
        estimate=_real(estimate),
        deviation=_real(deviation),
        candidate=_whole(who),
        score=_real(scores),
        calls=_whole(made),
        tokens=_whole(used),
        dollars=_real(paid),
    )


def _whole(values: Sequence[float]) -> IntArray:
    return np.array(values, dtype=np.int64)


def _real(values: Sequence[float]) -> FloatArray:
    return np.array(values, dtype=np.float64)


def own_answers(entries: Sequence[Entry], n_candidates: int) -> Estimates:
    """What each prompt's own answers say of it."""
    final = [e for e in entries if e.final and e.score is not None]
    who, scores = _whole([e.candidate for e in final]), _real([e.score or 0.0 for e in final])
    sums, squares, counts = np.zeros(n_candidates), np.zeros(n_candidates), np.zeros(n_candidates, dtype=np.int64)
    for total, added in ((sums, scores), (squares, scores**2), (counts, 1)):
        np.add.at(total, who, added)
    return estimates(sums, squares, counts)


def strips(values: Course, order: Sequence[int], bins: int = 80) -> list[Strip]:
    """The calls to each of the candidates in ``order``, in ``bins`` stretches of the run; fewer where it is short."""
    bins = max(1, min(bins, len(values)))
    place = np.arange(len(values)) * bins // max(len(values), 1)
    found = []
    for n in order:
        mine = values.candidate == n
        counts = np.bincount(place[mine], minlength=bins)
        sums = np.bincount(place[mine], values.score[mine], bins)
        found.append(Strip(int(n), int(mine.sum()), counts.astype(np.int64), sums / np.maximum(counts, 1)))
    return found
