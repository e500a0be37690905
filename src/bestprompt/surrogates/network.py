"""Small dense networks as plain trees of arrays, one (kernel, bias) pair per layer.

Notation (paper symbol → name):
    W          kernels (fan-in, fan-out) and biases (fan-out,) of every layer  → ``weights``
    f(z; W)    network                                                        → ``forward``
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from bestprompt.surrogates.options import check_choice

Layers = tuple[tuple[jax.Array, jax.Array], ...]

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "gelu": jax.nn.gelu,
    "softplus": jax.nn.softplus,
}


@dataclass(frozen=True, slots=True)
class DenseNetwork:
    """Widths from input to output, the activation between layers, and whether kernels are divided by sqrt(fan-in).

    That division keeps the prior of f at unit scale for W ~ N(0, 1) whatever the width; without it (``scaled=False``,
    the paper's plain reading) the prior standard deviation of f grows with the widths.
    """

    widths: tuple[int, ...]
    activation: str = "tanh"
    scaled: bool = True

    def __post_init__(self) -> None:
        check_choice("activation", self.activation, ACTIVATIONS)

    def forward(self, weights: Layers, rows: jax.Array) -> jax.Array:
        """(n, widths[-1]) outputs at ``rows`` (n, widths[0]); the last layer is linear."""
        return self._linear(weights[-1], self.hidden(weights[:-1], rows))

    def hidden(self, weights: Layers, rows: jax.Array) -> jax.Array:
        """Activations after all of ``weights``."""
        for layer in weights:
            rows = ACTIVATIONS[self.activation](self._linear(layer, rows))
        return rows

    def _linear(self, layer: tuple[jax.Array, jax.Array], rows: jax.Array) -> jax.Array:
        kernel, bias = layer
        factor = 1.0 / np.sqrt(kernel.shape[0]) if self.scaled else 1.0
        return rows @ kernel * jnp.asarray(factor, kernel.dtype) + bias

    def normal_weights(self, rng: np.random.Generator, *leading: int, scale: float = 1.0) -> Layers:
        """Independent N(0, scale²) weights, with ``leading`` axes in front of each array."""

        def draw(*shape: int) -> jax.Array:
            return jnp.asarray((scale * rng.standard_normal((*leading, *shape))).astype(np.float32))

        shapes = zip(self.widths[:-1], self.widths[1:], strict=True)
        return tuple((draw(fan_in, fan_out), draw(fan_out)) for fan_in, fan_out in shapes)
