"""Beam search: several sentences that one code may mean, the likeliest first.

Notation (paper symbol → name, shape):
    s       code of a moved point                  → ``code``    (n, d)
    y_1 …   hypotheses of Dec(s)                   → ``tokens``  (n, W, length)
    (1/|y|) log p(y | s)   rank of a hypothesis    → ``scores``  (n, W)

The paper's Dec is one sentence per point; greedy decoding (``SentenceNetwork.generate``) is that function. Where a
point lies close to its parent, Dec mostly returns the parent. The other hypotheses are what the point could mean
as well, so that one step rarely comes back empty-handed. Fixed shapes, no randomness, and the
result does not depend on the batch.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from bestprompt.latent.network import BEGIN, END, PAD, Caches, SentenceNetwork

WIDTH = 16
_NEVER = -1e9

State = tuple[jax.Array, jax.Array, jax.Array, jax.Array, Caches]


@eqx.filter_jit
def beam(network: SentenceNetwork, code: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(n, d) → (n, WIDTH, length) tokens and (n, WIDTH) mean log-probabilities, falling."""
    n, length = len(code), network.shape.length
    everyone = jnp.repeat(code, WIDTH, axis=0)
    rows = jnp.arange(n)[:, None]

    def unfinished(state: State) -> jax.Array:
        at, tokens, _, _, _ = state
        ended = jnp.any(tokens == END, axis=-1)
        return (at < length) & ~jnp.all(ended)

    def step(state: State) -> State:
        at, tokens, total, size, caches = state
        last = jnp.where(at == 0, BEGIN, tokens[:, :, jnp.maximum(at - 1, 0)]).reshape(-1)
        done = jnp.any(tokens == END, axis=-1)
        chances, caches = network.advance(everyone, last, at, caches)
        gains, words = jax.lax.top_k(chances, WIDTH)
        gains, words = gains.reshape(n, WIDTH, WIDTH), words.reshape(n, WIDTH, WIDTH)
        # A finished hypothesis has one continuation, itself.
        only_first = jnp.where(jnp.arange(WIDTH) == 0, 0.0, _NEVER)
        gains = jnp.where(done[..., None], only_first, gains)
        words = jnp.where(done[..., None], PAD, words)
        grown = (total[..., None] + gains).reshape(n, -1)
        sizes = jnp.repeat(size + ~done, WIDTH, axis=1)
        _, chosen = jax.lax.top_k(grown / sizes, WIDTH)
        origin = chosen // WIDTH
        tokens = tokens[rows, origin].at[:, :, at].set(words.reshape(n, -1)[rows, chosen])
        flat = (rows * WIDTH + origin).reshape(-1)
        caches = [(keys[flat], values[flat]) for keys, values in caches]
        return at + 1, tokens, grown[rows, chosen], sizes[rows, chosen], caches

    tokens = jnp.full((n, WIDTH, length), PAD)
    total = jnp.tile(jnp.where(jnp.arange(WIDTH) == 0, 0.0, _NEVER), (n, 1))  # all hypotheses begin alike: keep one
    state = (jnp.int32(0), tokens, total, jnp.zeros((n, WIDTH), jnp.int32), network.begin(everyone))
    _, tokens, total, size, _ = jax.lax.while_loop(unfinished, step, state)
    return tokens, total / jnp.maximum(size, 1)
