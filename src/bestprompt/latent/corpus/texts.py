"""The texts of the corpus: sentences of the grammar, and instructions that language models wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from bestprompt.latent.corpus.grammar import Grammar
from bestprompt.latent.weights_file import WEIGHTS
from bestprompt.types import FloatArray

BUNDLED = ("sort words", "first letter", "larger animal", "numbers to words", "rhyme", "count objects")
BUNDLED_WEIGHT = 3.0
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


def split_sampled(path: Path) -> tuple[list[str], list[str]]:
    """Sampled instructions for training, and those of ``held_out.txt`` beside them, which are never trained on."""
    held_out = clean_sampled((WEIGHTS / "held_out.txt").read_text(encoding="utf-8").splitlines())
    lines = clean_sampled(path.read_text(encoding="utf-8").splitlines())
    return sorted(set(lines) - set(held_out)), held_out


def sentences(grammar: Grammar, n: int, rng: np.random.Generator) -> list[str]:
    """``n`` grammar sentences, frames weighted as in training."""
    weights = frame_weights(grammar)
    drawn = [grammar.frames[i] for i in rng.choice(len(weights), size=n, p=weights)]
    return [grammar.form(frame, grammar.instance(frame, rng), rng) for frame in drawn]


def frame_weights(grammar: Grammar) -> FloatArray:
    """Probability of each frame: the kinds of the bundled tasks more often than the others."""
    weights = np.array([BUNDLED_WEIGHT if frame.name in BUNDLED else 1.0 for frame in grammar.frames])
    return np.asarray(weights / weights.sum())
