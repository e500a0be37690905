"""Which pieces may be written next, so that a text consists of attested words: fixed arrays for compiled decoding.

Notation (symbol → name, shape):
    q        state: what has been written of the present word           → ``state``  (n,)
    A(q)     pieces that may come next, END among them where a text may end → ``Speller.allowed`` (n, V)
    δ(q, w)  state after piece w in A(q)                                → ``Speller.after``   (n,)

δ inside a word is a sorted list of edges; where a word may end, a new one may begin, and what its first piece leads to
is one row per kind of ending. A(q) is a row of bits. ``automaton.py`` has the states.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from tokenizers import Tokenizer, pre_tokenizers

from bestprompt.latent.automaton import Automaton, Entries, Follow, Pieces, automaton
from bestprompt.latent.lexicon import CLOSING, CLOSINGS, LONE_MARKS, OPENINGS, Lexicon, capitalized
from bestprompt.latent.network import END, PAD
from bestprompt.latent.tokens import Codec

_BITS = 32
_ROOM = 1024  # array sizes are multiples of it, with as much to spare: the user's words must not change a shape
_WORD = Follow.CHUNK | Follow.CLOSING


class Speller(eqx.Module):
    """The arrays of one automaton.

    Attributes:
        bits: (S, V / 32) A(q).
        edges: (E,) sorted numbers q · V + w, the largest number of the type where unused.
        targets: (E,) δ(q, w) of each edge.
        kinds: (S,) the row of ``begin`` that holds at q.
        begin: (K, V) δ(q, w) where w begins a new word.
    """

    bits: jax.Array
    edges: jax.Array
    targets: jax.Array
    kinds: jax.Array
    begin: jax.Array

    @property
    def vocabulary(self) -> int:
        """V."""
        return int(self.begin.shape[1])

    def allowed(self, state: jax.Array) -> jax.Array:
        """(n,) → (n, V) whether each piece may come next."""
        words = self.bits[state][..., None] >> jnp.arange(_BITS, dtype=jnp.uint32)
        return (words & 1).reshape(*state.shape, -1)[..., : self.vocabulary] != 0

    def after(self, state: jax.Array, piece: jax.Array) -> jax.Array:
        """(n,), (n,) → (n,); anything where the piece is not allowed."""
        key = state * self.vocabulary + piece
        at = jnp.minimum(jnp.searchsorted(self.edges, key), len(self.edges) - 1)
        return jnp.where(self.edges[at] == key, self.targets[at], self.begin[self.kinds[state], piece])

    def may_end(self, state: jax.Array) -> jax.Array:
        """(n,) whether the text may end here."""
        return (self.bits[state, END // _BITS] >> (END % _BITS)) & 1 != 0

    def along(self, rows: jax.Array) -> jax.Array:
        """(n, T) token rows → (n, T) the state before each token; anything after END and what cannot be spelled."""

        def step(state: jax.Array, piece: jax.Array) -> tuple[jax.Array, jax.Array]:
            return self.after(state, piece), state

        _, states = jax.lax.scan(step, jnp.zeros(len(rows), jnp.int32), rows.T)
        return jnp.asarray(states.T)

    def spells(self, rows: jax.Array) -> jax.Array:
        """(n, T) → (n,) whether every token up to END is allowed where it stands."""
        fine = jnp.take_along_axis(self.allowed(self.along(rows)), rows[..., None], axis=-1)[..., 0]
        return jnp.all(fine | (rows == PAD), axis=1)

    @classmethod
    def free(cls, vocabulary: int) -> Speller:
        """One that allows every piece everywhere."""
        row = np.full((1, -(-vocabulary // _BITS)), np.iinfo(np.uint32).max, np.uint32)
        nothing = np.zeros(1, np.int32)
        return cls(*map(jnp.asarray, (row, nothing - 1, nothing, nothing, np.zeros((1, vocabulary), np.int32))))

    @classmethod
    def of(cls, lexicon: Lexicon, codec: Codec) -> Speller:
        """The spelling of ``lexicon`` in the pieces of ``codec``."""
        return _arrays(automaton(_entries(lexicon, codec)), codec.tokenizer.get_vocab_size())


@lru_cache(maxsize=2)
def _bare(codec: Codec) -> tuple[Tokenizer, dict[str, Pieces]]:
    """The tokenizer without its own idea of what stands before a text, and what it was asked so far."""
    bare = Tokenizer.from_str(codec.tokenizer.to_str())
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return bare, {}


def _entries(lexicon: Lexicon, codec: Codec) -> Entries:
    (bare, known), entries = _bare(codec), Entries()

    def add(what: Follow, texts: Iterable[str], follow: Follow) -> None:
        wanted = list(texts)
        fresh = [text for text in wanted if text not in known]
        known.update(zip(fresh, (encoding.ids for encoding in bare.encode_batch(fresh)), strict=True))
        for text in wanted:
            entries.add(what, known[text], follow)

    words = lexicon.words | {capitalized(word) for word in lexicon.words}
    whole = {chunk: Follow.CHUNK if chunk.endswith(tuple(CLOSING)) else _WORD for chunk in lexicon.chunks}
    add(Follow.CHUNK, (f" {word}" for word in words), _WORD)
    add(Follow.CHUNK, (f" {mark}" for mark in OPENINGS), Follow.GLUED)
    add(Follow.CHUNK, (f" {mark}" for mark in LONE_MARKS), Follow.CHUNK)
    add(Follow.GLUED, words, _WORD)
    add(Follow.CLOSING, CLOSINGS, Follow.CHUNK)
    for follow in (Follow.CHUNK, _WORD):
        add(Follow.CHUNK, (chunk for chunk in whole if whole[chunk] == follow), follow)
    for what, before in ((Follow.CHUNK, " "), (Follow.GLUED, ""), (Follow.RUNNING, "")):
        add(what, (before + character for character in lexicon.running), _WORD | Follow.RUNNING)
    return entries


def _arrays(found: Automaton, vocabulary: int) -> Speller:
    kinds = {what: number for number, what in enumerate(found.begin)}
    begin = np.zeros((len(Follow) ** 2, vocabulary), np.int32)
    opens = np.zeros((len(begin), vocabulary), bool)
    for what, row in found.begin.items():
        begin[kinds[what], list(row)] = list(row.values())
        opens[kinds[what], [*row, *([END] if Follow.CHUNK in what else [])]] = True
    states = _roomy(len(found.edges))
    kind = np.zeros(states, np.int32)
    kind[: len(found.follow)] = [kinds[what] for what in found.follow]
    width = -(-vocabulary // _BITS)
    packed = np.packbits(opens, axis=1, bitorder="little")
    bits = np.zeros((states, 4 * width), np.uint8)
    bits[: len(found.edges), : packed.shape[1]] = packed[kind[: len(found.edges)]]
    source = np.repeat(np.arange(len(found.edges)), [len(edges) for edges in found.edges])
    pieces = np.array([piece for edges in found.edges for piece in edges], np.int64)
    np.bitwise_or.at(bits, (source, pieces // 8), (1 << (pieces % 8)).astype(np.uint8))
    keys = source * vocabulary + pieces
    order = np.argsort(keys)
    largest = np.iinfo(np.int32).max
    assert keys.max(initial=0) < largest, "too many states for 32 bits"
    edges = np.full(_roomy(len(keys)), largest, np.int32)
    edges[: len(keys)] = keys[order]
    targets = np.zeros(len(edges), np.int32)
    targets[: len(keys)] = np.array([after for row in found.edges for after in row.values()], np.int32)[order]
    return Speller(*map(jnp.asarray, (bits.view(np.uint32), edges, targets, kind, begin)))


def _roomy(n: int) -> int:
    return (n // _ROOM + 2) * _ROOM
