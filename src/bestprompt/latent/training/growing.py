"""A larger network that begins where a trained one stands: more layers, a longer code, longer sentences, more words.

Notation (symbol → name, shape):
    s = r(h C)     code of the pooled states h, r scales to root mean square one   → ``to_code`` C  (slots · w, d)
    P s, E s       what the decoder reads of it                                    → ``from_code``, ``everywhere``

What is added changes hardly any decode at first: a new layer adds nothing to its input, what reads a new number of the
code starts at zero, and a new word's embedding is the mean of its pieces'. Training goes on from there instead of
from nothing, which saves most of its hours. Width, heads, slots and prefix stay as they are.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from tokenizers import Tokenizer

from bestprompt.latent.network import Block, NetworkSizes, SentenceNetwork
from bestprompt.latent.tokens import Codec

_KEPT = ("width", "heads", "slots", "prefix")


def with_more_words(codec: Codec, counts: Counter[str], vocabulary: int) -> Codec:
    """``codec`` with up to ``vocabulary`` entries: merges that make the most frequent split words whole come last.

    They apply after all the others, so a text without these words is cut as before.
    """
    pieces_of = {word: cut.tokens for word, cut in zip(counts, codec.tokenizer.encode_batch(list(counts)), strict=True)}
    described = json.loads(codec.tokenizer.to_str())
    entries, merges = described["model"]["vocab"], described["model"]["merges"]
    for word, _ in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
        pieces = pieces_of[word]
        wholes = ["".join(pieces[:k]) for k in range(2, len(pieces) + 1)]
        new = [whole for whole in wholes if whole not in entries]
        if len(entries) + len(new) > vocabulary:
            break
        for k, whole in enumerate(wholes):
            if whole in new:
                entries[whole] = len(entries)
                merges.append(["".join(pieces[: k + 1]), pieces[k + 1]])
    return Codec(Tokenizer.from_str(json.dumps(described)))


def word_counts(texts: Iterable[str]) -> Counter[str]:
    """How often each word of letters alone is written; the space before it is the tokenizer's affair."""
    return Counter(word for text in texts for part in text.split() if (word := part.strip(".,;:?!()\"'")).isalpha())


def grown(
    network: SentenceNetwork, before: Codec, after: Codec, sizes: NetworkSizes, key: jax.Array
) -> SentenceNetwork:
    """``network``, which writes by ``before``, in larger ``sizes`` and with the words of ``after``.

    Raises:
        ValueError: A size that cannot grow differs, or one is smaller than it was.
    """
    was = network.shape
    if any(getattr(was, name) != getattr(sizes, name) for name in _KEPT):
        raise ValueError(f"{', '.join(_KEPT)} cannot grow: the trained network has {was}")
    if any(new < old for new, old in zip(sizes.to_dict().values(), was.to_dict().values(), strict=True)):
        raise ValueError(f"nothing can become smaller than in the trained network, {was}")
    keys = iter(jax.random.split(key, 2 + sizes.encoder_layers + sizes.decoder_layers))
    more = sizes.code - was.code
    columns = jax.random.normal(next(keys), (network.to_code.shape[0], more)) * jnp.std(network.to_code)
    room = jnp.zeros((more, 1))
    embedding, bias = _with_new_words(network, before, after, sizes.vocabulary)
    changed: SentenceNetwork = eqx.tree_at(
        lambda n: (
            n.embedding, n.output_bias, n.positions, n.to_code, n.from_code, n.everywhere, n.encoder, n.decoder
        ),
        network,
        (
            embedding,
            bias,
            _longer(network.positions, sizes.length + 1),
            jnp.concatenate([network.to_code, columns], axis=1),
            jnp.concatenate([network.from_code, room * network.from_code[:1]]),
            jnp.concatenate([network.everywhere, room * network.everywhere[:1]]),
            [*network.encoder, *(_idle(sizes, next(keys)) for _ in range(sizes.encoder_layers - was.encoder_layers))],
            [*network.decoder, *(_idle(sizes, next(keys)) for _ in range(sizes.decoder_layers - was.decoder_layers))],
        ),
    )  # fmt: skip
    larger = eqx.filter_eval_shape(SentenceNetwork, sizes, key)
    result: SentenceNetwork = jax.tree.unflatten(jax.tree.structure(larger), jax.tree.leaves(changed))
    return result


def _idle(sizes: NetworkSizes, key: jax.Array) -> Block:
    """A layer that adds nothing yet."""
    block = Block(sizes.width, sizes.heads, key)
    idle: Block = eqx.tree_at(lambda b: (b.mix, b.down), block, (jnp.zeros_like(block.mix), jnp.zeros_like(block.down)))
    return idle


def _longer(positions: jax.Array, length: int) -> jax.Array:
    """(2, length, w): places that no sentence reached before look like the last one that many did."""
    missing = length - positions.shape[1]
    last = positions[:, -4:].mean(axis=1, keepdims=True)
    return jnp.concatenate([positions, jnp.repeat(last, missing, axis=1)], axis=1)


def _with_new_words(
    network: SentenceNetwork, before: Codec, after: Codec, vocabulary: int
) -> tuple[jax.Array, jax.Array]:
    """Embeddings (V, w) and output biases (V,): a new entry begins as the mean of the old ones it is spelled with."""
    old = np.asarray(network.embedding)
    embedding = np.zeros((vocabulary, old.shape[1]), np.float32)
    bias = np.full(vocabulary, float(np.min(network.output_bias)), np.float32)
    embedding[: len(old)], bias[: len(old)] = old, np.asarray(network.output_bias)
    strings = {number: string for string, number in after.tokenizer.get_vocab().items() if number >= len(old)}
    spelled = before.numbers([after.tokenizer.decoder.decode([string]).strip() for string in strings.values()])
    for number, pieces in zip(strings, spelled, strict=True):
        embedding[number] = old[pieces].mean(axis=0) if pieces else 0.0
        bias[number] = float(np.mean(bias[pieces])) if pieces else bias[number]
    return jnp.asarray(embedding), jnp.asarray(bias)
