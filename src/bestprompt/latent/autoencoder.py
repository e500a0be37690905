"""The text autoencoder users see: texts ↔ latent vectors X in [-1, 1]^D~ (paper, appendix "Text Autoencoder").

A text is cut into sentences. Only one of them, the *varied* sentence, is encoded and moves; the others are kept as they
are. A latent vector decodes to the varied sentence; the search stage puts it back between the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bestprompt.latent import frame
from bestprompt.latent.beam import beam
from bestprompt.latent.network import Network, Shape
from bestprompt.latent.refine import ROUNDS, refined
from bestprompt.latent.sentences import varied_sentence
from bestprompt.latent.tokens import Codec, TokenRows
from bestprompt.latent.weights_file import load_network
from bestprompt.latent.words import Words
from bestprompt.rng import stream
from bestprompt.types import FloatArray

WEIGHTS, WEIGHTS_NAME = Path(str(files("bestprompt.latent").joinpath("weights"))), "autoencoder.safetensors"
BATCH = 32  # rows of the compiled shape: one for all, because compiling another takes as long as many batches
BACKGROUND = 512  # sentences of each of the two sources
_ANY_TEXT = "Sort the words."
_PREPARED: set[Shape] = set()

Progress = Callable[[int, int], None]


@runtime_checkable
class TextAutoencoder(Protocol):
    """What the search stage needs of an autoencoder."""

    @property
    def latent_dim(self) -> int:
        """D~."""
        ...

    @property
    def max_tokens(self) -> int:
        """Longest text, in tokens, that one latent vector can hold."""
        ...

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """(n, D~) latent vectors in [-1, 1]."""
        ...

    def decode(self, X: FloatArray) -> list[str]:
        """One text per row of ``X`` (n, D~)."""
        ...

    def hypotheses(self, X: FloatArray) -> list[list[str]]:
        """Per row of ``X`` (n, D~) the distinct texts it may mean, likeliest first."""
        ...

    def background(self) -> FloatArray:
        """(m, D~) latent vectors of typical sentences, m = 0 if there are none at hand."""
        ...

    def fits(self, text: str) -> bool:
        """Whether one latent vector can hold ``text``."""
        ...

    def fine_tune(self, texts: Sequence[str], progress: Progress | None = None) -> TextAutoencoder:
        """A copy that gives every one of ``texts`` back exactly."""
        ...


@runtime_checkable
class KnowsWords(Protocol):
    """An autoencoder whose corpus also tells which words go together."""

    def words(self) -> Words:
        """What the corpus knows of single words."""
        ...


@dataclass(frozen=True)
class Autoencoder:
    """The pre-trained autoencoder that ships with the package, or a fine-tuned copy of it.

    Attributes:
        network: The weights.
        codec: The tokenizer.
        identity: Hash of the weights and of the texts it was tuned on.
        refines: Rounds in which ``encode`` improves codes that do not return their text (``refine.py``), each of some
            hundredths of a second per such text. With 0, what training looks at, the encoder is on its own.
    """

    network: Network
    codec: Codec
    identity: str
    refines: int = 0

    @classmethod
    def pretrained(cls, folder: Path | None = None) -> Autoencoder:
        """The shipped weights, or those of another folder with ``autoencoder.safetensors`` and ``tokenizer.json``."""
        return _load(folder if folder is not None else WEIGHTS)

    @property
    def latent_dim(self) -> int:
        """D~."""
        return frame.LATENT_DIM

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
        if self.refines and len(texts):
            back = self.decode(frame.to_latent(codes))
            wrong = np.array([i for i, text in enumerate(varied) if back[i] != text], dtype=np.int64)
            if len(wrong):
                codes[wrong] = refined(self.network, codes[wrong], rows[wrong], self.refines)
        return frame.to_latent(codes)

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

    def background(self) -> FloatArray:
        """(m, D~) latent vectors of sentences drawn from the training corpus, always the same ones."""
        from bestprompt.latent.pretrain.corpus import sentences, split_sampled  # these modules import this one
        from bestprompt.latent.pretrain.grammar import Grammar

        rng = stream(0, "background")
        sampled = split_sampled(WEIGHTS / "sampled.txt")[0]
        some = [sampled[int(i)] for i in rng.choice(len(sampled), BACKGROUND, replace=False)]
        drawn = [*sentences(Grammar.bundled(), BACKGROUND, rng), *some]
        return replace(self, refines=0).encode([text for text in dict.fromkeys(drawn) if self.fits(text)])

    def prepare(self) -> None:
        """Compile what the search stage will run, unless this process has done so."""
        if self.network.shape in _PREPARED:
            return
        _PREPARED.add(self.network.shape)
        anywhere = np.ones((BATCH, self.network.shape.code))
        beam(self.network, jnp.asarray(anywhere, jnp.float32))
        refined(self.network, anywhere[:1], self.codec.rows([_ANY_TEXT], self.network.shape.length), rounds=1)

    def words(self) -> Words:
        """What the corpus of the shipped weights knows of single words; fine-tuning does not change it."""
        shipped = Autoencoder.pretrained()
        return Words.of(shipped.network, shipped.codec, WEIGHTS)

    def _texts(self, tokens: TokenRows) -> list[str]:
        texts = self.codec.texts(tokens)
        sizes = [len(numbers) for numbers in self.codec.numbers(texts)]
        return [text if size <= self.max_tokens else "" for text, size in zip(texts, sizes, strict=True)]

    def _codes(self, X: FloatArray) -> NDArray[np.float32]:
        return frame.to_code(np.atleast_2d(X), self.network.shape.code).astype(np.float32)

    def fine_tune(self, texts: Sequence[str], progress: Progress | None = None) -> Autoencoder:
        """A copy that gives every one of ``texts`` back exactly; see ``finetune.py``."""
        from bestprompt.latent.finetune import fine_tune  # the two modules know each other; this one comes first

        return fine_tune(self, texts, progress)


@lru_cache(maxsize=2)
def _load(folder: Path) -> Autoencoder:
    weights = folder / WEIGHTS_NAME
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    return Autoencoder(load_network(weights), Codec.load(folder / "tokenizer.json"), digest, refines=ROUNDS)


def _parts(rows: NDArray[Any]) -> list[NDArray[Any]]:
    padded = np.concatenate([rows, np.repeat(rows[:1], -len(rows) % BATCH, axis=0)])
    return [padded[i : i + BATCH] for i in range(0, len(padded), BATCH)]


def _joined(parts: Sequence[jax.Array], n: int) -> FloatArray:
    return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts] or [np.zeros((0, 1))])[:n]


@eqx.filter_jit
def _encode(network: Network, rows: jax.Array) -> jax.Array:
    return network.encode(rows)


@eqx.filter_jit
def _generate(network: Network, codes: jax.Array) -> tuple[jax.Array, jax.Array]:
    return network.generate(codes)
