"""Beam search: several sentences that one code may mean, the likeliest first.

Notation (paper symbol → name, shape):
    s       code of a moved point                  → ``code``    (n, d)
    y_1 …   hypotheses of Dec(s)                   → ``tokens``  (n, W, length)
    (1/|y|) log p(y | s)   rank of a hypothesis    → ``scores``  (n, W)
    q       state of spelling, see ``speller.py``  → ``spelled`` (n, W)

The paper's Dec is one sentence per point; greedy decoding (``greedy.py``) is that function. Where a
point lies close to its parent, Dec mostly returns the parent. The other hypotheses are what the point could mean
as well, so that one step rarely comes back empty-handed. They consist of attested words, too; p is not renormalised
over what may be spelled, or a word that nobody meant would be free once begun. Fixed shapes, no randomness, and the
result does not depend on the batch.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from bestprompt.latent.greedy import NEVER
from bestprompt.latent.network import BEGIN, END, PAD, Caches, SentenceNetwork
from bestprompt.latent.speller import Speller

WIDTH = 16

State = tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array, Caches]


@eqx.filter_jit
def beam(network: SentenceNetwork, speller: Speller, code: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(n, d) → (n, WIDTH, length) tokens and (n, WIDTH) mean log-probabilities, falling.

    A row that found no END in time, or that nothing could be spelled for, is all padding.
    """
    n, length = len(code), network.shape.length
    everyone = jnp.repeat(code, WIDTH, axis=0)
    rows = jnp.arange(n)[:, None]

    def unfinished(state: State) -> jax.Array:
        at, tokens, *_ = state
        ended = jnp.any(tokens == END, axis=-1)
        return (at < length) & ~jnp.all(ended)

    def step(state: State) -> State:
        at, tokens, total, size, spelled, caches = state
        last = jnp.where(at == 0, BEGIN, tokens[:, :, jnp.maximum(at - 1, 0)]).reshape(-1)
        done = jnp.any(tokens == END, axis=-1)
        chances, caches = network.advance(everyone, last, at, caches)
        chances = jnp.where(speller.allowed(spelled.reshape(-1)), chances, NEVER)
        gains, words = jax.lax.top_k(chances, WIDTH)
        gains, words = gains.reshape(n, WIDTH, WIDTH), words.reshape(n, WIDTH, WIDTH)
        # A finished hypothesis has one continuation, itself.
        only_first = jnp.where(jnp.arange(WIDTH) == 0, 0.0, NEVER)
        gains = jnp.where(done[..., None], only_first, gains)
        words = jnp.where(done[..., None], PAD, words)
        grown = (total[..., None] + gains).reshape(n, -1)
        sizes = jnp.repeat(size + ~done, WIDTH, axis=1)
        _, chosen = jax.lax.top_k(grown / sizes, WIDTH)
        origin = chosen // WIDTH
        word = words.reshape(n, -1)[rows, chosen]
        tokens = tokens[rows, origin].at[:, :, at].set(word)
        spelled = jnp.where(word <= END, spelled[rows, origin], speller.after(spelled[rows, origin], word))
        flat = (rows * WIDTH + origin).reshape(-1)
        caches = [(keys[flat], values[flat]) for keys, values in caches]
        return at + 1, tokens, grown[rows, chosen], sizes[rows, chosen], spelled, caches

    tokens = jnp.full((n, WIDTH, length), PAD)
    total = jnp.tile(jnp.where(jnp.arange(WIDTH) == 0, 0.0, NEVER), (n, 1))  # all hypotheses begin alike: keep one
    nothing = jnp.zeros((n, WIDTH), jnp.int32)
    state = (jnp.int32(0), tokens, total, nothing, nothing, network.begin(everyone))
    _, tokens, total, size, _, _ = jax.lax.while_loop(unfinished, step, state)
    fine = jnp.any(tokens == END, axis=-1) & (total > NEVER / 2)
    return jnp.where(fine[..., None], tokens, PAD), total / jnp.maximum(size, 1)
