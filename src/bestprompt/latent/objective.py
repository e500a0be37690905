"""The training objective: decode sentences from codes moved the way the search stage will move them.

Notation (paper symbol → name, shape):
    X_l               latent vector of the parent         → ``codes``   (n, d), in groups of G
    V ~ N(0, Σ_p)     step with the set's covariance      → ``group_step``
    Dec(X_l + V)      decoded candidate                   → what the loss asks to be a sentence

The search adds to the parent's vector a Gaussian with the sample covariance of the current set. For a set {X_i} that is
V = Σ_i w_i (X_i − X̄)/√G with w_i ~ N(0, 1), so the same step can be taken inside each group of related sentences. An
autoregressive decoder trained by likelihood on moved codes learns the distribution of sentences given such a point,
and its decodes are sentences again. Long steps sometimes ask for a paraphrase, or for the sentence of the group that
is nearest to the moved point, instead of the parent: the step must lead somewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from bestprompt.latent.corpus.batches import GROUP
from bestprompt.latent.network import BEGIN, END, PAD, SentenceNetwork


@dataclass(frozen=True)
class Recipe:
    """What is mixed into a batch; shares of sentences and sizes of noise, in units of the code's root mean square."""

    group_share: float = 0.5
    longest_step: float = 1.2
    isotropic: float = 0.6
    paraphrase: float = 0.25
    nearest: float = 0.15
    word_dropout: float = 0.12


def group_step(codes: jax.Array, key: jax.Array) -> jax.Array:
    """(n, d) steps, one per row, each with the sample covariance of the row's group."""
    grouped = codes.reshape(-1, GROUP, codes.shape[-1])
    centred = grouped - grouped.mean(axis=1, keepdims=True)
    weights = jax.random.normal(key, (len(grouped), GROUP, GROUP))
    return jnp.asarray((jnp.einsum("gij,gjd->gid", weights, centred) / GROUP**0.5).reshape(codes.shape))


def moved(codes: jax.Array, recipe: Recipe, ramp: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Codes after a step of the group's or an isotropic law, and the (n,) length of the group's step."""
    keys = jax.random.split(key, 5)
    n = len(codes)
    by_group = jax.random.uniform(keys[0], (n,)) < recipe.group_share
    length = jnp.where(by_group, ramp * jax.random.uniform(keys[1], (n,), maxval=recipe.longest_step), 0.0)
    size = jnp.where(by_group, 0.1, ramp * jax.random.uniform(keys[2], (n,), maxval=recipe.isotropic))
    noise = size[:, None] * jax.random.normal(keys[3], codes.shape)
    return codes + length[:, None] * group_step(codes, keys[4]) + noise, length


def targets(
    tokens: jax.Array, codes: jax.Array, points: jax.Array, length: jax.Array, recipe: Recipe, key: jax.Array
) -> jax.Array:
    """(n, T) what each point should decode to: the parent, its paraphrase or the nearest sentence of the group."""
    n = len(tokens)
    own = jnp.arange(n)
    grouped, at = codes.reshape(-1, GROUP, codes.shape[-1]), points.reshape(-1, GROUP, codes.shape[-1])
    distances = jnp.sum((at[:, :, None] - grouped[:, None]) ** 2, axis=-1)
    distances = distances + 1e9 * jnp.eye(GROUP)  # another sentence than the parent
    nearest = (jnp.argmin(distances, axis=-1) + GROUP * jnp.arange(len(grouped))[:, None]).reshape(n)
    draw = jax.random.uniform(key, (n,))
    far = length > 0.5
    chosen = jnp.where(far & (draw < recipe.paraphrase), own ^ 1, own)
    chosen = jnp.where(far & (draw > 1.0 - recipe.nearest), nearest, chosen)
    return tokens[chosen]


def cross_entropy(
    network: SentenceNetwork, codes: jax.Array, wanted: jax.Array, seen: jax.Array, among: jax.Array
) -> jax.Array:
    """Mean negative log-likelihood of the tokens ``wanted`` (n, T) after ``seen`` (n, T), competing ``among``."""
    scores = jax.nn.log_softmax(network.logits(codes, seen, among))
    place = jnp.zeros(network.shape.vocabulary, jnp.int32).at[among].set(jnp.arange(len(among)))
    picked = jnp.take_along_axis(scores, place[wanted][..., None], axis=-1)[..., 0]
    real = wanted != PAD
    return -jnp.sum(picked * real) / jnp.sum(real)


def shifted(wanted: jax.Array) -> jax.Array:
    """Decoder inputs: BEGIN, then the tokens before the last."""
    begin = jnp.full((len(wanted), 1), BEGIN, wanted.dtype)
    return jnp.concatenate([begin, jnp.where(wanted[:, :-1] == END, PAD, wanted[:, :-1])], axis=1)


def loss(
    network: SentenceNetwork, tokens: jax.Array, among: jax.Array, recipe: Recipe, ramp: jax.Array, key: jax.Array
) -> jax.Array:
    """The objective on one batch of (n, T) token rows, group by group.

    ``among`` holds every token of the batch; ``ramp`` in [0, 1] scales all steps, so that training can begin with
    plain reconstruction.
    """
    keys = jax.random.split(key, 3)
    codes = network.encode(tokens)
    points, length = moved(codes, recipe, ramp, keys[0])
    wanted = targets(tokens, codes, points, length, recipe, keys[1])
    seen = shifted(wanted)
    dropped = jax.random.uniform(keys[2], seen.shape) < recipe.word_dropout
    return cross_entropy(network, points, wanted, jnp.where(dropped & (seen > END), PAD, seen), among)
