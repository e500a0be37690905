"""Prompts by pairs: every answer, what was expected, how it was read; where one prompt errs, or two differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bestprompt.ledger import Entry
from bestprompt.types import Pair

# A page that a browser opens at once and a mail carries: so many cells, and so many characters of answers.
MOST_PAIRS, MOST_PROMPTS, MOST_CHARACTERS = 150, 24, 500_000
RIGHT = 0.5  # a score above this counts as right where answers are sorted into right and wrong


@dataclass(frozen=True, slots=True)
class Answer:
    """What one prompt got for one pair.

    Attributes:
        output: The model's words, the latest where the pair was asked several times.
        extracted: What was read out of them.
        score: Mean over all times.
        times: How often it was asked.
        refused: Whether the model refused.
    """

    output: str
    extracted: str | None
    score: float
    times: int
    refused: bool


@dataclass(frozen=True, slots=True)
class AskedPair:
    """A pair that was asked: its number, input, and right answers (none where the record does not hold them)."""

    number: int
    input: str
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """Pairs by prompts.

    Attributes:
        pairs: Rows; those that most prompts met first.
        candidates: Columns, in the order given.
        answers: (pair number, candidate) → answer.
        left_out: Pairs and prompts with answers that are not in the table.
    """

    pairs: tuple[AskedPair, ...]
    candidates: tuple[int, ...]
    answers: Mapping[tuple[int, int], Answer]
    left_out: tuple[int, int]

    @property
    def longest(self) -> int:
        """How many characters of an answer may be shown so that the table stays within its size."""
        total = sum(len(a.output) for a in self.answers.values())
        return 2000 if total <= MOST_CHARACTERS else max(80, MOST_CHARACTERS // max(len(self.answers), 1))


@dataclass(frozen=True, slots=True)
class Mistake:
    """An answer that scored too little."""

    pair: AskedPair
    answer: Answer


@dataclass(frozen=True, slots=True)
class Difference:
    """A pair on which two prompts scored differently."""

    pair: AskedPair
    ours: Answer
    theirs: Answer


def all_answers(entries: Sequence[Entry]) -> dict[tuple[int, int], Answer]:
    """(pair, candidate) → answer, for every evaluation that was settled."""
    found: dict[tuple[int, int], list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.final and entry.score is not None:
            found[entry.pair, entry.candidate].append(entry)
    return {key: _answer(times) for key, times in found.items()}


def asked_pairs(entries: Sequence[Entry], pairs: Mapping[int, Pair]) -> dict[int, AskedPair]:
    """Number → pair, of those that were asked; where the record lacks the pair, the request stands for its input."""
    found = {}
    for entry in entries:
        if entry.pair not in found:
            pair = pairs.get(entry.pair)
            text = str(entry.request["messages"][-1]["content"]) if pair is None else pair.input
            found[entry.pair] = AskedPair(entry.pair, text, () if pair is None else pair.references)
    return found


def answer_table(
    entries: Sequence[Entry],
    pairs: Mapping[int, Pair],
    order: Sequence[int],
    most_pairs: int = MOST_PAIRS,
    most_prompts: int = MOST_PROMPTS,
) -> AnswerTable:
    """The answers as a table.

    Args:
        entries: Of the record.
        pairs: Of the record.
        order: Candidates, those to be shown first.
        most_pairs: Rows at most.
        most_prompts: Columns at most.
    """
    answers, asked = all_answers(entries), asked_pairs(entries, pairs)
    met = {candidate for _, candidate in answers}
    columns = [n for n in order if n in met]
    times = dict.fromkeys(asked, 0)
    for number, _ in answers:
        times[number] += 1
    # What the first prompt met comes first: its answers are what the reader asks about.
    rows = sorted(times, key=lambda p: (not columns or (p, columns[0]) not in answers, -times[p], p))
    shown, first = rows[:most_pairs], columns[:most_prompts]
    kept = {(p, n): answers[p, n] for p in shown for n in first if (p, n) in answers}
    left_out = (len(rows) - len(shown), len(columns) - len(first))
    return AnswerTable(tuple(asked[p] for p in shown), tuple(first), kept, left_out)


def mistakes(entries: Sequence[Entry], pairs: Mapping[int, Pair], candidate: int) -> list[Mistake]:
    """What ``candidate`` gets wrong, the worst first."""
    asked = asked_pairs(entries, pairs)
    wrong = [Mistake(asked[p], a) for (p, n), a in all_answers(entries).items() if n == candidate and a.score <= RIGHT]
    return sorted(wrong, key=lambda m: (m.answer.score, m.pair.number))


def differences(entries: Sequence[Entry], pairs: Mapping[int, Pair], ours: int, theirs: int) -> list[Difference]:
    """Pairs that both prompts met and scored differently on, the largest difference first."""
    asked, answers = asked_pairs(entries, pairs), all_answers(entries)
    shared = sorted(p for p, n in answers if n == ours and (p, theirs) in answers)
    apart = [Difference(asked[p], answers[p, ours], answers[p, theirs]) for p in shared]
    apart = [d for d in apart if d.ours.score != d.theirs.score]
    return sorted(apart, key=lambda d: (-abs(d.ours.score - d.theirs.score), d.pair.number))


def _answer(times: Sequence[Entry]) -> Answer:
    last = times[-1]
    score = float(np.mean([e.score for e in times if e.score is not None]))
    output = last.output if last.output is not None else last.error or ""
    return Answer(output, last.extracted, score, len(times), last.status == "refused")
