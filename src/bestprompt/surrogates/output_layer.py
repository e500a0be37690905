"""Networks whose output layer is integrated out: the score is linear in features that the hidden layers learn.

Notation (paper symbol → name, shape):
    φ(z; λ, ε)     features: last hidden layer under one draw ε of what is random in it, and 1   → ``features``  (n, p)
    w              output weights, prior N(0, I_p)                                              → ``output``    (K, p)
    Ω              diag(r_n/σ_n²), thinned by the nugget: 1 / (σ_n²/r_n + τ²)                    → ``thinned``
    a, ℓ, τ        scale of the output, of the inputs, and of what the network cannot express   → ``Scales``
    log p(v̄ | ε)   ½ bᵀA⁻¹b − ½ log|A| − ½ v̄ᵀΩv̄ + ½ log|Ω|, A = I + φᵀΩφ, b = φᵀΩv̄             → ``log_evidence``
    bound          E_ε log p(v̄ | ε) − complexity(λ)                                             → −``ExactOutput.loss``

Why (a deviation from Alg. 4, which takes all weights as independent): with independent output weights a wide network
that meets noisy scores was seen to return to its prior, a flat surface, and four times the steps did not help. The
likely reason is that each hidden unit costs divergence and explains little. Given the hidden layers the output layer
is a linear regression, so w | ε is exact; the bound is tighter, and hidden layers at their prior still give
regression on random features, so no optimum ignores the data. a, ℓ and τ are fitted with the bound, under log-normal
priors: a standard normal prior has no reason to have the scale of this surface, and without τ intervals are too
narrow wherever the truth is not a small network. A batch of fewer rows than were evaluated (weights raised
accordingly) makes the bound slightly biased, since the evidence is not a sum over rows; the output draws always use
all rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular

from bestprompt.errors import SurrogateError
from bestprompt.kriging.inputs import Observed
from bestprompt.kriging.padding import padded
from bestprompt.surrogates.inference import Batch, Descent, Tree, standard_normal, start_descent
from bestprompt.surrogates.training import Pace, Units, chunks, train
from bestprompt.types import FittedSurrogate, FloatArray, Posterior

# Centre and standard deviation of the normal priors of log a, log ℓ and log τ, all in standardised units.
SCALE_PRIOR = ((0.0, 1.0), (0.0, 0.5), (-2.0, 0.45))


class Scales(NamedTuple):
    """The logarithms of a, ℓ and τ."""

    output: jax.Array
    inputs: jax.Array
    nugget: jax.Array

    @classmethod
    def initial(cls) -> Scales:
        """At the centres of their priors."""
        return cls(*(jnp.float32(centre) for centre, _ in SCALE_PRIOR))

    def penalty(self) -> jax.Array:
        """−log prior, up to a constant."""
        pulls = [((value - centre) / sd) ** 2 for value, (centre, sd) in zip(self, SCALE_PRIOR, strict=True)]
        return 0.5 * jnp.sum(jnp.stack(pulls))


class FeatureModel(Protocol):
    """Hidden layers with randomness of their own; hashable, so that compiled programs can be shared."""

    @property
    def n_features(self) -> int:
        """Width of the last hidden layer, p − 1."""
        ...

    def noise(self, rng: np.random.Generator, params: Tree, *leading: int) -> Tree:
        """ε with ``leading`` axes in front."""
        ...

    def hidden(self, params: Tree, noise: Tree, Z: jax.Array) -> jax.Array:
        """(n, p − 1) last hidden layer at the rows of ``Z`` (n, D) under one ε."""
        ...

    def complexity(self, params: Tree, batch: Batch) -> jax.Array:
        """What the bound charges for ``params``: divergences from priors."""
        ...


class Params(NamedTuple):
    """λ and the three scales."""

    model: Tree
    scales: Scales


def features(model: FeatureModel, params: Params, noise: Tree, Z: jax.Array) -> jax.Array:
    """(n, p) φ: hidden units times a/sqrt(p − 1), so that the prior variance of f does not grow with p, and 1."""
    hidden = model.hidden(params.model, noise, Z * jnp.exp(params.scales.inputs))
    size = jnp.exp(params.scales.output) / np.float32(np.sqrt(model.n_features))
    return jnp.concatenate([hidden * size, jnp.ones((hidden.shape[0], 1), hidden.dtype)], axis=1)


def thinned(batch: Batch, scales: Scales) -> jax.Array:
    """(n,) Ω: precision of each mean as a statement about f, zero where nothing was evaluated."""
    return jnp.asarray(batch.precision / (1.0 + jnp.exp(2.0 * scales.nugget) * batch.precision))


def gram(model: FeatureModel, params: Params, noise: Tree, batch: Batch) -> tuple[jax.Array, jax.Array]:
    """φᵀΩφ (p, p) and φᵀΩv̄ (p,)."""
    phi, weight = features(model, params, noise, batch.Z), thinned(batch, params.scales)
    return jnp.asarray(phi.T @ (phi * weight[:, None])), jnp.asarray(phi.T @ (weight * batch.scores))


def _factor(inner: jax.Array) -> jax.Array:
    """Cholesky factor of I + ``inner``; the jitter is what single precision needs where scores are nearly exact."""
    p = inner.shape[0]
    jitter = 1.0 + 1e-6 * jnp.trace(inner)
    return jnp.asarray(jnp.linalg.cholesky(inner + jitter * jnp.eye(p, dtype=inner.dtype)))


@jax.custom_vjp
def explained(inner: jax.Array, projected: jax.Array) -> jax.Array:
    """½ bᵀA⁻¹b − ½ log|A| for A = I + ``inner`` (p, p), b = ``projected`` (p,).

    Its gradient in closed form, −½ (A⁻¹ + uuᵀ) and u with u = A⁻¹b, is cheaper to compile and to run than that of a
    Cholesky factor.
    """
    return _explained_forward(inner, projected)[0]


def _explained_forward(inner: jax.Array, projected: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    factor = _factor(inner)
    inverse = cho_solve((factor, True), jnp.eye(inner.shape[0], dtype=inner.dtype))
    solution = inverse @ projected
    return 0.5 * projected @ solution - jnp.log(jnp.diag(factor)).sum(), (inverse, solution)


def _explained_backward(saved: tuple[jax.Array, jax.Array], slope: jax.Array) -> tuple[jax.Array, jax.Array]:
    inverse, solution = saved
    return -0.5 * slope * (inverse + jnp.outer(solution, solution)), slope * solution


explained.defvjp(_explained_forward, _explained_backward)


def log_evidence(model: FeatureModel, params: Params, noise: Tree, batch: Batch) -> jax.Array:
    """The log evidence log p(v̄ | ε), up to a constant that depends on the noise of the scores only."""
    lost = jnp.log1p(jnp.exp(2.0 * params.scales.nugget) * batch.precision)  # −log of the thinning, 0 in unused rows
    left = jnp.sum(thinned(batch, params.scales) * batch.scores**2 + lost)
    return explained(*gram(model, params, noise, batch)) - 0.5 * left


@dataclass(frozen=True, slots=True)
class ExactOutput:
    """The negative bound, by ``n_pairs`` antithetic pairs of ε."""

    model: FeatureModel
    n_pairs: int = 1

    def noise(self, rng: np.random.Generator, params: Params, steps: int) -> Tree:
        """ε, (steps, n_pairs, …)."""
        return self.model.noise(rng, params.model, steps, self.n_pairs)

    def loss(self, params: Params, batch: Batch, noise: Tree) -> jax.Array:
        """−E_ε log p(v̄ | ε) + complexity + −log prior of the scales."""
        both = jax.tree.map(lambda e: jnp.concatenate([e, -e]), noise)
        fit = jax.vmap(lambda e: log_evidence(self.model, params, e, batch))(both).mean()
        return self.model.complexity(params.model, batch) + params.scales.penalty() - fit


@partial(jax.jit, static_argnames=("model",))
def _grams(model: FeatureModel, params: Params, noise: Tree, batch: Batch) -> tuple[jax.Array, jax.Array]:
    return jax.vmap(lambda e: gram(model, params, e, batch))(noise)


@jax.jit
def _output_draws(inner: jax.Array, projected: jax.Array, noise: jax.Array) -> jax.Array:
    """(K, p) w = A⁻¹b + L⁻ᵀx for x (K, p) standard normal, A = L Lᵀ."""

    def one(matrix: jax.Array, vector: jax.Array, x: jax.Array) -> jax.Array:
        factor = _factor(matrix)
        return solve_triangular(factor, solve_triangular(factor, vector, lower=True) + x, lower=True, trans=1)

    return jax.vmap(one)(inner, projected, noise)


@partial(jax.jit, static_argnames=("model",))
def _predictions(model: FeatureModel, params: Params, noise: Tree, output: jax.Array, Z: jax.Array) -> jax.Array:
    """(K, n) surfaces φ(z; ε_k)ᵀ w_k."""
    return jnp.asarray(jax.vmap(lambda e, w: features(model, params, e, Z) @ w)(noise, output))


@dataclass(frozen=True)
class FittedFeatures:
    """K draws (ε_k, w_k); every call of ``posterior`` uses the same ones, so its draws are joint over all rows.

    Attributes:
        state: Parameters and Adam's moments, from which the next round's fit may continue.
        noise: ε_1 … ε_K.
        output_noise: (K, p) what makes w_k a draw.
    """

    model: FeatureModel
    units: Units
    data: Observed
    state: Descent
    noise: Tree
    output_noise: np.ndarray
    size: int
    diagnostics: Mapping[str, float]

    @cached_property
    def output(self) -> np.ndarray:
        """(K, p) w_k given ε_k and all evaluated rows; computed when first needed."""
        n_draws, p = self.output_noise.shape
        inner, projected = np.zeros((n_draws, p, p), np.float32), np.zeros((n_draws, p), np.float32)
        for part in chunks(self.units, self.data, self.size):
            more = _grams(self.model, self.state.params, self.noise, part)
            inner, projected = inner + np.asarray(more[0]), projected + np.asarray(more[1])
        output = np.asarray(_output_draws(inner, projected, self.output_noise))
        if not np.isfinite(output).all():
            raise SurrogateError("the output layer is not finite: raise the noise or shrink the prior")
        return output

    def posterior(self, Z: FloatArray) -> Posterior:
        """Posterior at any rows ``Z`` (n, D); draws (K, n)."""
        rows = padded(self.units.rows(Z))
        draws = _predictions(self.model, self.state.params, self.noise, self.output, rows)
        nugget = float(np.exp(self.state.params.scales.nugget))
        return self.units.posterior(np.asarray(draws)[:, : len(Z)], nugget)


def fit_features(
    model: FeatureModel,
    start: Tree,
    Z: FloatArray,
    data: Observed,
    units: Units,
    pace: Pace,
    n_pairs: int,
    n_draws: int,
    rng: np.random.Generator,
    previous: FittedSurrogate | None,
) -> FittedFeatures:
    """Climb the bound from λ = ``start``, or from ``previous`` if its units still serve; then K draws."""
    if isinstance(previous, FittedFeatures) and previous.units.serve(units):
        units, state, warm = previous.units, previous.state, True
    else:
        state, warm = start_descent(Params(start, Scales.initial())), False
    size = pace.rows(len(Z))
    state, loss = train(ExactOutput(model, n_pairs), state, units, data, size, pace, warm, rng)
    noise = model.noise(rng, state.params.model, n_draws)
    output_noise = standard_normal(rng, n_draws, model.n_features + 1)
    scales = {f"log_{name}": float(value) for name, value in state.params.scales._asdict().items()}
    return FittedFeatures(model, units, data, state, noise, output_noise, size, {"negative_elbo": loss} | scales)
