"""A lexical stand-in for the autoencoder's encoder: TF-IDF of words and character n-grams.

It needs no weights and represents any text, whatever its language, length or script, but it cannot decode. It gives
coordinates to candidate prompts that were written by a person or a model and that the autoencoder cannot represent.
"""

from __future__ import annotations

from collections.abc import Sequence

from scipy.sparse import csr_array, hstack
from sklearn.feature_extraction.text import TfidfVectorizer

MAX_FEATURES = 4096


def lexical_rows(texts: Sequence[str], among: Sequence[str] | None = None) -> csr_array:
    """(n, V) sparse rows of length ≤ 1 in the space of weighted words and character n-grams, which weigh the same.

    Words say what a prompt is about; character n-grams relate inflections, typing errors and scripts without spaces.
    The space, and what its words weigh, is that of the texts ``among``: these ones if left out.
    """
    shared = {"sublinear_tf": True, "max_features": MAX_FEATURES}
    words = TfidfVectorizer(token_pattern=r"\w+|[^\w\s]", ngram_range=(1, 2), **shared)
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), **shared)
    fitted = [each.fit_transform(among or texts) for each in (words, characters)]
    rows = fitted if among is None else [each.transform(texts) for each in (words, characters)]
    return csr_array(hstack(rows)) / 2.0**0.5
