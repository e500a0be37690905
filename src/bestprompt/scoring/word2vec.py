"""Word2Vec cosine: the mean of a text's word vectors, trained on the task's own texts or read from a file.

An optional extra: gensim is imported only when a scorer of this kind is built.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from bestprompt.errors import ConfigError, MissingExtraError
from bestprompt.scoring.base import content_hash
from bestprompt.scoring.lexical import LexicalScorer
from bestprompt.scoring.vector import cosine
from bestprompt.types import FloatArray


def _gensim() -> Any:
    try:
        import gensim.models
    except ImportError:
        raise MissingExtraError("The Word2Vec score", "word2vec") from None
    return gensim.models


def _stable_hash(text: str) -> int:
    # gensim seeds each word's first vector with it; Python's own hash differs from process to process.
    return zlib.crc32(text.encode())


@dataclass(frozen=True)
class Word2VecCosine(LexicalScorer):
    """Cosine of mean word vectors; words without a vector are left out, and a text of none scores 0.

    Attributes:
        texts: What to train on, unless ``path`` is given.
        path: A file of vectors in the word2vec text format (``.txt``, ``.vec``) or binary format (``.bin``).
        architecture: ``"cbow"`` or ``"skip-gram"``.
        size: Length of a word vector.
        window: Words of context on either side.
        epochs: Passes over the texts.
        seed: Training is repeatable for a given seed: one worker, and no dependence on the process.
    """

    kind: ClassVar[str] = "word2vec"
    texts: tuple[str, ...] = field(default=(), repr=False)
    path: str = ""
    architecture: Literal["cbow", "skip-gram"] = "cbow"
    size: int = 50
    window: int = 5
    epochs: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _gensim()
        if self.architecture not in ("cbow", "skip-gram"):
            raise ConfigError(f"scorer word2vec: architecture = {self.architecture!r}; choose 'cbow' or 'skip-gram'")
        if self.path and not Path(self.path).is_file():
            raise ConfigError(f"scorer word2vec: no vectors at {self.path}")
        if not self.path and not any(self.normalisation.tokens(text) for text in self.texts):
            raise ConfigError("scorer word2vec: needs texts to train on, or path = a file of vectors")

    @property
    def fingerprint(self) -> str:
        """Settings, and the content (not the name) of the file of vectors."""
        content = zlib.crc32(Path(self.path).read_bytes()) if self.path else 0
        return f"{self.kind}:{content_hash([self, content])}"

    @cached_property
    def _vectors(self) -> Any:
        models = _gensim()
        if self.path:
            try:
                return models.KeyedVectors.load_word2vec_format(self.path, binary=self.path.endswith(".bin"))
            except (ValueError, EOFError, UnicodeDecodeError) as error:
                raise ConfigError(f"scorer word2vec: {self.path} is not in the word2vec format: {error}") from None
        sentences = [self.normalisation.tokens(text) for text in self.texts]
        return models.Word2Vec(
            sentences,
            vector_size=self.size,
            window=self.window,
            min_count=1,
            sg=int(self.architecture == "skip-gram"),
            epochs=self.epochs,
            seed=self.seed,
            workers=1,
            hashfxn=_stable_hash,
        ).wv

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """(n, size) mean word vector of each text, zero where no word is known."""
        return np.array([self._mean(self.normalisation.tokens(text)) for text in texts])

    def _mean(self, tokens: Iterable[str]) -> FloatArray:
        known = [self._vectors[token] for token in tokens if token in self._vectors]
        mean: FloatArray = np.mean(known, axis=0, dtype=float) if known else np.zeros(self._vectors.vector_size)
        return mean

    def compare(self, answer: str, reference: str) -> float:
        """Cosine of mean word vectors."""
        a, b = self.embed([answer, reference])
        return cosine(a, b)
