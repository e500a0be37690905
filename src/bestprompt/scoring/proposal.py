"""Which score fits the data: proposed from the right answers alone, and said in one sentence.

    a few labels, each of several pairs          → label      which one does the answer commit to?
    numbers                                      → number     the last number of the answer
    one to three words                           → contains   are they in the answer, whole and in order?
    up to a dozen words                          → f1         how many words are shared
    more                                         → rouge-l    the longest common sequence of words
A judge reads long answers better than any of these, and costs calls: it is never proposed unasked, only named.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, quantiles
from typing import Any

from bestprompt.scoring.extraction import numbers
from bestprompt.types import Pair

# Labels: at most so many, of so many words, each the answer of so many pairs on average.
_MOST_LABELS, _LABEL_WORDS, _PAIRS_EACH = 50, 4, 2.0
# Grades and codes are labels; more different numbers than this are quantities.
_MOST_GRADES = 6
_FEW_WORDS, _SOME_WORDS = 3.0, 12.0
DEFAULT_LENGTH = 32


@dataclass(frozen=True, slots=True)
class ScoreProposal:
    """A score for a task, as it may be written in a file.

    Attributes:
        spec: Kind and settings.
        sentence: What it does with an answer, and why it was proposed.
    """

    spec: Mapping[str, Any]
    sentence: str


def propose_score(pairs: Sequence[Pair]) -> ScoreProposal:
    """The score that fits the right answers of ``pairs``."""
    if pairs and all(pair.meta.get("options") for pair in pairs):
        return ScoreProposal({"kind": "choice"}, "the answer must name one option of its pair, and the right one")
    labels = labels_of(pairs)
    grades = [label for label in labels if _is_number(label)]
    many_numbers = len(grades) == len(labels) and (len(labels) > _MOST_GRADES or any("." in g for g in grades))
    if _are_labels(labels, len(pairs)) and not many_numbers:
        shown = ", ".join(labels[:4]) + (", …" if len(labels) > 4 else "")
        return ScoreProposal(
            {"kind": "label", "options": list(labels)},
            f"the answer must commit to one of {len(labels)} labels ({shown}), wherever it names it",
        )
    if all(_is_number(reference) for pair in pairs for reference in pair.references):
        return ScoreProposal({"kind": "number"}, "the last number of the answer must be the right one")
    words = mean(min(len(reference.split()) for reference in pair.references) for pair in pairs)
    if words <= _FEW_WORDS:
        return ScoreProposal({"kind": "contains"}, "the answer must contain the expected words")
    if words <= _SOME_WORDS:
        return ScoreProposal({"kind": "f1"}, "the share of words that the answer and the expected one have in common")
    return ScoreProposal(
        {"kind": "rouge-l"},
        "the longest sequence of words that the answer and the expected one have in common; a model reads long answers "
        "better, at a call each: --scorer judge",
    )


def propose_length(pairs: Sequence[Pair]) -> int:
    """``max_tokens`` that the right answers of ``pairs`` fit in, with room for a sentence around them."""
    longest = [max(len(reference) for reference in pair.references) for pair in pairs]
    most = quantiles(longest, n=20)[-1] if len(longest) > 1 else float(longest[0])
    needed = int(most / 2.5) + 16  # a token is some four letters; one and a half times what that gives
    return DEFAULT_LENGTH if needed <= DEFAULT_LENGTH + 8 else min(1024, -(-needed // 32) * 32)


def labels_of(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """The distinct right answers, the most frequent first; spellings that differ in case are one."""
    spelt: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for reference in (reference for pair in pairs for reference in pair.references):
        key = " ".join(reference.casefold().split())
        spelt.setdefault(key, reference.strip())
        counts[key] += 1
    return tuple(spelt[key] for key, _ in counts.most_common())


def _are_labels(labels: Sequence[str], pairs: int) -> bool:
    short = all(len(label.split()) <= _LABEL_WORDS and len(label) <= 40 for label in labels)
    # One answer for all pairs is no set to choose from.
    return 2 <= len(labels) <= _MOST_LABELS and short and pairs >= _PAIRS_EACH * len(labels)


def _is_number(text: str) -> bool:
    """Whether a text is a number and nothing but a currency or unit sign."""
    found = numbers(text)
    return len(found) == 1 and re.fullmatch(r"\W*", text.replace(found[0].text, "", 1)) is not None
