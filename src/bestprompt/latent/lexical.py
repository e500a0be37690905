"""A lexical stand-in for the autoencoder's encoder: TF-IDF of words and character n-grams.

It needs no weights and represents any text, whatever its language, length or script, but it cannot decode. It gives
coordinates to candidate prompts that were written by a person or a model and that the autoencoder cannot represent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer

from bestprompt.types import FloatArray

MAX_FEATURES = 4096


@dataclass(frozen=True)
class LexicalEncoder:
    """Texts → rows of unit length or less in the space of weighted words and character n-grams.

    Words say what a prompt is about; character n-grams relate inflections, typing errors and scripts without spaces.
    """

    words: Any
    characters: Any

    @classmethod
    def fit(cls, texts: Sequence[str]) -> LexicalEncoder:
        """Learn vocabulary and inverse document frequencies from ``texts``."""
        words = TfidfVectorizer(
            token_pattern=r"\w+|[^\w\s]", ngram_range=(1, 2), sublinear_tf=True, max_features=MAX_FEATURES
        )
        characters = TfidfVectorizer(
            analyzer="char_wb", ngram_range=(3, 4), sublinear_tf=True, max_features=MAX_FEATURES
        )
        return cls(words.fit(texts), characters.fit(texts))

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """(n, V) rows; both halves weigh the same and every row has length ≤ 1."""
        halves = [self.words.transform(texts), self.characters.transform(texts)]
        return np.asarray(hstack(halves).toarray() / np.sqrt(2.0), dtype=np.float64)
