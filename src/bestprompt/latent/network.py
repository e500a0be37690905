"""The neural network of the text autoencoder: tokens → code → tokens.

Notation (paper symbol → name, shape):
    p        a prompt                            → ``tokens``  (n, T) int, 0 where padded
    Enc      tokens → code                       → ``SentenceNetwork.encode``
    X        latent vector in [-1, 1]^D~         → made from the code in ``box.py``
    s        code, an own addition: the directions of X the decoder listens to → ``code`` (n, d), rows of length √d
    Dec      code → tokens                       → by ``SentenceNetwork.advance``, see ``greedy.py`` and ``beam.py``

Encoder: transformer, attention pooling into few slots, a linear map, and a projection onto the sphere of radius √d.
Decoder: transformer over a prefix computed from the code, followed by the tokens written so far.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import equinox as eqx
import jax
import jax.numpy as jnp

PAD, BEGIN, END = 0, 1, 2
FIRST_WORD = 260  # tokens below are marks and single bytes
REPETITION_PENALTY = 4.0  # in nats, on writing a word twice in a row; a text that does so can still be learned
_MASKED = -1e9

Caches = list[tuple[jax.Array, jax.Array]]


@dataclass(frozen=True)
class NetworkSizes:
    """Sizes of the network; saved beside the weights."""

    vocabulary: int = 8192
    width: int = 192
    heads: int = 3
    encoder_layers: int = 2
    decoder_layers: int = 2
    slots: int = 3
    code: int = 128
    prefix: int = 3
    length: int = 32

    def to_dict(self) -> dict[str, int]:
        """Plain numbers, for the metadata of a weights file."""
        return asdict(self)


def rms_norm(x: jax.Array) -> jax.Array:
    """Scale the last axis to root mean square one."""
    return jnp.asarray(x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6))


def product(x: jax.Array, weights: jax.Array) -> jax.Array:
    """(…, a) × (a, b) → (…, b); weights in bfloat16 are multiplied in that precision and added up in single."""
    return _half_product(x, weights) if weights.dtype == jnp.bfloat16 else x @ weights


@jax.custom_vjp
def _half_product(x: jax.Array, weights: jax.Array) -> jax.Array:
    return jnp.dot(x.astype(jnp.bfloat16), weights, preferred_element_type=jnp.float32)


def _half_forward(x: jax.Array, weights: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return _half_product(x, weights), (x.astype(jnp.bfloat16), weights)


def _half_backward(saved: tuple[jax.Array, jax.Array], upper: jax.Array) -> tuple[jax.Array, jax.Array]:
    # Left to itself, JAX would multiply the single-precision gradient in single precision, at less than half the speed.
    x, weights = saved
    rounded = upper.astype(jnp.bfloat16)
    by_x = jnp.dot(rounded, weights.T, preferred_element_type=jnp.float32)
    flat, flat_upper = x.reshape(-1, x.shape[-1]), rounded.reshape(-1, rounded.shape[-1])
    by_weights = jnp.dot(flat.T, flat_upper, preferred_element_type=jnp.float32)
    return by_x, by_weights.astype(weights.dtype)


_half_product.defvjp(_half_forward, _half_backward)


def _matrix(key: jax.Array, rows: int, columns: int, gain: float = 1.0) -> jax.Array:
    return jnp.asarray(jax.random.normal(key, (rows, columns)) * (gain / rows**0.5))


class Block(eqx.Module):
    """One pre-normalised transformer layer."""

    qkv: jax.Array
    mix: jax.Array
    up: jax.Array
    down: jax.Array
    heads: int = eqx.field(static=True)

    def __init__(self, width: int, heads: int, key: jax.Array) -> None:
        keys = jax.random.split(key, 4)
        self.qkv = _matrix(keys[0], width, 3 * width)
        self.mix = _matrix(keys[1], width, width, 0.5)
        self.up = _matrix(keys[2], width, 3 * width)
        self.down = _matrix(keys[3], 3 * width, width, 0.5)
        self.heads = heads

    def keys_values(self, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """(n, T, w) → queries, keys, values, each (n, heads, T, w / heads)."""
        query, key, value = (
            by_head(part, self.heads) for part in jnp.split(product(rms_norm(x), self.qkv), 3, axis=-1)
        )
        return query, key, value

    def finish(self, x: jax.Array, query: jax.Array, key: jax.Array, value: jax.Array, visible: jax.Array) -> jax.Array:
        """Attention of Q queries to K keys and values where ``visible`` (n or 1, Q, K), then the MLP."""
        x = x + product(attention(query, key, value, visible), self.mix)
        return x + product(jax.nn.gelu(product(rms_norm(x), self.up)), self.down)

    def __call__(self, x: jax.Array, visible: jax.Array) -> jax.Array:
        """(n, T, w) → (n, T, w)."""
        return self.finish(x, *self.keys_values(x), visible)


def by_head(x: jax.Array, heads: int) -> jax.Array:
    """(n, T, w) → (n, heads, T, w / heads)."""
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def attention(query: jax.Array, key: jax.Array, value: jax.Array, visible: jax.Array) -> jax.Array:
    """Multi-head attention, (n, heads, Q, c) × (n, heads, K, c) → (n, Q, heads · c)."""
    logits = jnp.einsum("nhqc,nhkc->nhqk", query, key) * (query.shape[-1] ** -0.5)
    weights = jax.nn.softmax(jnp.where(visible[:, None], logits, _MASKED), axis=-1)
    mixed = jnp.einsum("nhqk,nhkc->nhqc", weights, value)
    return mixed.transpose(0, 2, 1, 3).reshape(len(query), query.shape[2], -1)


class SentenceNetwork(eqx.Module):
    """Encoder and decoder with one shared, tied table of token embeddings."""

    embedding: jax.Array
    positions: jax.Array
    encoder: list[Block]
    queries: jax.Array
    to_code: jax.Array
    from_code: jax.Array
    prefix_bias: jax.Array
    everywhere: jax.Array
    decoder: list[Block]
    readout: jax.Array
    output_bias: jax.Array
    shape: NetworkSizes = eqx.field(static=True)

    def __init__(self, shape: NetworkSizes, key: jax.Array, embedding: jax.Array | None = None) -> None:
        keys = iter(jax.random.split(key, 8 + shape.encoder_layers + shape.decoder_layers))
        w = shape.width
        if embedding is None:
            embedding = jax.random.normal(next(keys), (shape.vocabulary, w)) * 0.05
        self.embedding = embedding
        self.positions = jax.random.normal(next(keys), (2, shape.length + 1, w)) * 0.02
        self.queries = jax.random.normal(next(keys), (shape.slots, w))
        self.to_code = _matrix(next(keys), shape.slots * w, shape.code)
        self.from_code = _matrix(next(keys), shape.code, shape.prefix * w)
        self.prefix_bias = jax.random.normal(next(keys), (shape.prefix, w)) * 0.02
        self.everywhere = _matrix(next(keys), shape.code, w, 0.1)
        # Without a turn between input and output embeddings a shallow decoder repeats the word it has just read.
        self.readout = jnp.eye(w)
        self.output_bias = jnp.zeros(shape.vocabulary)
        self.encoder = [Block(w, shape.heads, next(keys)) for _ in range(shape.encoder_layers)]
        self.decoder = [Block(w, shape.heads, next(keys)) for _ in range(shape.decoder_layers)]
        self.shape = shape

    def encode(self, tokens: jax.Array) -> jax.Array:
        """(n, T) → (n, d) codes with root mean square one."""
        real = tokens != PAD
        x = self.embedding[tokens] * 16.0 + self.positions[0, : tokens.shape[1]]
        for block in self.encoder:
            x = block(x, real[:, None, :])
        queries = jnp.broadcast_to(self.queries, (len(tokens), *self.queries.shape))
        asked, keys, values = (by_head(part, self.shape.heads) for part in (queries, rms_norm(x), x))
        pooled = attention(asked, keys, values, real[:, None, :])
        return rms_norm(product(rms_norm(pooled.reshape(len(tokens), -1)), self.to_code))

    def _prefix(self, code: jax.Array) -> jax.Array:
        return product(code, self.from_code).reshape(len(code), self.shape.prefix, -1) + self.prefix_bias

    def _logits(self, x: jax.Array, among: jax.Array | None = None) -> jax.Array:
        if among is None:
            return product(product(rms_norm(x), self.readout), self.embedding.T) + self.output_bias
        return (
            product(product(rms_norm(x), self.readout), self.embedding[among].astype(self.readout.dtype).T)
            + self.output_bias[among]
        )

    def _token_input(self, tokens: jax.Array, positions: jax.Array, code: jax.Array) -> jax.Array:
        return self.embedding[tokens] * 16.0 + positions + product(code, self.everywhere)[:, None, :]

    def logits(self, code: jax.Array, tokens: jax.Array, among: jax.Array | None = None) -> jax.Array:
        """Teacher forcing: (n, d), (n, T) inputs that start with BEGIN → (n, T, V) predictions of the next token.

        With ``among`` (A,) only these tokens compete, (n, T, A): most of the vocabulary is absent from a batch.
        """
        n_prefix, length = self.shape.prefix, tokens.shape[1]
        inputs = self._token_input(tokens, self.positions[1, :length], code)
        x = jnp.concatenate([self._prefix(code), inputs], axis=1)
        total = n_prefix + length
        visible = jnp.tril(jnp.ones((total, total), bool)).at[:, :n_prefix].set(True)[None]
        for block in self.decoder:
            x = block(x, visible)
        return self._logits(x[:, n_prefix:], among)

    def begin(self, code: jax.Array) -> Caches:
        """Keys and values of the prefix, per decoder layer, with room for the tokens.

        (n, heads, prefix + length, w / heads) each: a step of decoding then has nothing to rearrange.
        """
        n_prefix, length = self.shape.prefix, self.shape.length
        x, caches = self._prefix(code), []
        for block in self.decoder:
            query, key, value = block.keys_values(x)
            x = block.finish(x, query, key, value, jnp.ones((1, n_prefix, n_prefix), bool))
            room = jnp.zeros((*key.shape[:2], length, key.shape[3]))
            caches.append((jnp.concatenate([key, room], axis=2), jnp.concatenate([value, room], axis=2)))
        return caches

    def advance(self, code: jax.Array, last: jax.Array, at: jax.Array, caches: Caches) -> tuple[jax.Array, Caches]:
        """(n, V) log-probabilities of the token at place ``at`` after the tokens ``last`` (n,), and the caches grown.

        Writing a word twice in a row is made unlikely; padding and begin marks are never written.
        """
        n_prefix, length = self.shape.prefix, self.shape.length
        x = self._token_input(last[:, None], self.positions[1, at], code)
        visible = (jnp.arange(n_prefix + length) <= n_prefix + at)[None, None]
        grown = []
        for block, (keys, values) in zip(self.decoder, caches, strict=True):
            query, key, value = block.keys_values(x)
            keys = jax.lax.dynamic_update_slice(keys, key, (0, 0, n_prefix + at, 0))
            values = jax.lax.dynamic_update_slice(values, value, (0, 0, n_prefix + at, 0))
            x = block.finish(x, query, keys, values, visible)
            grown.append((keys, values))
        # Comparisons instead of scattered writes: they join the loop over the vocabulary that is there anyway.
        words = jnp.arange(self.shape.vocabulary)
        again = jnp.where((words == last[:, None]) & (words >= FIRST_WORD), REPETITION_PENALTY, 0.0)
        never = (words == PAD) | (words == BEGIN)
        return jax.nn.log_softmax(jnp.where(never, _MASKED, self._logits(x[:, 0]) - again)), grown
