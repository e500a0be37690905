"""What is ignored when two texts are compared, stated as data rather than hidden in each score."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

# Quotes, brackets, sentence marks and markdown emphasis. Other symbols (%, +, $, #, /) carry meaning and stay.
_MARKS = re.escape("\"'`´‘’“”«»()[]{}<>.,:;!?…¿¡-–—*_")
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")
# A mark is kept where it is part of a number: the point of 3.5 and .5, the comma of 1,000, the sign of -2.
_PUNCTUATION = re.compile(rf"(\d[.,](?=\d)|(?<!\w)(?:-\.?|\.)(?=\d))|[{_MARKS}]")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b", re.IGNORECASE)
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Normalisation:
    """Differences between two texts that do not count.

    Attributes:
        case: Ignore case.
        punctuation: Ignore quotes, brackets, hyphens, emphasis and sentence marks, except inside numbers.
        whitespace: Treat any run of white space as one blank, none at the ends.
        articles: Ignore the words *a*, *an* and *the*.
        unicode: Treat compatible characters alike (full-width forms, ligatures).
    """

    case: bool = True
    punctuation: bool = True
    whitespace: bool = True
    articles: bool = False
    unicode: bool = True

    def apply(self, text: str) -> str:
        """``text`` without the differences; a text that would vanish altogether is only stripped."""
        result = unicodedata.normalize("NFKC", text) if self.unicode else text
        if self.case:
            result = result.casefold()
        if self.punctuation:
            result = _PUNCTUATION.sub(lambda match: match.group(1) or " ", _APOSTROPHE.sub("", result))
        if self.articles:
            result = _ARTICLES.sub(" ", result)
        if self.whitespace:
            result = _SPACE.sub(" ", result).strip()
        return result if result.strip() else text.strip()

    def tokens(self, text: str) -> list[str]:
        """The words of the normalised text."""
        return self.apply(text).split()
