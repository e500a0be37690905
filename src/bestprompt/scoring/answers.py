"""Strict scores for answers of a known form: an option, a number, a letter, an ordered list.

Each reads one committed answer out of the output. Echoing every option, copying the input, reciting numbers or the
alphabet scores no better than guessing; the tests of this module play those games and check that they lose.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal

from bestprompt.errors import ConfigError, TaskError
from bestprompt.scoring.base import TextScorer
from bestprompt.scoring.extraction import last_number, numbers, options_named, single_letter
from bestprompt.types import Pair, Scored


def _options(pair: Pair) -> list[str]:
    options = pair.meta.get("options")
    if not options or isinstance(options, str):
        raise TaskError(f"this scorer needs a list of options with each pair, but {pair.input[:60]!r} has none")
    return [str(option) for option in options]


@dataclass(frozen=True)
class Choice(TextScorer):
    """1 when the option named is a right one; the options come with the pair.

    Attributes:
        rule: ``"only"``: the output must name exactly one option, so an echo of the list scores 0;
            ``"first"``: the first option named counts, so an echo of the list scores what guessing does.
    """

    kind: ClassVar[str] = "choice"
    rule: Literal["only", "first"] = "only"

    def __post_init__(self) -> None:
        if self.rule not in ("only", "first"):
            raise ConfigError(f"scorer choice: rule = {self.rule!r} is unknown; choose 'only' or 'first'")

    def score_one(self, output: str, pair: Pair) -> Scored:
        """Right or wrong."""
        named = options_named(output, _options(pair))
        if not named or (self.rule == "only" and len(named) > 1):
            return Scored(0.0)
        right = {reference.casefold() for reference in pair.references}
        return Scored(float(named[0].casefold() in right), named[0])


@dataclass(frozen=True)
class Number(TextScorer):
    """1 when the last number of the output, in digits or words, equals a reference."""

    kind: ClassVar[str] = "number"

    def score_one(self, output: str, pair: Pair) -> Scored:
        """Right or wrong."""
        mention = last_number(output)
        if mention is None:
            return Scored(0.0)
        right = {number.value for reference in pair.references for number in numbers(reference)[-1:]}
        return Scored(float(mention.value in right), mention.text)


@dataclass(frozen=True)
class NumberWords(TextScorer):
    """1 when the last number the output spells in words is the reference's; digits do not count."""

    kind: ClassVar[str] = "number-words"

    def score_one(self, output: str, pair: Pair) -> Scored:
        """Right or wrong."""
        spelled = [mention for mention in numbers(output) if mention.in_words]
        if not spelled:
            return Scored(0.0)
        right = {number.value for reference in pair.references for number in numbers(reference)[-1:]}
        return Scored(float(spelled[-1].value in right), spelled[-1].text)


@dataclass(frozen=True)
class Letter(TextScorer):
    """1 when the output names a single letter and it is the reference; several different letters score 0."""

    kind: ClassVar[str] = "letter"

    def score_one(self, output: str, pair: Pair) -> Scored:
        """Right or wrong."""
        letter = single_letter(output)
        right = {reference.strip().lower() for reference in pair.references}
        return Scored(float(letter in right), letter)


@dataclass(frozen=True)
class Positions(TextScorer):
    """Share of the reference's words that stand at their own place in the answer.

    The answer is the order in which the output first names the words, as a *permutation score*: a listing in which no
    more words stand right than a random order would give scores 0, the perfect one 1:
    ``max(0, (hits − 1) / (n − 1))`` for n words, because a random permutation has one hit on average.
    """

    kind: ClassVar[str] = "positions"

    def score_one(self, output: str, pair: Pair) -> Scored:
        """The best over the references, each a list of words separated by blanks or commas."""
        return max((self._against(output, reference) for reference in pair.references), key=lambda scored: scored.value)

    def _against(self, output: str, reference: str) -> Scored:
        wanted = re.findall(r"[^\s,;]+", reference)
        given = options_named(output, wanted)
        hits = sum(a.casefold() == b.casefold() for a, b in zip(given, wanted, strict=False))
        return Scored(max(0.0, (hits - 1) / max(len(wanted) - 1, 1)), " ".join(given))
