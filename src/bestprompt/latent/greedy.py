"""Greedy decoding, Dec of the paper: one text per code, of attested words.

Notation (paper symbol → name, shape):
    s        code of a point                                  → ``code``    (n, d)
    q, A(q)  state of spelling, pieces that may come next     → ``speller.py``
    Dec(s)   y_t = argmax over w in A(q_t) of log p(w | s, y_<t) → ``tokens``  (n, length)

That every decode consists of whole, attested words is a property of Dec itself, in both modes, not of a filter behind
it: the paper's autoencoder, a thousand times as large, spells well without. Own addition.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from bestprompt.latent.network import BEGIN, END, PAD, Caches, SentenceNetwork
from bestprompt.latent.speller import Speller

NEVER = -1e9

State = tuple[jax.Array, jax.Array, jax.Array, jax.Array, Caches]


@eqx.filter_jit
def greedy(network: SentenceNetwork, speller: Speller, code: jax.Array) -> jax.Array:
    """(n, d) → (n, length) tokens up to END; where none was found, as many whole words as there is room for."""
    n, length = len(code), network.shape.length

    def unfinished(state: State) -> jax.Array:
        at, tokens, _, _, _ = state
        return (at < length) & ~jnp.all(jnp.any(tokens == END, axis=1))

    def step(state: State) -> State:
        at, tokens, spelled, whole, caches = state
        last = jnp.where(at == 0, BEGIN, tokens[:, jnp.maximum(at - 1, 0)])
        done = jnp.any(tokens == END, axis=1)
        chances, caches = network.advance(code, last, at, caches)
        best = jnp.argmax(jnp.where(speller.allowed(spelled), chances, NEVER), axis=-1)
        whole = jnp.where(~done & speller.may_end(spelled), at, whole)
        spelled = jnp.where(done | (best == END), spelled, speller.after(spelled, best))
        return at + 1, tokens.at[:, at].set(jnp.where(done, PAD, best)), spelled, whole, caches

    nothing = jnp.zeros(n, jnp.int32)
    start = (jnp.int32(0), jnp.full((n, length), PAD), nothing, nothing, network.begin(code))
    _, tokens, _, whole, _ = jax.lax.while_loop(unfinished, step, start)
    return cut(tokens, whole)


def cut(tokens: jax.Array, whole: jax.Array) -> jax.Array:
    """(n, length) rows without END end after the last whole word, at place ``whole`` (n,)."""
    places = jnp.arange(tokens.shape[-1])
    shortened = jnp.where(places < whole[..., None], tokens, jnp.where(places == whole[..., None], END, PAD))
    return jnp.where(jnp.any(tokens == END, axis=-1, keepdims=True), tokens, shortened)
