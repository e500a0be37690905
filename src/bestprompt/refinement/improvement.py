"""What a prompt outside the set may gain: expected improvement, and the gain of m noisy calls to it.

Notation (paper symbol → name):
    μ̂(X), σ̂(X)   prediction and its uncertainty           → ``mean``, ``std``
    v*            score to beat                             → ``best``
    EI            E[(v(X) − v*)⁺] [eq.ei]                   → ``expected_improvement``
    U_I           Σ σ̂²(X̃_i) [eq.cumulativeuncertainty]      → ``cumulative_uncertainty``
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr

from bestprompt.acquisition.improvement import expected_excess
from bestprompt.types import FloatArray

_FAR = -20.0  # below this many standard deviations single precision needs the asymptotic series
_LOG_ROOT_2PI = 0.9189385332046727


def expected_improvement(mean: FloatArray, std: FloatArray, best: float) -> FloatArray:
    """`eq.ei`, elementwise."""
    return expected_excess(best - np.asarray(mean), np.asarray(std))


def log_expected_improvement(mean: jax.Array, std: jax.Array, best: jax.Array) -> jax.Array:
    """The logarithm of EI; finite, with a gradient, where EI itself is 0 in floats.

    log EI = log σ̂ + log(φ(z) + z Φ(z)), z = (μ̂ − v*)/σ̂.

    φ + zΦ = φ (1 + z Φ/φ), and 1 + z Φ/φ → z⁻² − 3z⁻⁴ + 15z⁻⁶ far below; the two branches meet at z = −20.
    """
    z = (mean - best) / std
    near, far = jnp.maximum(z, _FAR), jnp.minimum(z, _FAR)
    log_density = -0.5 * near**2 - _LOG_ROOT_2PI
    ratio = jnp.exp(jnp.minimum(log_ndtr(near) - log_density, 60.0))
    # Above zero the density underflows first and z Φ is all there is; below, it carries the whole value.
    high = jnp.log(jnp.exp(log_density) + jnp.maximum(near, 0.0) * jnp.exp(log_ndtr(near)) + 1e-30)
    low = log_density + jnp.log(jnp.maximum(1.0 + jnp.minimum(near, 0.0) * ratio, 1e-30))
    inverse = 1.0 / far**2
    tail = -0.5 * far**2 - _LOG_ROOT_2PI + jnp.log(inverse * (1.0 - 3.0 * inverse + 15.0 * inverse**2))
    return jnp.log(std) + jnp.where(z < _FAR, tail, jnp.where(near > 0.0, high, low))


def value_per_call(
    mean: float, std: float, noise: float, best: float, remaining: int, beforehand: float = 0.0, fewest: int = 1
) -> float:
    """Most that m ≤ ``remaining`` calls to a new prompt, ``fewest`` at least, may gain over ``best``, per call.

    Calls ``beforehand`` count with the m.

    After m calls with variance ``noise`` each the posterior mean has moved by N(0, s_m²), s_m² = σ̂⁴ / (σ̂² + σ²/m); the
    gain is E[(μ̂ + s_m Z − v*)⁺]. The same measure as ``selection.rank.value_of_next_call``.
    """
    calls = np.unique(np.geomspace(fewest, max(remaining, fewest), 7).astype(np.int64))
    moved = std**2 / np.sqrt(std**2 + noise / calls)
    return float(np.max(expected_excess(np.full(calls.size, best - mean), moved) / (calls + beforehand)))


def cumulative_uncertainty(stds: Sequence[float]) -> FloatArray:
    """(I,) U_1 … U_I from the uncertainty of each refined prompt before it was evaluated."""
    return np.cumsum(np.square(np.asarray(stds, dtype=np.float64)))
