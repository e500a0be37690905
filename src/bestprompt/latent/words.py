"""What the training corpus knows of single words: which follow which, and which are used alike.

``weights/word_pairs.txt`` lists, per word that the corpus uses often, every word or mark seen right after it. A short
word of grammar that ends a sentence counts together with its mark ("with?"), because it depends on the word before:
"start with?" is English, "number of?" is not. ``training/publish.py`` writes the file again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from bestprompt.latent.network import FIRST_WORD, SentenceNetwork
from bestprompt.latent.tokens import Codec
from bestprompt.types import FloatArray

PAIRS_NAME = "word_pairs.txt"
BEGIN, END = "<", ">"
_PIECE = re.compile(r"\w+(?:'\w+)?|[^\w\s]")
_MARKS = frozenset(".?!:")
_TIED_TO_THE_WORD_BEFORE = frozenset({
    "a", "about", "an", "and", "as", "at", "be", "by", "for", "from", "has", "have", "if", "in", "into", "is", "of",
    "on", "or", "than", "that", "the", "to", "which", "whose", "with",
})  # fmt: skip


def pairs(text: str) -> list[tuple[str, str]]:
    """Neighbouring words and marks of a text in lower case, its begin and end included."""
    pieces = _PIECE.findall(text.lower())
    joined: list[str] = []
    for piece in pieces:
        if piece in _MARKS and joined and joined[-1] in _TIED_TO_THE_WORD_BEFORE:
            joined[-1] += piece
        else:
            joined.append(piece)
    return list(pairwise([BEGIN, *joined, END]))


@dataclass(frozen=True)
class Words:
    """Pairs and vectors of words.

    Attributes:
        followers: Per well-known word, what the corpus writes after it.
        codec: The tokenizer of the vectors.
        table: (V, w) token vectors around their mean, each of length one.
    """

    followers: Mapping[str, frozenset[str]]
    codec: Codec
    table: FloatArray
    _vectors: dict[str, FloatArray] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, network: SentenceNetwork, codec: Codec, folder: Path) -> Words:
        """The words of an autoencoder whose corpus left its pairs in ``folder``; none if it left none."""
        table = np.asarray(network.embedding, dtype=np.float64)
        table = table - table[FIRST_WORD:].mean(axis=0)
        return cls(read_pairs(folder / PAIRS_NAME), codec, table / np.linalg.norm(table, axis=1, keepdims=True))

    def unheard(self, a: str, b: str) -> bool:
        """Whether the corpus uses both words often and never writes ``b`` right after ``a``."""
        known = b in self.followers or not b[-1].isalnum()
        return known and a in self.followers and b not in self.followers[a]

    def vector(self, word: str) -> FloatArray:
        """(w,) of length one: where the autoencoder has learned to use the word."""
        if word not in self._vectors:
            mean = self.table[self.codec.numbers([word])[0]].mean(axis=0)
            self._vectors[word] = np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-9))
        return self._vectors[word]

    def likeness(self, word: str, others: Iterable[str]) -> float:
        """The largest cosine between ``word`` and one of ``others``; -1 without any."""
        return max((float(self.vector(word) @ self.vector(other)) for other in others), default=-1.0)


@lru_cache(maxsize=2)
def read_pairs(path: Path) -> Mapping[str, frozenset[str]]:
    """The file's pairs, nothing if there is no file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {first: frozenset(rest) for first, *rest in map(str.split, lines)}
