"""How sure, and why: against the reader's own prompt, by how the run's own answers bear out, and what to do next.

Notation (symbol → name):
    d_m    difference of two prompts' mean scores on pair m that both met, m = 1 … n
    d̄      its mean                                                   → ``Against.difference``
    y      1.96 s̃ / √(n + 2)                                          → ``Against.half``
    s̃²     the variance of d with half an answer of +1, half one of −1 and one of 0 added

The added answers are those of Agresti and Min for paired proportions: without them a handful of pairs on which both
prompts happened to score alike would show a difference of 0 ± 0.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bestprompt.execution import HELD_OUT
from bestprompt.ledger import Entry
from bestprompt.report.course import WEIGHT, pooled_variance
from bestprompt.run.result import Recommendation
from bestprompt.run.variation import plainly
from bestprompt.types import FloatArray

# A difference that three pairs or fewer show is an anecdote; below eight answers halves say nothing.
FEW, HALVED = 3, 8


@dataclass(frozen=True, slots=True)
class Against:
    """A prompt compared with another on the pairs that both met.

    Attributes:
        ours: The first prompt's number.
        theirs: The other's.
        whom: What the other is called: the reader's prompt, or the best of the examples.
        shared: n.
        difference: d̄ or, where they share too few pairs, that of the estimates.
        half: y, half the width of its 95 % interval.
        estimated: Whether the difference is that of the estimates.
        better: Pairs on which the first scored more.
        worse: Pairs on which it scored less.
    """

    ours: int
    theirs: int
    whom: str
    shared: int
    difference: float
    half: float
    estimated: bool
    better: int
    worse: int

    @property
    def basis(self) -> str:
        """What the difference rests on, in words."""
        if not self.estimated:
            return f"on {self.shared} shared pairs"
        met = {0: "no pair was", 1: "only one pair was"}.get(self.shared, f"only {self.shared} pairs were")
        return f"by the estimates ({met} put to both)"


@dataclass(frozen=True, slots=True)
class Halves:
    """Whether later answers bore out what earlier ones led to expect: of ``prompts`` prompts, ``inside`` did."""

    prompts: int
    inside: int


@dataclass(frozen=True, slots=True)
class Step:
    """Something worth doing, and the command that does it, if one does."""

    text: str
    command: str | None = None


def other_of(recommendation: Recommendation) -> int | None:
    """The prompt that the winner is compared with: the one in use, or the best of the other examples."""
    choice, sources = recommendation.choice, recommendation.candidates.sources
    if choice.incumbent is not None and choice.incumbent != choice.candidate:
        return choice.incumbent
    own = [n for n in np.flatnonzero(choice.counts > 0).tolist() if n != choice.candidate]
    if choice.incumbent is None:
        own = [n for n in own if sources[n] == "example"] or own
    return max(own, key=lambda n: float(choice.estimates[n]), default=None)


def against(recommendation: Recommendation, entries: Sequence[Entry]) -> Against | None:
    """The winner and the prompt it is compared with; held-out pairs have a sentence of their own."""
    choice, other = recommendation.choice, other_of(recommendation)
    if other is None:
        return None
    ours, theirs = (_by_pair(entries, n) for n in (choice.candidate, other))
    d = np.array([ours[p] - theirs[p] for p in sorted(ours.keys() & theirs.keys())])
    difference, half = float(d.mean()) if d.size else 0.0, half_width(d)
    if few := d.size <= FEW:
        difference = float(choice.estimates[choice.candidate] - choice.estimates[other])
        half = 1.96 * float(np.hypot(choice.deviations[choice.candidate], choice.deviations[other]))
    return Against(
        ours=choice.candidate,
        theirs=other,
        whom=_whom(recommendation, other),
        shared=int(d.size),
        difference=difference,
        half=half,
        estimated=few,
        better=int((d > 0).sum()),
        worse=int((d < 0).sum()),
    )


def half_width(d: FloatArray) -> float:
    """y, of (n,) differences."""
    total, n = float(d.sum()), d.size + 2.0
    variance = (float((d**2).sum()) + 1.0 - total**2 / n) / (n - 1.0)
    return 1.96 * float(np.sqrt(max(variance, 0.0) / n))


def headline(recommendation: Recommendation, found: Against | None) -> str:
    """What to do in one sentence: which prompt, and by how much it is better than the reader's."""
    choice = recommendation.choice
    use = "Keep your prompt" if recommendation.candidate_to_use == choice.incumbent else "Use this prompt"
    if found is None:
        return f"{use}: it scores {recommendation.score:.2f}."
    size = f"by {abs(found.difference):.2f} ± {found.half:.2f} {found.basis}"
    if choice.candidate == choice.incumbent:
        return f"{use}: it scored {_more(found.difference)} than {found.whom} {size}."
    if choice.keep_incumbent:
        return f"{use}: the best challenger scored {_more(found.difference)} {size}, which is not convincing."
    if found.difference > 0.0:
        return f"{use}: better than {found.whom} {size}."
    return f"{use}: it is estimated best, though it scored {_more(found.difference)} than {found.whom} {size}."


def later_as_expected(entries: Sequence[Entry]) -> Halves:
    """Each prompt's later answers beside the 95 % range that its earlier ones led to expect, as ``course`` has it.

    The mean of the later half is expected at the earlier half's estimate, ± 1.96 s √(1/(n_1 + 4) + 1/n_2).
    """
    scores: dict[int, list[float]] = {}
    for e in entries:
        if e.final and e.score is not None and e.replication < HELD_OUT:
            scores.setdefault(e.candidate, []).append(e.score)
    long = [np.array(own) for own in scores.values() if len(own) >= HALVED]
    if not long:
        return Halves(0, 0)
    m = float(np.mean(np.concatenate([np.array(own) for own in scores.values()])))
    sums, squares = np.array([s.sum() for s in long]), np.array([(s**2).sum() for s in long])
    variance = pooled_variance(sums, squares, np.array([s.size for s in long], dtype=np.int64))
    inside = 0
    for s in long:
        first, then = np.array_split(s, 2)
        expected = (first.sum() + WEIGHT * m) / (first.size + WEIGHT)
        error = 1.96 * np.sqrt(variance * (1.0 / (first.size + WEIGHT) + 1.0 / then.size))
        inside += bool(abs(then.mean() - expected) <= error)
    return Halves(len(long), inside)


def causes(recommendation: Recommendation) -> list[tuple[str, float]]:
    """Why single scores differ, in words, with shares; the largest first. Empty where the run cannot tell."""
    shares = recommendation.variation or {}
    return sorted(((plainly(name), share) for name, share in shares.items()), key=lambda cause: -cause[1])


def next_steps(recommendation: Recommendation, finished: bool, folder: Path, entries: Sequence[Entry]) -> list[Step]:
    """What is worth doing now, the most pressing first."""
    choice, where = recommendation.choice, shlex.quote(str(folder))
    scores = np.array([e.score for e in entries if e.final and e.score is not None])
    if not finished:
        return [Step("The run has not come to its end: go on with it.", f"bestprompt resume {where}")]
    if scores.size and not scores.any():
        return [
            Step(
                "Every answer scored 0, so nothing was learnt. Look below at how the answers were read: most often the "
                "score wants the bare answer and the model speaks in sentences. Another score mends that."
            )
        ]
    steps = []
    if scores.size and scores.min() >= 1.0:
        steps.append(Step("Every answer was right: harder pairs would be needed to tell these prompts apart."))
    steps.append(Step("Take the prompt.", f"bestprompt export {where}"))
    reach = choice.reach
    if len(choice.shortlist) > 1 and reach is not None and reach.needed is not None and reach.needed > reach.items:
        more = f"{int(float(f'{reach.needed - reach.items:.2g}')):,}"
        steps.append(Step(f"To tell the two best apart, add some {more} pairs to the {reach.items:,} there are."))
    if choice.value_of_more >= choice.delta / 2:
        again = f"bestprompt resume {where} --budget {2 * max(recommendation.calls, 1)}"
        steps.append(Step(f"As many calls again are expected to gain {choice.value_of_more:.3f} in score.", again))
    if choice.incumbent is None:
        steps.append(Step("Name the prompt you use now (--incumbent), and the verdict says whether to keep it."))
    return steps


def _by_pair(entries: Sequence[Entry], candidate: int) -> dict[int, float]:
    scores: dict[int, list[float]] = {}
    for e in entries:
        if e.candidate == candidate and e.final and e.score is not None and e.replication < HELD_OUT:
            scores.setdefault(e.pair, []).append(e.score)
    return {pair: float(np.mean(own)) for pair, own in scores.items()}


def _whom(recommendation: Recommendation, other: int) -> str:
    choice, sources = recommendation.choice, recommendation.candidates.sources
    if other == choice.incumbent:
        return "your prompt"
    if choice.candidate == choice.incumbent or sources[other] != "example":
        return "the best of the others"
    return f"the best of your {'other ' if sources[choice.candidate] == 'example' else ''}prompts"


def _more(difference: float) -> str:
    return "more" if difference > 0.0 else "less" if difference < 0.0 else "the same"
