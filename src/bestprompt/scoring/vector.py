"""Cosine scores: texts become vectors, the score is their cosine, cut at 0 so that it lies in [0, 1].

Notation: a, b vectors of output and reference
    cosine            ⟨a, b⟩ / (‖a‖ ‖b‖)
    TF                a_w = how often token w occurs in the text
    TF-IDF            a_w = TF_w · (ln((1 + n)/(1 + df_w)) + 1) over the n texts of the task
    embedding         a = the model's own text vector
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from bestprompt.errors import ConfigError
from bestprompt.lm.abilities import EmbedsTexts
from bestprompt.scoring.base import content_hash
from bestprompt.scoring.lexical import LexicalScorer
from bestprompt.scoring.normalise import Normalisation
from bestprompt.types import FloatArray, Pair, Scored, Usage


def cosine(a: FloatArray, b: FloatArray) -> float:
    """⟨a, b⟩/(‖a‖‖b‖) clipped to [0, 1]; zero where a vector is zero. ``a`` and ``b`` are (d,)."""
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.clip(a @ b / norms, 0.0, 1.0)) if norms > 0 else 0.0


@dataclass(frozen=True)
class TfCosine(LexicalScorer):
    """Cosine of token counts."""

    kind: ClassVar[str] = "tf"

    def compare(self, answer: str, reference: str) -> float:
        """TF cosine."""
        a, b = (Counter(self.normalisation.tokens(text)) for text in (answer, reference))
        vocabulary = sorted(a | b)
        return cosine(np.array([a[w] for w in vocabulary], float), np.array([b[w] for w in vocabulary], float))


@dataclass(frozen=True)
class TfIdfCosine(LexicalScorer):
    """Cosine of token counts weighted by rarity; tokens unknown to ``texts`` weigh as the rarest do.

    Attributes:
        texts: The texts that say how common each token is; the task's inputs and references.
    """

    kind: ClassVar[str] = "tf-idf"
    texts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any(self.normalisation.tokens(text) for text in self.texts):
            raise ConfigError("scorer tf-idf: needs texts with at least one word to learn how common words are")

    @cached_property
    def _weights(self) -> tuple[dict[str, float], float]:
        from sklearn.feature_extraction.text import TfidfVectorizer  # slow to load, and few scores need it

        vectorizer = TfidfVectorizer(analyzer=self.normalisation.tokens).fit(self.texts)
        weights = {str(word): float(vectorizer.idf_[column]) for word, column in vectorizer.vocabulary_.items()}
        return weights, float(np.log(1 + len(self.texts)) + 1)

    def compare(self, answer: str, reference: str) -> float:
        """TF-IDF cosine."""
        weights, unseen = self._weights
        a, b = (Counter(self.normalisation.tokens(text)) for text in (answer, reference))
        vocabulary = sorted(a | b)
        weight = np.array([weights.get(word, unseen) for word in vocabulary])
        return cosine(weight * [a[w] for w in vocabulary], weight * [b[w] for w in vocabulary])


@dataclass(frozen=True)
class EmbeddingCosine:
    """Cosine of the vectors a model gives to output and reference.

    Attributes:
        embedder: The model; its fingerprint is part of this scorer's.
        floor: The cosine that counts as "nothing in common". Text vectors of one model all point roughly the same way,
            so raw cosines crowd near 1; the score is ``max(0, (cosine − floor)/(1 − floor))``.
        normalisation: Applied before embedding; by default only white space is ignored.
    """

    kind: ClassVar[str] = "embedding"
    embedder: EmbedsTexts
    floor: float = 0.0
    normalisation: Normalisation = field(default_factory=lambda: Normalisation(case=False, punctuation=False))

    def __post_init__(self) -> None:
        if not 0 <= self.floor < 1:
            raise ConfigError(f"scorer embedding: floor = {self.floor} must lie in [0, 1)")

    @property
    def fingerprint(self) -> str:
        """Settings and the embedding model."""
        settings: dict[str, Any] = {"floor": self.floor, "normalisation": self.normalisation}
        return f"{self.kind}:{content_hash(settings | {'embedder': self.embedder.fingerprint})}"

    def score(self, outputs: Sequence[str], pairs: Sequence[Pair]) -> list[Scored]:
        """All texts of the batch are embedded in one call, each distinct one once."""
        normalise = self.normalisation.apply
        answers = [normalise(output) for output in outputs]
        wanted = [[normalise(reference) for reference in pair.references] for pair in pairs]
        texts = list(dict.fromkeys([*filter(None, answers), *(text for several in wanted for text in several)]))
        vectors = dict(zip(texts, np.asarray(self.embedder.embed(texts), float), strict=True)) if texts else {}
        scores = []
        for answer, several in zip(answers, wanted, strict=True):
            best = max(cosine(vectors[answer], vectors[text]) for text in several) if answer else 0.0
            scores.append(Scored(max(0.0, (best - self.floor) / (1 - self.floor)), answer))
        return scores

    def max_usage(self, pair: Pair, max_output_tokens: int) -> Usage:
        """Nothing is charged: the embedder runs in process."""
        return Usage()
