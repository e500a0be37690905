"""The Llama-family transformer in JAX, one layer at a time, over a store of keys and values.

Notation:
    d       width of the residual stream            → ``TransformerSizes.width``
    H, K    query heads, key-value heads            → ``TransformerSizes.heads``, ``.kv_heads``;  G = H / K
    h       size of one head                        → ``TransformerSizes.head_size``
    V       vocabulary                              → ``TransformerSizes.vocabulary``
    M       tokens in a call
    S       rows of the store that the tokens of a call look back on

Activations are feature-major, (d, M), and matrices are used as GGUF stores them, (out, in), so a matrix product W x
needs no transposition; on CPU it reaches its full speed for M as small as 16, where the token-major order is at half.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bestprompt.lm.gguf_file import GgufFile

ARCHITECTURES = ("llama", "qwen2")
_MASKED = -1e30


class TransformerSizes(NamedTuple):
    """The sizes that fix a model's programs; see the notation block."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    epsilon: float
    rope_base: float


class Layer(NamedTuple):
    """Weights of one layer; query, key and value in one matrix, gate and up in another."""

    attention_norm: jax.Array  # (d,)
    qkv: jax.Array  # ((H + 2K)·h, d)
    qkv_bias: jax.Array  # ((H + 2K)·h,), zero where the architecture has none
    out: jax.Array  # (d, H·h)
    mlp_norm: jax.Array  # (d,)
    gate_up: jax.Array  # (2f, d)
    down: jax.Array  # (d, f)


class Weights(NamedTuple):
    """All weights, float32."""

    embedding: jax.Array  # (V, d)
    layers: tuple[Layer, ...]
    norm: jax.Array  # (d,)
    head: jax.Array  # (V, d)


class Store(NamedTuple):
    """Keys and values of one layer, one row per token: (rows, K·h) each."""

    keys: jax.Array
    values: jax.Array


class Call(NamedTuple):
    """Where the tokens of a call stand.

    Attributes:
        cos: (h/2, M) rotary cosines.
        sin: (h/2, M) rotary sines.
        slots: (M,) the store row each token's key and value are written to.
        table: (S,) the rows that the tokens look back on.
        seen: (M, S) which of them each token looks at.
    """

    cos: NDArray[np.float32]
    sin: NDArray[np.float32]
    slots: NDArray[np.int32]
    table: NDArray[np.int32]
    seen: NDArray[np.bool_]


def supports(file: GgufFile) -> bool:
    """Whether this module computes the file's model completely: a plain Llama or Qwen2, no experts, no rope scaling."""
    if file.architecture not in ARCHITECTURES:
        return False
    layer = {"attn_norm.weight", "ffn_norm.weight", "attn_output.weight", "ffn_gate.weight", "ffn_up.weight"}
    layer |= {"ffn_down.weight"} | {f"attn_{part}.{kind}" for part in "qkv" for kind in ("weight", "bias")}
    outer = {"token_embd.weight", "output_norm.weight", "output.weight"}
    known = all(name in outer or (name.startswith("blk.") and name.split(".", 2)[2] in layer) for name in file.tensors)
    return known and file.setting("rope.scaling.type", "none") == "none"


def load(file: GgufFile) -> tuple[TransformerSizes, Weights]:
    """Reads and dequantises a supported file."""
    heads = int(file.setting("attention.head_count"))
    width = int(file.setting("embedding_length"))
    embedding = file.tensor("token_embd.weight")
    shape = TransformerSizes(
        layers=int(file.setting("block_count")),
        width=width,
        heads=heads,
        kv_heads=int(file.setting("attention.head_count_kv", heads)),
        head_size=int(file.setting("attention.key_length", width // heads)),
        vocabulary=embedding.shape[0],
        epsilon=float(file.setting("attention.layer_norm_rms_epsilon")),
        rope_base=float(file.setting("rope.freq_base", 10_000.0)),
    )
    table = jnp.asarray(embedding)
    head = jnp.asarray(file.tensor("output.weight")) if "output.weight" in file.tensors else table
    layers = tuple(_layer(file, shape, index) for index in range(shape.layers))
    return shape, Weights(table, layers, jnp.asarray(file.tensor("output_norm.weight")), head)


def _layer(file: GgufFile, shape: TransformerSizes, index: int) -> Layer:
    def get(name: str) -> NDArray[np.float32]:
        return file.tensor(f"blk.{index}.{name}")

    def projection(part: str, kind: str, heads: int) -> NDArray[np.float32]:
        if kind == "bias" and f"blk.{index}.attn_{part}.bias" not in file.tensors:
            return np.zeros(heads * shape.head_size, np.float32)
        rows = get(f"attn_{part}.{kind}")
        return _split_halves(rows, heads) if part != "v" and file.architecture == "llama" else rows

    counts = {"q": shape.heads, "k": shape.kv_heads, "v": shape.kv_heads}
    return Layer(
        attention_norm=jnp.asarray(get("attn_norm.weight")),
        qkv=jnp.asarray(np.concatenate([projection(part, "weight", n) for part, n in counts.items()])),
        qkv_bias=jnp.asarray(np.concatenate([projection(part, "bias", n) for part, n in counts.items()])),
        out=jnp.asarray(get("attn_output.weight")),
        mlp_norm=jnp.asarray(get("ffn_norm.weight")),
        gate_up=jnp.asarray(np.concatenate([get("ffn_gate.weight"), get("ffn_up.weight")])),
        down=jnp.asarray(get("ffn_down.weight")),
    )


def _split_halves(rows: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Reorders each head from (pair, 2) to (2, pair): llama files rotate neighbours, this module rotates halves.

    Queries and keys are reordered alike, so their products are unchanged.
    """
    paired = rows.reshape(heads, -1, 2, *rows.shape[1:])
    return np.ascontiguousarray(paired.swapaxes(1, 2).reshape(rows.shape))


def rotary(shape: TransformerSizes, length: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(h/2, length) cosines and sines of position · base^(-2i/h)."""
    frequency = shape.rope_base ** (-np.arange(0, shape.head_size, 2) / shape.head_size)
    angle = frequency[:, None] * np.arange(length)[None, :]
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def empty_stores(shape: TransformerSizes, rows: int) -> list[Store]:
    """A zeroed store per layer."""
    size = (rows, shape.kv_heads * shape.head_size)
    return [Store(jnp.zeros(size, jnp.float32), jnp.zeros(size, jnp.float32)) for _ in range(shape.layers)]


def forward(
    shape: TransformerSizes, weights: Weights, stores: list[Store], tokens: NDArray[np.int32], call: Call
) -> jax.Array:
    """(d, M) final hidden states of ``tokens`` (M,), before the last norm; ``stores`` is updated in place.

    The layer is compiled once and called for each set of weights: no copy of stacked weights, and a compilation
    of less than a second.
    """
    x: jax.Array = _embed(weights.embedding, tokens)
    call = jax.device_put(call)  # once, not for each layer
    for index, layer in enumerate(weights.layers):
        x, stores[index] = _apply_layer(shape, layer, x, stores[index], call)
    return x


@jax.jit
def _embed(embedding: jax.Array, tokens: jax.Array) -> jax.Array:
    return jnp.take(embedding, tokens, axis=0).T


@partial(jax.jit, static_argnames="shape", donate_argnames=("x", "store"))
def _apply_layer(
    shape: TransformerSizes, layer: Layer, x: jax.Array, store: Store, call: Call
) -> tuple[jax.Array, Store]:
    """Attention, then the gated MLP: x ← x + O·attend(norm x);  x ← x + D·(silu(G·norm x) ⊙ U·norm x)."""
    heads, kv_heads, size = shape.heads, shape.kv_heads, shape.head_size
    m = x.shape[1]
    qkv = layer.qkv @ _norm(shape, x, layer.attention_norm) + layer.qkv_bias[:, None]
    q, k, v = jnp.split(qkv, [heads * size, (heads + kv_heads) * size])
    q = _rotate(q.reshape(heads, size, m), call)
    k = _rotate(k.reshape(kv_heads, size, m), call)
    store = Store(
        store.keys.at[call.slots].set(k.reshape(-1, m).T),
        store.values.at[call.slots].set(v.T),
    )
    x = x + layer.out @ _attend(shape, q, store, call)
    gate, up = jnp.split(layer.gate_up @ _norm(shape, x, layer.mlp_norm), 2)
    return x + layer.down @ (jax.nn.silu(gate) * up), store


def _attend(shape: TransformerSizes, q: jax.Array, store: Store, call: Call) -> jax.Array:
    """(H·h, M) softmax(qᵀk / √h) v over the rows each token sees; q is (H, h, M)."""
    kv_heads, size = shape.kv_heads, shape.head_size
    m, span = call.seen.shape
    keys = store.keys[call.table].reshape(span, kv_heads, size).transpose(1, 2, 0)  # (K, h, S)
    values = store.values[call.table].reshape(span, kv_heads, size).transpose(1, 0, 2)  # (K, S, h)
    q = q.reshape(kv_heads, -1, size, m).transpose(0, 1, 3, 2)  # (K, G, M, h)
    groups = q.shape[1]
    scores = (q.reshape(kv_heads, groups * m, size) @ keys) * size**-0.5
    scores = jnp.where(call.seen, scores.reshape(kv_heads, groups, m, span), _MASKED)
    share = jax.nn.softmax(scores, axis=-1).reshape(kv_heads, groups * m, span)
    mixed = (share @ values).reshape(kv_heads, groups, m, size)
    return mixed.transpose(0, 1, 3, 2).reshape(shape.heads * size, m)


def _norm(shape: TransformerSizes, x: jax.Array, scale: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=0, keepdims=True) + shape.epsilon) * scale[:, None]


def _rotate(x: jax.Array, call: Call) -> jax.Array:
    a, b = jnp.split(x, 2, axis=1)
    return jnp.concatenate([a * call.cos - b * call.sin, b * call.cos + a * call.sin], axis=1)


@partial(jax.jit, static_argnames="shape")
def log_probabilities(shape: TransformerSizes, weights: Weights, x: jax.Array, targets: jax.Array) -> jax.Array:
    """(M,) log-probability of each target token after its hidden state."""
    scores = weights.head @ _norm(shape, x, weights.norm)
    return scores[targets, jnp.arange(targets.shape[0])] - jax.nn.logsumexp(scores, axis=0)
