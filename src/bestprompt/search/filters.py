"""What a decoded candidate must pass: similarity to its parent, no near-duplicate, fluency."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from rapidfuzz import fuzz, process

from bestprompt.choices import SimilarityName
from bestprompt.types import FloatArray

Similarity = Callable[[str, str], float]
Fluency = Callable[[Sequence[str]], FloatArray]

NEAR_DUPLICATE = 93.0  # of 100
# Mean log-probability per token under SmolLM2: short texts have a lower one. A tenth of the training corpus and
# nearly all sentences with shuffled words lie below base + slope / number of words.
_FLUENCY_BASE, _FLUENCY_SLOPE = -4.5, -9.0
# Other models have another level: the floor moves with the median over these sentences.
_REFERENCE = (
    "Sort the words in alphabetical order.",
    "Write the first letter of the given word.",
    "Which of these animals is the largest?",
    "Translate the following sentence into French.",
    "How many objects are mentioned in the text?",
    "Summarize the article in one sentence.",
    "Choose the word that rhymes with the given word.",
    "Write the number in words.",
    "Is the review positive or negative?",
)
_REFERENCE_MEDIAN = -3.92
STEM = 5  # letters
_WORD = re.compile(r"\w+")
_REPEATED_MARK = re.compile(r"([,;:?])\s*[,;:?]")
FUNCTION_WORDS = frozenset({
    "a", "all", "an", "and", "are", "as", "at", "be", "by", "do", "does", "each", "following", "for", "from",
    "given", "i", "in", "is", "it", "its", "me", "of", "on", "one", "only", "or", "please", "that", "the", "their",
    "them", "these", "this", "to", "what", "which", "with", "you", "your",
})  # fmt: skip


def words(text: str) -> list[str]:
    """Lower-case words of a text."""
    return _WORD.findall(text.lower())


def word_similarity(a: str, b: str) -> float:
    """Similarity in [0, 1] of two short texts: the mean of the overlap (F1) of content words and of similar letters.

    Overlap alone calls "Sort the words." and "Sorting each word:" unrelated; letters alone call any two sentences
    related. Function words are left out of the overlap: all prompts share them.
    """
    if not words(a) or not words(b):
        return float(a == b)
    return 0.5 * shared_words(a, b) + 0.5 * similar_letters(a, b)


def shared_words(a: str, b: str) -> float:
    """F1 of the content words of two texts, in [0, 1]."""
    one, two = (Counter([w for w in every if w not in FUNCTION_WORDS] or every) for every in (words(a), words(b)))
    return 2.0 * (one & two).total() / max(one.total() + two.total(), 1)


def similar_letters(a: str, b: str) -> float:
    """How alike two texts are letter by letter, in [0, 1], whatever the order of their words."""
    return float(fuzz.token_sort_ratio(" ".join(words(a)), " ".join(words(b)))) / 100.0


SIMILARITIES: dict[SimilarityName, Similarity] = {
    "mixed": word_similarity,
    "words": shared_words,
    "letters": similar_letters,
}


def content_stems(text: str) -> frozenset[str]:
    """The beginnings of the content words of a text: "alphabetize" and "alphabetical" say the same."""
    return frozenset(word[:STEM] for word in words(text) if word not in FUNCTION_WORDS)


@lru_cache(maxsize=16)
def subject(examples: tuple[str, ...]) -> frozenset[str]:
    """What the examples are about: the stems that two of them share."""
    counts = Counter(stem for text in examples for stem in content_stems(text))
    return frozenset(stem for stem, count in counts.items() if count > 1)


def fluency_level(fluency: Fluency) -> float:
    """How far the model behind ``fluency`` lies above the one the floor was measured with."""
    return float(np.median(fluency(_REFERENCE)) - _REFERENCE_MEDIAN)


def fluency_floor(text: str) -> float:
    """Least mean log-probability per token at which a text of this length still reads like the training corpus."""
    return _FLUENCY_BASE + _FLUENCY_SLOPE / max(1, len(words(text)))


@lru_cache(maxsize=4096)
def plain(text: str) -> str:
    """The words only: texts that differ in case and punctuation alone are the same prompt."""
    return " ".join(words(text))


def near_duplicate(text: str, others: Sequence[str]) -> bool:
    """Whether ``text`` (from ``plain``) is almost the same as one of ``others``."""
    return process.extractOne(text, others, scorer=fuzz.ratio, score_cutoff=NEAR_DUPLICATE) is not None


def looks_whole(text: str, parent: str | None = None) -> bool:
    """Whether a decode ended properly.

    It has words, ends like a sentence, a title or a demonstration, or, as its parent does, without any mark; it closes
    its quotation marks and brackets, and no word, phrase or mark runs in a loop.
    """
    tokens = words(text)
    if not tokens or (not _has_end_mark(text) and (parent is None or _has_end_mark(parent))):
        return False
    if text.count('"') % 2 or text.count("(") != text.count(")") or _REPEATED_MARK.search(text):
        return False
    pairs = list(pairwise(tokens))
    return len(set(pairs)) >= len(pairs) - 1 and not _said_twice_running(tokens)


def _has_end_mark(text: str) -> bool:
    return text[-1] in ".?!:\"')" or "->" in text


def _said_twice_running(tokens: Sequence[str]) -> bool:
    """Whether some words are followed by the same words at once: "the the", "in order in order"."""
    return any(
        tokens[i : i + size] == tokens[i + size : i + 2 * size]
        for size in range(1, len(tokens) // 2 + 1)
        for i in range(len(tokens) - 2 * size + 1)
    )
