"""A map of the prompts by wording: near each other are those that share words.

Notation (symbol → name, shape):
    A      tf-idf weights of the words of each prompt, rows of length 1, centred    (N, V)
    U S    first two principal components of A                                      → ``WordingMap.x``, ``.y``
    c_w    mean place of the prompts that use word w                                → ``Landmark.x``, ``.y``
    g_w    n_w |c_w|² / (1 + n_w/N): words that pull many prompts far to one side   → what words are written on the map
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bestprompt.types import FloatArray, IntArray

LANDMARKS = 14
# Words that every text has say nothing about what it asks.
_COMMON = frozenset(
    ("the", "and", "for", "that", "this", "these", "those", "with", "from", "into", "your", "you", "are", "was", "were",
     "has", "have", "will", "not", "but", "its", "his", "her", "their", "them", "they", "our", "what", "which", "who",
     "how", "when", "where", "why", "all", "any", "each", "one", "only", "out", "then", "than", "can", "does", "did",
     "just", "here", "there")
)  # fmt: skip
_WORD = re.compile(r"[^\W\d_][\w'’-]*", re.UNICODE)


@dataclass(frozen=True, slots=True)
class Landmark:
    """A word, at the mean place of the prompts that use it; places are in [0, 1]."""

    word: str
    x: float
    y: float
    prompts: int


@dataclass(frozen=True, slots=True)
class WordingMap:
    """Prompts in the plane, (N,) each, in [0, 1]; ``edges`` link child to parent."""

    x: FloatArray
    y: FloatArray
    landmarks: tuple[Landmark, ...]
    edges: tuple[tuple[int, int], ...]


def wording_map(prompts: Sequence[str], parents: IntArray) -> WordingMap:
    """Where the prompts lie; with a single wording all lie in the middle."""
    weights, words = _weights(prompts)
    plane = _plane(weights)
    span = np.ptp(plane, axis=0) if len(plane) else np.ones(2)
    scale = np.where(span > 1e-9, span, 1.0)
    places = np.where(span > 1e-9, (plane - plane.min(axis=0)) / scale, 0.5)
    edges = tuple((n, int(p)) for n, p in enumerate(parents) if p >= 0)
    return WordingMap(places[:, 0], places[:, 1], _landmarks((weights > 0).astype(np.float64), words, places), edges)


def _weights(prompts: Sequence[str]) -> tuple[FloatArray, list[str]]:
    """(N, V) tf-idf, and the V words."""
    used = [_WORD.findall(prompt.lower()) for prompt in prompts]
    words = sorted({word for each in used for word in each})
    column = {word: v for v, word in enumerate(words)}
    counts = np.zeros((len(prompts), len(words)))
    for n, each in enumerate(used):
        np.add.at(counts[n], [column[word] for word in each], 1.0)
    spread = np.log((1.0 + len(prompts)) / (1.0 + (counts > 0).sum(axis=0))) + 1.0
    weights = np.log1p(counts) * spread
    return weights / np.maximum(np.linalg.norm(weights, axis=1, keepdims=True), 1e-12), words


def _plane(weights: FloatArray) -> FloatArray:
    """(N, 2) principal components; each is turned so that the prompt that lies farthest out has a positive place."""
    if min(weights.shape) < 2:
        return np.zeros((len(weights), 2))
    left, lengths, _ = np.linalg.svd(weights - weights.mean(axis=0), full_matrices=False)
    plane = left[:, :2] * lengths[:2]
    signs = np.sign(plane[np.abs(plane).argmax(axis=0), [0, 1]])
    return np.asarray(plane * np.where(signs == 0, 1.0, signs), dtype=np.float64)


def _landmarks(uses: FloatArray, words: Sequence[str], places: FloatArray) -> tuple[Landmark, ...]:
    n = len(places)
    times = uses.sum(axis=0)
    centre = places.mean(axis=0)
    means = uses.T @ places / np.maximum(times, 1)[:, None]
    pull = times * ((means - centre) ** 2).sum(axis=1) / (1.0 + times / n)
    # A word of every prompt says nothing about where it lies; a word of one is that prompt's own.
    plain = [len(word) > 2 and word not in _COMMON for word in words]
    telling = [v for v in np.argsort(-pull, kind="stable") if 2 <= times[v] <= 0.8 * n and plain[v]]
    return tuple(Landmark(words[v], float(means[v, 0]), float(means[v, 1]), int(times[v])) for v in telling[:LANDMARKS])
