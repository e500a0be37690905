"""Texts ↔ rows of token numbers: byte-level BPE, mostly whole words, any byte representable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from bestprompt.latent.network import BEGIN, END, PAD

TokenRows = NDArray[np.int32]
_SPECIAL = ["<pad>", "<begin>", "<end>"]


def train_tokenizer(sentences: Iterable[str], vocabulary: int) -> Tokenizer:
    """Byte-level BPE with ``vocabulary`` entries."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=_SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences, trainer)
    return tokenizer


class Codec:
    """Encodes texts to fixed-width rows and back."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    @classmethod
    def load(cls, path: Path) -> Codec:
        """Read ``tokenizer.json``."""
        return cls(Tokenizer.from_file(str(path)))

    def numbers(self, texts: Sequence[str]) -> list[list[int]]:
        """Token numbers of each text, without end mark."""
        return [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]

    def rows(self, texts: Sequence[str], length: int) -> TokenRows:
        """(n, length) token numbers, each text followed by END and padding.

        Raises:
            ValueError: A text does not fit.
        """
        table = np.full((len(texts), length), PAD, np.int32)
        for row, numbers in zip(table, self.numbers(texts), strict=True):
            if len(numbers) >= length:
                raise ValueError(f"{len(numbers)} tokens do not fit into {length - 1}")
            row[: len(numbers)] = numbers
            row[len(numbers)] = END
        return table

    def texts(self, rows: TokenRows) -> list[str]:
        """Texts of (n, length) token numbers, each up to its END."""
        kept = [[int(t) for t in row if t not in (PAD, BEGIN, END)] for row in rows]
        return [text.strip() for text in self.tokenizer.decode_batch(kept)]
