"""Multi-start ascent of expected improvement: near evaluated vectors, or (paper) over the whole latent box.

Notation (paper symbol → name, shape):
    X̃ = argmax EI(X)   next vector to evaluate      → rows of the result      (S, d)
    X                  latent vector in [−1, 1]^D~  → ``starts`` of the box    (S, D~)
    x, x_p             coordinates of X and of the evaluated vector a start came from → ``starts``, ``anchors`` (S, d)

Ã depends on X through x alone, so no gradient ever leaves the span of the set; in ``ascend`` the displacement x − x_p
is later added to X_p itself. Each of its starts stays within ``radius`` of its evaluated vector, where the decoder
still writes sentences.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from bestprompt.kriging.features import FeatureMap
from bestprompt.kriging.projection import FittedProjection
from bestprompt.refinement.improvement import log_expected_improvement
from bestprompt.types import FloatArray

STEPS = 40
STRIDE = 0.1  # of the radius, the longest single step
BOX_STRIDE = 0.3  # of the set's spread, the longest single step in the box


def ascend(fitted: FittedProjection, starts: FloatArray, anchors: FloatArray, radius: float, best: float) -> FloatArray:
    """(S, d) where log EI has climbed to from ``starts`` (S, d), inside the balls around ``anchors`` (S, d)."""
    single = (np.asarray(a, np.float32) for a in (*_posterior(fitted), starts, anchors))
    scalars = np.array([(best - fitted.trend) / fitted.unit, fitted.nugget / fitted.unit**2, radius], np.float32)
    return np.asarray(_ascend(fitted.network, *(jnp.asarray(a) for a in single), jnp.asarray(scalars)), np.float64)


def ascend_in_box(fitted: FittedProjection, starts: FloatArray, best: float) -> FloatArray:
    """(S, D~) where log EI has climbed to from ``starts`` (S, D~), anywhere in [−1, 1]^D~."""
    principal = fitted.principal
    single = (np.asarray(a, np.float32) for a in (*_posterior(fitted), principal.axes, principal.centre, starts))
    scalars = np.array([(best - fitted.trend) / fitted.unit, fitted.nugget / fitted.unit**2, principal.unit])
    arrays = (jnp.asarray(a) for a in single)
    return np.asarray(_ascend_in_box(fitted.network, *arrays, jnp.asarray(scalars, jnp.float32)), np.float64)


def _posterior(fitted: FittedProjection) -> tuple[FloatArray, FloatArray]:
    """Root and weights of the features; those beyond D* get zero: one compiled program for every D*."""
    widest = fitted.network.mixing.shape[0]
    root, weights = np.zeros((widest, widest)), np.zeros(widest)
    root[: fitted.dimension, : fitted.dimension] = fitted.root
    weights[: fitted.dimension] = fitted.weights
    return root, weights


def _total_log_improvement(
    network: FeatureMap, root: jax.Array, weights: jax.Array, x: jax.Array, best: jax.Array, nugget: jax.Array
) -> jax.Array:
    """Sum of log EI over the rows of the coordinates ``x`` (S, d): each row's gradient is its own."""
    features = network(x)
    variance = jnp.sum((features @ root.T) ** 2, axis=1) + nugget
    return jnp.sum(log_expected_improvement(features @ weights, jnp.sqrt(variance + 1e-12), best))


def _unit_rows(slope: jax.Array) -> jax.Array:
    """Directions alone: log EI is steep where it is hopeless, and flat near its top."""
    return slope / jnp.maximum(jnp.linalg.norm(slope, axis=1, keepdims=True), 1e-12)


@jax.jit
def _ascend_in_box(
    network: FeatureMap,
    root: jax.Array,
    weights: jax.Array,
    axes: jax.Array,
    centre: jax.Array,
    starts: jax.Array,
    scalars: jax.Array,
) -> jax.Array:
    best, nugget, unit = scalars

    def total(X: jax.Array) -> jax.Array:
        return _total_log_improvement(network, root, weights, (X - centre) @ axes.T / unit, best, nugget)

    def step(X: jax.Array, rate: jax.Array) -> tuple[jax.Array, None]:
        return jnp.clip(X + rate * unit * _unit_rows(jax.grad(total)(X)), -1.0, 1.0), None

    rates = jnp.asarray(BOX_STRIDE * np.linspace(1.0, 0.05, STEPS), jnp.float32)
    return jax.lax.scan(step, jnp.clip(starts, -1.0, 1.0), rates)[0]


@jax.jit
def _ascend(
    network: FeatureMap,
    root: jax.Array,
    weights: jax.Array,
    starts: jax.Array,
    anchors: jax.Array,
    scalars: jax.Array,
) -> jax.Array:
    best, nugget, radius = scalars

    def total(x: jax.Array) -> jax.Array:
        return _total_log_improvement(network, root, weights, x, best, nugget)

    def inside(x: jax.Array) -> jax.Array:
        offset = x - anchors
        length = jnp.linalg.norm(offset, axis=1, keepdims=True)
        return anchors + offset * jnp.minimum(1.0, radius / jnp.maximum(length, 1e-12))

    def step(x: jax.Array, rate: jax.Array) -> tuple[jax.Array, None]:
        return inside(x + rate * radius * _unit_rows(jax.grad(total)(x))), None

    rates = jnp.asarray(STRIDE * np.linspace(1.0, 0.05, STEPS), jnp.float32)
    return jax.lax.scan(step, inside(starts), rates)[0]
