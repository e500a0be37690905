"""Training batches: groups of sentences that belong together, from the grammar and from the sampled instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from bestprompt.latent.corpus.grammar import Grammar, TaskFrame
from bestprompt.latent.corpus.texts import frame_weights
from bestprompt.latent.network import END, FIRST_WORD
from bestprompt.latent.tokens import Codec, TokenRows

GROUP = 8  # sentences of one group; neighbours 2i and 2i+1 are paraphrases where the source knows of any
LONG = 32  # tokens
ODD_WORD_SHARE, MOST_ODD_WORDS = 0.1, 3
REWORDED_SHARE, REWORDED_WORDS = 0.25, 0.25


class SampledTexts(Protocol):
    """Instructions that language models wrote."""

    @property
    def texts(self) -> Sequence[str]:
        """All of them."""

    def group(self, rng: np.random.Generator) -> list[str]:
        """Up to 2 · GROUP of them that belong together, neighbours 2i and 2i+1 most of all."""


@dataclass(frozen=True)
class SortedTexts:
    """A sorted list: neighbours share their opening."""

    texts: list[str]

    def group(self, rng: np.random.Generator) -> list[str]:
        """Sentences that stand close to each other."""
        start = int(rng.integers(len(self.texts) - 6 * GROUP))
        return [self.texts[i] for i in rng.choice(6 * GROUP, size=2 * GROUP, replace=False) + start]


@dataclass(frozen=True)
class Batches:
    """Draws training batches; the grammar never repeats itself soon, so no corpus is stored."""

    codec: Codec
    grammar: Grammar
    sampled: SampledTexts
    groups: int = 6
    sampled_share: float = 0.4

    def draw(self, length: int, rng: np.random.Generator) -> TokenRows:
        """(groups · GROUP, length) token rows, group by group."""
        weights = frame_weights(self.grammar)
        rows: list[TokenRows] = []
        while len(rows) < self.groups:
            if rng.random() < self.sampled_share:
                rows.append(self._reworded(self._fitting(self.sampled.group(rng), length), rng))
            else:
                frame = self.grammar.frames[int(rng.choice(len(weights), p=weights))]
                rows.append(self._fitting(self._grammar_group(frame, rng), length))
            if len(rows[-1]) < GROUP:
                rows.pop()
        return self._with_odd_words(np.concatenate(rows), rng)

    def competitors(self, rows: TokenRows, size: int, rng: np.random.Generator) -> TokenRows:
        """(size,) distinct tokens: all those of ``rows`` and a random choice of the others."""
        present = np.unique(rows)
        others = np.setdiff1d(np.arange(self.codec.tokenizer.get_vocab_size()), present)
        return np.concatenate([present, rng.choice(others, size - len(present), replace=False)]).astype(np.int32)

    @cached_property
    def _words_in_use(self) -> TokenRows:
        """Every word of the sampled instructions, as often as it occurs."""
        numbers = np.concatenate([np.array(row, np.int32) for row in self.codec.numbers(self.sampled.texts)])
        return numbers[numbers >= FIRST_WORD]

    def _reworded(self, rows: TokenRows, rng: np.random.Generator) -> TokenRows:
        # The model writes far fewer instructions than there are ways to combine its words. Some groups get other
        # words here and there: not sense, but every word must then pass through the code instead of being guessed.
        if rng.random() < REWORDED_SHARE:
            replaced = (rows >= FIRST_WORD) & (rng.random(rows.shape) < REWORDED_WORDS)
            rows[replaced] = rng.choice(self._words_in_use, int(replaced.sum()))
        return rows

    def _with_odd_words(self, rows: TokenRows, rng: np.random.Generator) -> TokenRows:
        # Some sentences get random words, so that words the corpus never uses can still be written back.
        for index in np.flatnonzero(rng.random(len(rows)) < ODD_WORD_SHARE):
            row = rows[index]
            places = rng.integers(max(1, int(np.argmax(row == END))), size=rng.integers(1, MOST_ODD_WORDS + 1))
            row[places] = rng.integers(FIRST_WORD, self.codec.tokenizer.get_vocab_size(), size=len(places))
        return rows

    def _grammar_group(self, frame: TaskFrame, rng: np.random.Generator) -> list[str]:
        texts: list[str] = []
        for _ in range(GROUP):  # more pairs than needed: those that are too long are dropped
            values = self.grammar.instance(frame, rng)
            texts += [self.grammar.form(frame, values, rng) for _ in range(2)]
        return texts

    def _fitting(self, texts: list[str], length: int) -> TokenRows:
        numbers = self.codec.numbers(texts)
        fits = [len(row) < length for row in numbers]
        pairs = [(texts[i], texts[i + 1]) for i in range(0, len(texts) - 1, 2) if fits[i] and fits[i + 1]]
        if length > LONG:  # most sentences are short: such a batch is for the others
            pairs.sort(key=lambda pair: -len(pair[0]) - len(pair[1]))
        flat = [text for pair in pairs[: GROUP // 2] for text in pair]
        return self.codec.rows(flat, length)
