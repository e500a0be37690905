"""Multi-start ascent of expected improvement in the principal coordinates of the latent space.

Notation (paper symbol → name, shape):
    X̃ = argmax EI(X)   next vector to evaluate      → rows of the result      (S, d)
    x, x_p             coordinates of X and of the evaluated vector a start came from → ``starts``, ``anchors`` (S, d)

Ã depends on X through x alone, so no gradient ever leaves the span of the set; the displacement x − x_p is later added
to X_p itself. Each start stays within ``radius`` of its evaluated vector, where the decoder still writes sentences.
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


def ascend(fitted: FittedProjection, starts: FloatArray, anchors: FloatArray, radius: float, best: float) -> FloatArray:
    """(S, d) where log EI has climbed to from ``starts`` (S, d), inside the balls around ``anchors`` (S, d)."""
    widest = fitted.network.mixing.shape[0]
    # Features beyond D* get weight zero: one compiled program for every D*.
    root, weights = np.zeros((widest, widest)), np.zeros(widest)
    root[: fitted.dimension, : fitted.dimension] = fitted.root
    weights[: fitted.dimension] = fitted.weights
    single = (np.asarray(a, np.float32) for a in (root, weights, starts, anchors))
    scalars = np.array([(best - fitted.trend) / fitted.unit, fitted.nugget / fitted.unit**2, radius], np.float32)
    return np.asarray(_ascend(fitted.network, *(jnp.asarray(a) for a in single), jnp.asarray(scalars)), np.float64)


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
        features = network(x)
        variance = jnp.sum((features @ root.T) ** 2, axis=1) + nugget
        return jnp.sum(log_expected_improvement(features @ weights, jnp.sqrt(variance + 1e-12), best))

    def inside(x: jax.Array) -> jax.Array:
        offset = x - anchors
        length = jnp.linalg.norm(offset, axis=1, keepdims=True)
        return anchors + offset * jnp.minimum(1.0, radius / jnp.maximum(length, 1e-12))

    def step(x: jax.Array, rate: jax.Array) -> tuple[jax.Array, None]:
        slope = jax.grad(total)(x)
        length = jnp.linalg.norm(slope, axis=1, keepdims=True)
        # Steps of given length along the gradient: log EI is steep where it is hopeless, and flat near its top.
        return inside(x + rate * radius * slope / jnp.maximum(length, 1e-12)), None

    rates = jnp.asarray(STRIDE * np.linspace(1.0, 0.05, STEPS), jnp.float32)
    return jax.lax.scan(step, inside(starts), rates)[0]
