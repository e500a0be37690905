"""Posterior of weights without a closed form: what its density is made of, and mean-field variational inference.

Notation (paper symbol → name):
    W                     weights, a tree of arrays                          → ``weights``
    log p(S_t | W)        Gaussian likelihood of (means, r_n/σ_n²)           → ``log_likelihood``
    π(W)                  independent prior of every weight                  → ``WeightPrior``
    q(W; λ)               Π N(m, s²), λ = (m, log s)                         → ``MeanField``
    ELBO(λ)               E_q[log p(S_t, W) − log q(W; λ)]                   → ``NegativeELBO``

Deviations: the ELBO (Alg. 4) is climbed by Adam on antithetic reparameterised draws, the prior and entropy terms in
closed form. All programs take the data as arguments of fixed shape, so each compiles once. Hamiltonian Monte Carlo
(Alg. 3) is in :mod:`hamiltonian`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import optax

from bestprompt.surrogates.options import check_choice, check_positive

Tree = Any  # a nest of tuples of arrays, one array per layer: XLA copies a flat vector sliced inside a loop


class Batch(NamedTuple):
    """Rows Z (n, D), their mean scores (n,) and precision r_n/σ_n² (n,), which is zero where nothing was evaluated."""

    Z: Any
    scores: Any
    precision: Any


@dataclass(frozen=True, slots=True)
class WeightPrior:
    """An independent prior with mean zero on every weight: ``normal`` with that std, or ``laplace`` with that scale."""

    family: Literal["normal", "laplace"] = "normal"
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_choice("prior.family", self.family, ("normal", "laplace"))
        check_positive(self, "scale", within="prior")

    def log_density(self, weights: Tree) -> jax.Array:
        """The log prior density log π(W), up to a constant."""
        if self.family == "normal":
            return -0.5 * _total(jax.tree.map(lambda w: (w / self.scale) ** 2, weights))
        return -_total(jax.tree.map(lambda w: jnp.abs(w) / self.scale, weights))

    def expected_log_density(self, mean: Tree, log_std: Tree) -> jax.Array:
        """The mean E_q log π(W) for independent normals, up to the same constant."""
        if self.family == "normal":
            return -0.5 * _total(jax.tree.map(lambda m, r: (m**2 + jnp.exp(2 * r)) / self.scale**2, mean, log_std))

        def folded(m: jax.Array, r: jax.Array) -> jax.Array:
            ratio = m / jnp.exp(r)
            return jnp.exp(r) * jnp.sqrt(2 / jnp.pi) * jnp.exp(-0.5 * ratio**2) + m * jax.lax.erf(ratio / jnp.sqrt(2.0))

        return -_total(jax.tree.map(lambda m, r: folded(m, r) / self.scale, mean, log_std))

    def divergence(self, mean: Tree, log_std: Tree) -> jax.Array:
        """KL(Π N(m, s²) ‖ π), up to a constant."""
        return -self.expected_log_density(mean, log_std) - _total(log_std)


STANDARD_NORMAL = WeightPrior()


class Model(Protocol):
    """A parametric model f(z; W): hashable, so that compiled programs can be shared between equal recipes."""

    @property
    def prior(self) -> WeightPrior: ...

    def predict(self, weights: Tree, Z: jax.Array) -> jax.Array:
        """f(z; W) at the rows of ``Z`` (n, D), shape (n,)."""
        ...


def log_likelihood(model: Model, weights: Tree, batch: Batch) -> jax.Array:
    """−½ Σ_n (r_n/σ_n²)(v̄_n − f(z_n; W))², log p(S_t | W) up to a constant."""
    return -0.5 * jnp.sum(batch.precision * (batch.scores - model.predict(weights, batch.Z)) ** 2)


def standard_normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Independent N(0, 1) in single precision."""
    return rng.standard_normal(shape, dtype=np.float32)


def _total(tree: Tree) -> jax.Array:
    return jnp.asarray(jax.tree.reduce(lambda a, b: a + b, jax.tree.map(jnp.sum, tree)))


# ------------------------------------------------------------------------------------------------ stochastic gradients
class Objective(Protocol):
    """A loss estimated from one batch and one piece of noise; hashable."""

    def noise(self, rng: np.random.Generator, params: Tree, steps: int) -> Tree:
        """The randomness of ``steps`` evaluations, leading axis ``steps``."""
        ...

    def loss(self, params: Tree, batch: Batch, noise: Tree) -> jax.Array: ...


class Descent(NamedTuple):
    """Parameters and Adam's moments: what one round hands to the next."""

    params: Tree
    moments: Any


def start_descent(params: Tree) -> Descent:
    """A fresh state; arrays are strongly typed, else the second round would compile again."""
    strong = jax.tree.map(lambda x: jnp.asarray(np.asarray(x, np.float32)), params)
    return Descent(strong, jax.tree.map(jnp.asarray, optax.scale_by_adam().init(strong)))


@partial(jax.jit, static_argnames=("objective",))
def descend(
    objective: Objective, state: Descent, batches: Batch, noise: Tree, rates: jax.Array
) -> tuple[Descent, jax.Array]:
    """Adam for as many steps as there are ``rates`` (s,); batches and noise have leading axis s. Returns losses (s,).

    The noise is drawn beforehand: random bits inside a compiled loop cost more time than the gradient itself.
    """
    adam = optax.scale_by_adam()

    def step(carry: Descent, inputs: tuple[Batch, Tree, jax.Array]) -> tuple[Descent, jax.Array]:
        batch, step_noise, rate = inputs
        loss, slope = jax.value_and_grad(objective.loss)(carry.params, batch, step_noise)
        direction, moments = adam.update(slope, carry.moments)
        return Descent(jax.tree.map(lambda p, d: p - rate * d, carry.params, direction), moments), loss

    return jax.lax.scan(step, state, (batches, noise, rates))


class MeanField(NamedTuple):
    """λ: mean and log standard deviation of every weight."""

    mean: Tree
    log_std: Tree


@dataclass(frozen=True, slots=True)
class NegativeELBO:
    """−ELBO(λ) of a model, by ``n_pairs`` antithetic pairs of reparameterised draws W = m ± s ε."""

    model: Model
    n_pairs: int = 1

    def noise(self, rng: np.random.Generator, params: MeanField, steps: int) -> Tree:
        """ε, (steps, n_pairs, *shape of the weight)."""
        return jax.tree.map(lambda w: standard_normal(rng, steps, self.n_pairs, *w.shape), params.mean)

    def loss(self, params: MeanField, batch: Batch, noise: Tree) -> jax.Array:
        """−(E_q log p(S_t | W) + E_q log π(W) + entropy of q), up to a constant."""
        both = jax.tree.map(lambda e: jnp.concatenate([e, -e]), noise)
        draws = jax.tree.map(lambda m, r, e: m + jnp.exp(r) * e, params.mean, params.log_std, both)
        fit = jax.vmap(lambda w: log_likelihood(self.model, w, batch))(draws).mean()
        return self.model.prior.divergence(params.mean, params.log_std) - fit


def draw_mean_field(params: MeanField, rng: np.random.Generator, n: int) -> Tree:
    """``n`` draws from q, leading axis n."""
    return jax.tree.map(
        lambda m, r: np.asarray(m) + np.exp(np.asarray(r)) * standard_normal(rng, n, *m.shape),
        params.mean,
        params.log_std,
    )
