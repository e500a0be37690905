"""The learned projection Ã of projection stochastic kriging and its training (paper, section "Refinement").

Notation (paper symbol → name, shape):
    x            principal coordinates of a latent vector X        → row of ``x``        (n, d)
    Ã(X)         e^a M s(x + B tanh(W x + c)), a network with a hidden layer that bends the coordinates and one of
                 waves s(y) = (cos Fy, sin Fy)                     → ``FeatureMap``      (n, D*)
    v̄_n          mean observed score, in units of their spread     → ``Rows.scores``     (n,)
    σ²(X_n)/r_n  its variance, in the same units                   → ``Rows.variances``  (n,)
    ℓ(S; Ã)      log-likelihood per row [eq.likelihood]            → minus ``descent``, up to its value

All evaluated vectors lie in the span of the set's rows, and no gradient leaves it, so a first layer on their principal
coordinates loses only those beyond the d-th. The warm start has B = 0, F the spectrum of a fitted kriging kernel, and M
the directions in which the set's waves vary most: kernel principal components, i.e. kriging of rank D*. Weights are
drawn back to where they started (a normal prior: weight decay around the start), so that a few dozen rows bend it only
where they must.

Own addition: an idiosyncratic variance τ² (nugget) beside σ²/r, because two neighbouring texts are never equally good;
the paper's recipe fits without it. Rows are padded to a fixed number and features beyond D* are masked, so that each
program compiles once for a whole run and a whole grid of D*.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.scipy.linalg import cho_solve

from bestprompt.kriging.padding import padded
from bestprompt.types import FloatArray

STRIDE = 8  # training steps between two looks at the held-out rows
NO_NUGGET = -40.0


class FeatureMap(eqx.Module):
    """Ã, with the logarithm of τ² that belongs to it."""

    inner: eqx.nn.Linear
    outer: eqx.nn.Linear
    frequencies: jax.Array
    mixing: jax.Array
    log_amplitude: jax.Array
    log_nugget: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        """(n, D*) features of the rows ``x`` (n, d)."""
        return jnp.exp(self.log_amplitude) * self.waves(x) @ self.mixing.T

    def waves(self, x: jax.Array) -> jax.Array:
        """(n, 2F) last hidden layer."""
        bent = x + jax.vmap(lambda row: self.outer(jnp.tanh(self.inner(row))))(x)
        angles = bent @ self.frequencies.T
        count: int = self.frequencies.shape[0]
        return jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1) / np.float32(np.sqrt(count))


class MapShape(NamedTuple):
    """Widths: hidden units of the bend, frequencies (each a cosine and a sine), features D*."""

    hidden: int
    frequencies: int
    features: int


class Start(NamedTuple):
    """Kernel at the start: standard deviation of the frequencies, variance, and nugget (0: none, and none learned)."""

    frequency: float
    amplitude: float
    nugget: float


class Rows(NamedTuple):
    """Evaluated rows, padded: coordinates (M, d), scores (M,), variances (M,)."""

    x: jax.Array
    scores: jax.Array
    variances: jax.Array


Carry = tuple[FeatureMap, optax.OptState]


class FeatureFit(NamedTuple):
    """What one network is trained on: row weights (M,) of training and held-out rows, the features (D*,) it may use."""

    used: jax.Array
    held_out: jax.Array
    features: jax.Array


def warm_map(x: FloatArray, shape: MapShape, start: Start, rng: np.random.Generator) -> FeatureMap:
    """The projection before training: the leading kernel principal components of the set ``x`` (N, d).

    Its inner products are those of the kernel of ``start``, approximated by waves and cut to the D* directions in
    which the set varies most.
    """
    raw = random_map(x.shape[1], shape, start, rng)
    flat = eqx.tree_at(lambda n: n.outer.weight, raw, jnp.zeros_like(raw.outer.weight))
    waves = np.asarray(_waves_at(flat, jnp.asarray(padded(x))), np.float64)[: len(x)]
    directions = np.linalg.eigh(waves.T @ waves)[1][:, ::-1][:, : shape.features].T
    warm: FeatureMap = eqx.tree_at(lambda n: n.mixing, flat, jnp.asarray(directions.astype(np.float32)))
    return warm


def random_map(inputs: int, shape: MapShape, start: Start, rng: np.random.Generator) -> FeatureMap:
    """The projection with random weights in every layer."""
    waves = 2 * shape.frequencies

    def normal(scale: float, *size: int) -> jax.Array:
        return jnp.asarray((scale * rng.standard_normal(size)).astype(np.float32))

    def layer(fan_in: int, fan_out: int, weight: float, bias: float) -> eqx.nn.Linear:
        blank = eqx.nn.Linear(fan_in, fan_out, key=jax.random.key(0))
        fresh = (normal(weight, fan_out, fan_in), normal(bias, fan_out))
        filled: eqx.nn.Linear = eqx.tree_at(lambda n: (n.weight, n.bias), blank, fresh)
        return filled

    return FeatureMap(
        layer(inputs, shape.hidden, 1.5, 0.7),
        layer(shape.hidden, inputs, 0.5 / np.sqrt(shape.hidden * inputs), 0.0),
        jnp.asarray((start.frequency * orthogonal_normals(shape.frequencies, inputs, rng)).astype(np.float32)),
        normal(shape.features**-0.5, shape.features, waves),
        jnp.asarray(np.float32(0.5 * np.log(start.amplitude))),
        jnp.asarray(np.float32(np.log(start.nugget) if start.nugget > 0 else NO_NUGGET)),
    )


def orthogonal_normals(count: int, inputs: int, rng: np.random.Generator) -> FloatArray:
    """(count, inputs) standard normal rows, orthogonal in blocks of ``inputs`` so that they cover directions evenly."""
    blocks = [np.linalg.qr(rng.standard_normal((inputs, inputs)))[0] for _ in range(-(-count // inputs))]
    lengths = np.sqrt(rng.chisquare(inputs, count))
    return np.asarray(np.concatenate(blocks)[:count] * lengths[:, None])


def _weight_space(
    network: FeatureMap, rows: Rows, task: FeatureFit
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Features (M, D*), row precisions (M,), P = I + Ãᵀ Σ⁻¹ Ã (D*, D*) and q = Ãᵀ Σ⁻¹ v̄ (D*,)."""
    features = network(rows.x) * task.features
    precision = task.used / (rows.variances + jnp.exp(network.log_nugget))
    weighted = precision[:, None] * features
    gram = jnp.eye(features.shape[1], dtype=features.dtype) + features.T @ weighted
    return features, precision, gram, weighted.T @ rows.scores


def _solved(gram: jax.Array, vector: jax.Array) -> tuple[jax.Array, jax.Array]:
    """P⁻¹ and P⁻¹q."""
    inverse = cho_solve((jnp.linalg.cholesky(gram), True), jnp.eye(gram.shape[0], dtype=gram.dtype))
    return inverse, inverse @ vector


def descent(network: FeatureMap, rows: Rows, task: FeatureFit) -> jax.Array:
    """A function with the gradient of −`eq.likelihood` per used row.

    With P = I + Ãᵀ Σ⁻¹ Ã and q = Ãᵀ Σ⁻¹ v̄:  |K + Σ| = |Σ| |P|  and  v̄ᵀ(K + Σ)⁻¹v̄ = v̄ᵀΣ⁻¹v̄ − qᵀP⁻¹q, whence
    ∂ log|P| = tr(P⁻¹ ∂P)  and  ∂(−qᵀP⁻¹q) = −2wᵀ∂q + wᵀ∂P w,  w = P⁻¹q. Held fixed, P⁻¹ and w need no derivative of
    a matrix factor, which compiles many times faster.
    """
    _, precision, gram, vector = _weight_space(network, rows, task)
    inverse, weights = _solved(*jax.lax.stop_gradient((gram, vector)))
    determinant = jnp.sum(task.used * jnp.log(rows.variances + jnp.exp(network.log_nugget))) + jnp.sum(inverse * gram)
    quadratic = jnp.sum(precision * rows.scores**2) - 2.0 * weights @ vector + weights @ gram @ weights
    return 0.5 * (determinant + quadratic) / jnp.maximum(jnp.sum(task.used), 1.0)


def held_out_density(network: FeatureMap, rows: Rows, task: FeatureFit) -> jax.Array:
    """Mean log-density of the held-out means under the predictor of the used rows (up to a constant)."""
    features, _, gram, vector = _weight_space(network, rows, task)
    inverse, weights = _solved(gram, vector)
    variance = jnp.sum(features @ inverse * features, axis=1) + jnp.exp(network.log_nugget) + rows.variances
    density = -0.5 * (jnp.log(variance) + (rows.scores - features @ weights) ** 2 / variance)
    return jnp.sum(task.held_out * density) / jnp.maximum(jnp.sum(task.held_out), 1.0)


def _train(
    network: FeatureMap, rows: Rows, task: FeatureFit, rates: jax.Array, decay: jax.Array
) -> tuple[FeatureMap, jax.Array]:
    """Checkpoints of one network, leading axis len(rates) + 1, and the held-out density at each."""
    start = network
    adam = optax.scale_by_adam()
    free = network.log_nugget > NO_NUGGET + 1.0

    def loss(now: FeatureMap) -> jax.Array:
        moved = jax.tree.map(lambda a, b: jnp.sum((a - b) ** 2), now, start)
        penalty = 0.5 * decay * jax.tree.reduce(jnp.add, moved) / jnp.maximum(jnp.sum(task.used), 1.0)
        return penalty + descent(now, rows, task)

    def step(carry: Carry, rate: jax.Array) -> tuple[Carry, None]:
        now, memory = carry
        slope = jax.grad(loss)(now)
        slope = eqx.tree_at(lambda n: n.log_nugget, slope, jnp.where(free, slope.log_nugget, 0.0))
        update, memory = adam.update(slope, memory)
        return (jax.tree.map(lambda w, u: w - rate * u, now, update), memory), None

    def stretch(carry: Carry, rate: jax.Array) -> tuple[Carry, tuple[FeatureMap, jax.Array]]:
        carry, _ = jax.lax.scan(step, carry, jnp.full(STRIDE, rate))
        return carry, (carry[0], held_out_density(carry[0], rows, task))

    _, (checkpoints, density) = jax.lax.scan(stretch, (network, adam.init(network)), rates)
    first = held_out_density(network, rows, task)
    joined = jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), network, checkpoints)
    return joined, jnp.concatenate([first[None], density])


@jax.jit
def train_together(
    networks: FeatureMap, rows: Rows, tasks: FeatureFit, rates: jax.Array, decay: jax.Array
) -> tuple[FeatureMap, jax.Array]:
    """Trains E networks at once, each on its own task.

    Args:
        networks: Leading axis E.
        rows: Shared by all.
        tasks: Leading axis E.
        rates: (C,) step size of each stretch of ``STRIDE`` steps.
        decay: Strength of the pull to the start.

    Returns:
        Checkpoints with leading axes (E, C + 1), the untrained network first, and held-out densities (E, C + 1).
    """
    return jax.vmap(_train, in_axes=(0, None, 0, None, None))(networks, rows, tasks, rates, decay)


@jax.jit
def features_at(network: FeatureMap, x: jax.Array) -> jax.Array:
    """(n, D*) features, compiled."""
    return network(x)


@jax.jit
def _waves_at(network: FeatureMap, x: jax.Array) -> jax.Array:
    return network.waves(x)
