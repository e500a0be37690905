"""Scores that compare the words or characters of an output with those of a reference.

Notation: ŷ output, y reference, |·| length in tokens or characters
    token F1          2PR/(P+R) with P, R the shares of shared tokens (as multisets) in ŷ and in y
    edit similarity   1 − Levenshtein(ŷ, y) / max(|ŷ|, |y|)
    ROUGE-L           2PR/(P+R) with P = LCS/|ŷ|, R = LCS/|y|, LCS the longest common subsequence of tokens
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar

from rapidfuzz.distance import LCSseq, Levenshtein

from bestprompt.errors import ConfigError
from bestprompt.scoring.base import TextScorer
from bestprompt.scoring.extraction import EXTRACTORS
from bestprompt.scoring.normalise import Normalisation
from bestprompt.types import Pair, Scored


def harmonic(precision: float, recall: float) -> float:
    """The harmonic mean 2PR/(P+R), zero where both are."""
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


@dataclass(frozen=True)
class LexicalScorer(TextScorer):
    """Extracts the answer, then takes the best comparison over the references.

    Attributes:
        extract: Which part of the output is the answer: a key of :data:`~bestprompt.scoring.extraction.EXTRACTORS`.
        normalisation: Which differences do not count.
    """

    extract: str = "all"
    normalisation: Normalisation = field(default_factory=Normalisation)

    def __post_init__(self) -> None:
        if self.extract not in EXTRACTORS:
            raise ConfigError(f"extract = {self.extract!r} is unknown; choose one of: {', '.join(EXTRACTORS)}")

    @abstractmethod
    def compare(self, answer: str, reference: str) -> float:
        """Similarity of an extracted answer and one reference, in [0, 1]."""

    def score_one(self, output: str, pair: Pair) -> Scored:
        """The best comparison over the references; 0 when no answer can be extracted."""
        answer = EXTRACTORS[self.extract](output)
        if answer is None:
            return Scored(0.0)
        return Scored(max(self.compare(answer, reference) for reference in pair.references), answer.strip())


@dataclass(frozen=True)
class Exact(LexicalScorer):
    """1 when the normalised answer equals a normalised reference."""

    kind: ClassVar[str] = "exact"

    def compare(self, answer: str, reference: str) -> float:
        """Equality."""
        return float(self.normalisation.apply(answer) == self.normalisation.apply(reference))


@dataclass(frozen=True)
class Contains(LexicalScorer):
    """1 when the tokens of a reference occur, whole and in order, in the answer.

    An output that lists every possible answer wins too: prefer ``choice``, ``number`` or ``letter`` where the
    possible answers are known.
    """

    kind: ClassVar[str] = "contains"

    def compare(self, answer: str, reference: str) -> float:
        """Whole-word containment."""
        inside, wanted = self.normalisation.tokens(answer), self.normalisation.tokens(reference)
        return float(any(inside[i : i + len(wanted)] == wanted for i in range(len(inside) - len(wanted) + 1)))


@dataclass(frozen=True)
class TokenF1(LexicalScorer):
    """Harmonic mean of the shares of shared tokens; blind to order."""

    kind: ClassVar[str] = "f1"

    def compare(self, answer: str, reference: str) -> float:
        """Token F1."""
        given, wanted = (Counter(self.normalisation.tokens(text)) for text in (answer, reference))
        shared = (given & wanted).total()
        return harmonic(shared / max(given.total(), 1), shared / max(wanted.total(), 1))


@dataclass(frozen=True)
class EditSimilarity(LexicalScorer):
    """One minus the Levenshtein distance over the longer length, on characters."""

    kind: ClassVar[str] = "edit"

    def compare(self, answer: str, reference: str) -> float:
        """Normalised Levenshtein similarity."""
        normalise = self.normalisation.apply
        return float(Levenshtein.normalized_similarity(normalise(answer), normalise(reference)))


@dataclass(frozen=True)
class RougeL(LexicalScorer):
    """Harmonic mean of the shares of the longest common subsequence of tokens."""

    kind: ClassVar[str] = "rouge-l"

    def compare(self, answer: str, reference: str) -> float:
        """ROUGE-L F-measure."""
        given, wanted = self.normalisation.tokens(answer), self.normalisation.tokens(reference)
        common = LCSseq.similarity(given, wanted)
        return harmonic(common / max(len(given), 1), common / max(len(wanted), 1))


@dataclass(frozen=True)
class Regex(TextScorer):
    """A regular expression searched in the output.

    With a capturing group, the last match's first group is the answer and must equal a reference; without one, any
    match scores 1 and the references are not consulted. ``{reference}`` in the pattern stands for the reference itself.
    """

    kind: ClassVar[str] = "regex"
    pattern: str
    ignore_case: bool = True
    normalisation: Normalisation = field(default_factory=Normalisation)

    def __post_init__(self) -> None:
        try:
            self._compiled("x")
        except re.error as error:
            raise ConfigError(f"scorer regex: pattern {self.pattern!r} is not a regular expression: {error}") from None

    def _compiled(self, reference: str) -> re.Pattern[str]:
        flags = re.IGNORECASE if self.ignore_case else re.NOFLAG
        return re.compile(self.pattern.replace("{reference}", re.escape(reference)), flags | re.MULTILINE)

    def score_one(self, output: str, pair: Pair) -> Scored:
        """The best over the references."""
        return max((self._against(output, reference) for reference in pair.references), key=lambda scored: scored.value)

    def _against(self, output: str, reference: str) -> Scored:
        matches = list(self._compiled(reference).finditer(output))
        if not matches:
            return Scored(0.0)
        if not matches[-1].re.groups:
            return Scored(1.0, matches[-1].group())
        answer = matches[-1].group(1) or ""
        normalise = self.normalisation.apply
        return Scored(float(normalise(answer) == normalise(reference)), answer)
