"""The two directions of the shipped autoencoder for whatever weights it has: sentences → latent vectors → sentences.

A text is cut into sentences. Only one of them, the *varied* sentence, is encoded and moves; the others are kept as they
are. A latent vector decodes to the varied sentence; the search stage puts it back between the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bestprompt.latent import box
from bestprompt.latent.beam import beam
from bestprompt.latent.greedy import greedy
from bestprompt.latent.lexicon import Lexicon
from bestprompt.latent.network import NetworkSizes, SentenceNetwork
from bestprompt.latent.polish import polished
from bestprompt.latent.sentences import encoded_part
from bestprompt.latent.speller import Speller
from bestprompt.latent.tokens import Codec
from bestprompt.types import FloatArray

BATCH = 32  # rows of the compiled shape: one for all, because compiling another takes as long as many batches
_ANY_TEXT = "Sort the words."
_PREPARED: set[NetworkSizes] = set()


@dataclass(frozen=True)
class SentenceCoder:
    """Encoder and decoder with their weights.

    Attributes:
        network: The weights.
        codec: The tokenizer.
        identity: Hash of the weights and of the texts they were tuned on.
        polishing: Rounds in which ``encode`` improves codes that do not return their text (``polish.py``), each of some
            hundredths of a second per such text. With 0, what training looks at, the encoder is on its own.
        lexicon: The words that decodes consist of; without one, which training is, any pieces may be joined.
    """

    network: SentenceNetwork
    codec: Codec
    identity: str
    polishing: int = 0
    lexicon: Lexicon | None = None

    @property
    def latent_dim(self) -> int:
        """D~."""
        return box.LATENT_DIM

    @property
    def max_tokens(self) -> int:
        """Longest text, in tokens, that one latent vector can hold."""
        return self.network.shape.length - 1

    @cached_property
    def speller(self) -> Speller:
        """How the words of the lexicon are written."""
        if self.lexicon is None:
            return Speller.free(self.network.shape.vocabulary)
        return _speller(self.lexicon, self.codec)

    def with_words_of(self, texts: Sequence[str]) -> Self:
        """A copy that may write every word of ``texts``, and thereby the texts as they are."""
        if self.lexicon is None or not texts:
            return self
        wider = self.lexicon.with_words_of(texts)
        spelled = _speller(wider, self.codec).spells(jnp.asarray(self.codec.rows(texts, self.network.shape.length)))
        # Where the tokenizer sees other words than we do, the text is one word.
        whole = frozenset(f" {text}" for text, fine in zip(texts, spelled, strict=True) if not fine)
        return replace(self, lexicon=replace(wider, chunks=wider.chunks | whole))

    def fits(self, text: str) -> bool:
        """Whether one latent vector can hold ``text``."""
        return 0 < len(self.codec.numbers([text])[0]) <= self.max_tokens

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """(n, D~) latent vectors of the texts' varied sentences; the entries are in [-1, 1]."""
        varied = [encoded_part(text, self.fits) for text in texts]
        rows = self.codec.rows(varied, self.network.shape.length)
        codes = _joined([_encode(self.network, jnp.asarray(part)) for part in _parts(rows)], len(texts))
        if self.polishing and len(texts):
            back = self.decode(box.to_latent(codes))
            wrong = np.array([i for i, text in enumerate(varied) if back[i] != text], dtype=np.int64)
            if len(wrong):
                codes[wrong] = polished(self.network, self.speller, codes[wrong], rows[wrong], self.polishing)
        return box.to_latent(codes)

    def decode(self, X: FloatArray) -> list[str]:
        """One sentence per row of ``X`` (n, D~), by greedy decoding: a function of ``X`` alone.

        It can be encoded again: where the decoder finds no end, it is cut where there is no room for a further word.
        """
        codes = self._codes(X)
        tokens = [np.asarray(greedy(self.network, self.speller, jnp.asarray(part))) for part in _parts(codes)]
        texts = self.codec.texts(np.concatenate(tokens or [np.zeros((0, 1), np.int32)])[: len(codes)])
        return [self._fitted(text) for text in texts]

    def hypotheses(self, X: FloatArray) -> list[list[str]]:
        """Per row of ``X`` (n, D~) the distinct sentences of a beam search, likeliest first."""
        codes = self._codes(X)
        found = [np.asarray(beam(self.network, self.speller, jnp.asarray(part))[0]) for part in _parts(codes)]
        tokens = np.concatenate(found or [np.zeros((0, 1, 1), np.int32)])[: len(codes)]
        return [list(dict.fromkeys(filter(self.fits, self.codec.texts(each)))) for each in tokens]

    def prepare(self) -> None:
        """Compile what the search stage will run, unless this process has done so."""
        if self.network.shape in _PREPARED:
            return
        _PREPARED.add(self.network.shape)
        anywhere = np.ones((BATCH, self.network.shape.code))
        beam(self.network, self.speller, jnp.asarray(anywhere, jnp.float32))
        row = self.codec.rows([_ANY_TEXT], self.network.shape.length)
        polished(self.network, self.speller, anywhere[:1], row, rounds=1)

    def _fitted(self, text: str) -> str:
        # Pieces may spell a text in more tokens than the tokenizer does, hardly ever in fewer.
        while text and not self.fits(text):
            text = " ".join(text.split()[:-1])
        return text

    def _codes(self, X: FloatArray) -> NDArray[np.float32]:
        return box.to_code(np.atleast_2d(X), self.network.shape.code).astype(np.float32)


def _parts(rows: NDArray[Any]) -> list[NDArray[Any]]:
    padded = np.concatenate([rows, np.repeat(rows[:1], -len(rows) % BATCH, axis=0)])
    return [padded[i : i + BATCH] for i in range(0, len(padded), BATCH)]


def _joined(parts: Sequence[jax.Array], n: int) -> FloatArray:
    return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts] or [np.zeros((0, 1))])[:n]


@eqx.filter_jit
def _encode(network: SentenceNetwork, rows: jax.Array) -> jax.Array:
    return network.encode(rows)


@lru_cache(maxsize=4)
def _speller(lexicon: Lexicon, codec: Codec) -> Speller:
    return Speller.of(lexicon, codec)
