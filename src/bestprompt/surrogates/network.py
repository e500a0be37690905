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

from bestprompt.errors import ConfigError
from bestprompt.types import FloatArray

Layers = tuple[tuple[jax.Array, jax.Array], ...]

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "gelu": jax.nn.gelu,
    "softplus": jax.nn.softplus,
}


@dataclass(frozen=True, slots=True)
class Network:
    """Widths from input to output, the activation between layers, and whether kernels are divided by sqrt(fan-in).

    That division keeps the prior of f at unit scale for W ~ N(0, 1) whatever the width; without it (``scaled=False``,
    the paper's plain reading) the prior standard deviation of f grows with the widths.
    """

    widths: tuple[int, ...]
    activation: str = "tanh"
    scaled: bool = True

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise ConfigError(f"activation {self.activation!r} is unknown: choose one of {', '.join(ACTIVATIONS)}")

    def forward(self, weights: Layers, rows: jax.Array) -> jax.Array:
        """(n, widths[-1]) outputs at ``rows`` (n, widths[0])."""
        hidden = rows
        for layer, (kernel, bias) in enumerate(weights):
            factor = 1.0 / np.sqrt(kernel.shape[0]) if self.scaled else 1.0
            hidden = hidden @ kernel * jnp.asarray(factor, kernel.dtype) + bias
            if layer < len(weights) - 1:
                hidden = ACTIVATIONS[self.activation](hidden)
        return hidden

    def normal_weights(self, rng: np.random.Generator, *leading: int, scale: float = 1.0) -> Layers:
        """Independent N(0, scale²) weights, with ``leading`` axes in front of each array."""

        def draw(*shape: int) -> jax.Array:
            return jnp.asarray((scale * rng.standard_normal((*leading, *shape))).astype(np.float32))

        shapes = zip(self.widths[:-1], self.widths[1:], strict=True)
        return tuple((draw(fan_in, fan_out), draw(fan_out)) for fan_in, fan_out in shapes)


def padded(rows: FloatArray, smallest: int = 64) -> np.ndarray:
    """``rows`` (n, D) in single precision, zero rows appended up to a power of two: few shapes, so few compilations."""
    size = max(smallest, 1 << (len(rows) - 1).bit_length())
    return np.concatenate([rows, np.zeros((size - len(rows), rows.shape[1]))]).astype(np.float32)
