"""The texts of the corpus: sentences of the grammar, and instructions that language models wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from bestprompt.latent.corpus.grammar import Grammar
from bestprompt.latent.weights_file import WEIGHTS
from bestprompt.types import FloatArray

BUNDLED = ("sort words", "first letter", "larger animal", "numbers to words", "rhyme", "count objects")
BUNDLED_WEIGHT = 3.0
SAMPLED_NAME = "sampled.txt"
_PLAIN = re.compile(r"[A-Za-z0-9 ,.;:?!'\"()\-/%$+*=<>&#]+")


def clean_sampled(lines: Iterable[str]) -> list[str]:
    """Drop repetitions and what is not a short English instruction; sorted, so that neighbours share their opening."""
    kept: set[str] = set()
    for line in lines:
        text = line.strip().replace(":.", ":").replace(".:", ":")
        words = text.split()
        balanced = text.count('"') % 2 == 0 and text.count("(") == text.count(")")
        if 3 <= len(words) <= 24 and balanced and _PLAIN.fullmatch(text) and max(map(len, words)) <= 18:
            kept.add(text)
    return sorted(kept)


def sampled_instructions() -> list[str]:
    """The part of the sampled corpus that ships with the weights, sorted."""
    return sorted({text for wordings in _shipped() for text in wordings})


def sampled_paraphrases() -> list[list[str]]:
    """Of these, the ones that say the same in two or more ways, together."""
    return [wordings for wordings in _shipped() if len(wordings) > 1]


def _shipped() -> list[list[str]]:
    """The lines of the file: one instruction, or tabs between several wordings of it."""
    lines = (WEIGHTS / SAMPLED_NAME).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines]


def sentences(grammar: Grammar, n: int, rng: np.random.Generator) -> list[str]:
    """``n`` grammar sentences, frames weighted as in training."""
    weights = frame_weights(grammar)
    drawn = [grammar.frames[i] for i in rng.choice(len(weights), size=n, p=weights)]
    return [grammar.form(frame, grammar.instance(frame, rng), rng) for frame in drawn]


def paraphrased(grammar: Grammar, n: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """``n`` pairs of grammar sentences that say the same."""
    weights = frame_weights(grammar)
    pairs = []
    for index in rng.choice(len(weights), size=n, p=weights):
        frame = grammar.frames[index]
        values = grammar.instance(frame, rng)
        pairs.append((grammar.form(frame, values, rng), grammar.form(frame, values, rng)))
    return pairs


def frame_weights(grammar: Grammar) -> FloatArray:
    """Probability of each frame: the kinds of the bundled tasks more often than the others."""
    weights = np.array([BUNDLED_WEIGHT if frame.name in BUNDLED else 1.0 for frame in grammar.frames])
    return np.asarray(weights / weights.sum())
