"""The two directions of the shipped autoencoder for whatever weights it has: sentences → latent vectors → sentences.

A text is cut into sentences. Only one of them, the *varied* sentence, is encoded and moves; the others are kept as they
are. A latent vector decodes to the varied sentence; the search stage puts it back between the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bestprompt.latent import box
from bestprompt.latent.beam import beam
from bestprompt.latent.network import NetworkSizes, SentenceNetwork
from bestprompt.latent.polish import polished
from bestprompt.latent.sentences import varied_sentence
from bestprompt.latent.tokens import Codec, TokenRows
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
    """

    network: SentenceNetwork
    codec: Codec
    identity: str
    polishing: int = 0

    @property
    def latent_dim(self) -> int:
        """D~."""
        return box.LATENT_DIM

    @property
    def max_tokens(self) -> int:
        """Longest text, in tokens, that one latent vector can hold."""
        return self.network.shape.length - 1

    def fits(self, text: str) -> bool:
        """Whether one latent vector can hold ``text``."""
        return 0 < len(self.codec.numbers([text])[0]) <= self.max_tokens

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """(n, D~) latent vectors of the texts' varied sentences; the entries are in [-1, 1]."""
        varied = [varied_sentence(text, self.fits)[1] for text in texts]
        rows = self.codec.rows(varied, self.network.shape.length)
        codes = _joined([_encode(self.network, jnp.asarray(part)) for part in _parts(rows)], len(texts))
        if self.polishing and len(texts):
            back = self.decode(box.to_latent(codes))
            wrong = np.array([i for i, text in enumerate(varied) if back[i] != text], dtype=np.int64)
            if len(wrong):
                codes[wrong] = polished(self.network, codes[wrong], rows[wrong], self.polishing)
        return box.to_latent(codes)

    def decode(self, X: FloatArray) -> list[str]:
        """One sentence per row of ``X`` (n, D~), by greedy decoding: a function of ``X`` alone.

        It is empty where the decoder finds no end, because what no vector can hold cannot be encoded again.
        """
        codes = self._codes(X)
        tokens = [np.asarray(_generate(self.network, jnp.asarray(part))[0]) for part in _parts(codes)]
        return self._texts(np.concatenate(tokens or [np.zeros((0, 1), np.int32)])[: len(codes)])

    def hypotheses(self, X: FloatArray) -> list[list[str]]:
        """Per row of ``X`` (n, D~) the distinct sentences of a beam search, likeliest first."""
        codes = self._codes(X)
        found = [np.asarray(beam(self.network, jnp.asarray(part))[0]) for part in _parts(codes)]
        tokens = np.concatenate(found or [np.zeros((0, 1, 1), np.int32)])[: len(codes)]
        return [list(dict.fromkeys(text for text in self._texts(each) if text)) for each in tokens]

    def prepare(self) -> None:
        """Compile what the search stage will run, unless this process has done so."""
        if self.network.shape in _PREPARED:
            return
        _PREPARED.add(self.network.shape)
        anywhere = np.ones((BATCH, self.network.shape.code))
        beam(self.network, jnp.asarray(anywhere, jnp.float32))
        polished(self.network, anywhere[:1], self.codec.rows([_ANY_TEXT], self.network.shape.length), rounds=1)

    def _texts(self, tokens: TokenRows) -> list[str]:
        texts = self.codec.texts(tokens)
        sizes = [len(numbers) for numbers in self.codec.numbers(texts)]
        return [text if size <= self.max_tokens else "" for text, size in zip(texts, sizes, strict=True)]

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


@eqx.filter_jit
def _generate(network: SentenceNetwork, codes: jax.Array) -> tuple[jax.Array, jax.Array]:
    return network.generate(codes)
