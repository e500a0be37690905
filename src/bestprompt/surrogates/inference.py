"""Posterior inference for weights without a closed form: Hamiltonian Monte Carlo and mean-field variational inference.

Notation (paper symbol → name):
    W                     weights, a tree of arrays                          → ``weights``
    log p(S_t | W)        Gaussian likelihood of (means, r_n/σ_n²)           → ``log_likelihood``
    π(W)                  independent prior of every weight                  → ``Prior``
    U(W) = −log p − log π potential energy                                   → ``−log_density``
    ε, L, M               step size, leapfrog steps, mass matrix             → adapted, ``HMC.n_leapfrog``, adapted
    q(W; λ)               Π N(m, s²), λ = (m, log s)                         → ``MeanField``
    ELBO(λ)               E_q[log p(S_t, W) − log q(W; λ)]                   → ``NegativeELBO``

Deviations: a rejected proposal repeats the old state (the paper's Alg. 3 would drop it, which biases the sample); step
size and mass matrix come from window adaptation; the ELBO (Alg. 4) is climbed by Adam on antithetic reparameterised
draws, the prior and entropy terms in closed form. All programs take the data as arguments of fixed shape, so each
compiles once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from blackjax.adaptation.base import get_filter_adapt_info_fn
from blackjax.diagnostics import effective_sample_size, rhat

from bestprompt.errors import SurrogateError
from bestprompt.surrogates.options import check_choice, check_counts, check_positive, check_shares

Tree = Any  # a nest of tuples of arrays, one array per layer: XLA copies a flat vector sliced inside a loop


class Batch(NamedTuple):
    """Rows Z (n, D), their mean scores (n,) and precision r_n/σ_n² (n,), which is zero where nothing was evaluated."""

    Z: Any
    scores: Any
    precision: Any


@dataclass(frozen=True, slots=True)
class Prior:
    """An independent prior with mean zero on every weight: ``normal`` with that std, or ``laplace`` with that scale."""

    family: Literal["normal", "laplace"] = "normal"
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_choice("prior.family", self.family, ("normal", "laplace"))
        check_positive(self, "scale", within="prior")

    def log_density(self, weights: Tree) -> jax.Array:
        """Log π(W) up to a constant."""
        if self.family == "normal":
            return -0.5 * _total(jax.tree.map(lambda w: (w / self.scale) ** 2, weights))
        return -_total(jax.tree.map(lambda w: jnp.abs(w) / self.scale, weights))

    def expected_log_density(self, mean: Tree, log_std: Tree) -> jax.Array:
        """E_q log π(W) for independent normals, up to the same constant."""
        if self.family == "normal":
            return -0.5 * _total(jax.tree.map(lambda m, r: (m**2 + jnp.exp(2 * r)) / self.scale**2, mean, log_std))

        def folded(m: jax.Array, r: jax.Array) -> jax.Array:
            ratio = m / jnp.exp(r)
            return jnp.exp(r) * jnp.sqrt(2 / jnp.pi) * jnp.exp(-0.5 * ratio**2) + m * jax.lax.erf(ratio / jnp.sqrt(2.0))

        return -_total(jax.tree.map(lambda m, r: folded(m, r) / self.scale, mean, log_std))

    def divergence(self, mean: Tree, log_std: Tree) -> jax.Array:
        """KL(Π N(m, s²) ‖ π), up to a constant."""
        return -self.expected_log_density(mean, log_std) - _total(log_std)


STANDARD_NORMAL = Prior()


class Model(Protocol):
    """A parametric model f(z; W): hashable, so that compiled programs can be shared between equal recipes."""

    @property
    def prior(self) -> Prior: ...

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


# --------------------------------------------------------------------------------------------- Hamiltonian Monte Carlo
@dataclass(frozen=True, slots=True)
class HMC:
    """Settings of Hamiltonian Monte Carlo.

    Attributes:
        n_chains: Independent chains; at least two for R-hat.
        n_warmup: Steps of window adaptation, on a cold start and whenever chains adapt again.
        n_burn: Steps dropped before the first kept draw, in every round.
        thin: Steps between kept draws.
        n_leapfrog: L.
        target_acceptance: Aim of the step-size adaptation.
    """

    n_chains: int = 4
    n_warmup: int = 300
    n_burn: int = 20
    thin: int = 2
    n_leapfrog: int = 16
    target_acceptance: float = 0.8

    def __post_init__(self) -> None:
        check_counts(self, 1, "n_chains", "n_warmup", "thin", "n_leapfrog", within="hmc")
        check_counts(self, 0, "n_burn", within="hmc")
        check_shares(self, "target_acceptance", within="hmc")


DEFAULT_HMC = HMC()


class Chains(NamedTuple):
    """Where each chain stands and how it moves; leading axis n_chains. What one round hands to the next."""

    position: Tree
    step_size: jax.Array
    inverse_mass: jax.Array


def _log_density(model: Model, batch: Batch, weights: Tree) -> jax.Array:
    return log_likelihood(model, weights, batch) + model.prior.log_density(weights)


@partial(jax.jit, static_argnames=("model", "settings"))
def adapt_chains(model: Model, settings: HMC, positions: Tree, batch: Batch, key: jax.Array) -> Chains:
    """Window adaptation of every chain from ``positions`` (leading axis n_chains)."""
    warmup = blackjax.window_adaptation(
        blackjax.hmc,
        partial(_log_density, model, batch),
        target_acceptance_rate=settings.target_acceptance,
        adaptation_info_fn=get_filter_adapt_info_fn(),
        num_integration_steps=settings.n_leapfrog,
    )

    def one(chain_key: jax.Array, position: Tree) -> Chains:
        adapted, _ = warmup.run(chain_key, position, settings.n_warmup)
        found = adapted.parameters
        return Chains(adapted.state.position, found["step_size"], found["inverse_mass_matrix"])

    return jax.vmap(one)(jax.random.split(key, settings.n_chains), positions)


@partial(jax.jit, static_argnames=("model", "settings", "n"))
def run_chains(
    model: Model, settings: HMC, chains: Chains, batch: Batch, key: jax.Array, n: int
) -> tuple[Chains, Tree, jax.Array, jax.Array]:
    """``n`` kept draws per chain; returns the new chains, draws (n_chains, n, …).

    Acceptance and divergence of each step.
    """

    def one(chain_key: jax.Array, chain: Chains) -> tuple[Chains, Tree, jax.Array, jax.Array]:
        kernel = blackjax.hmc(
            partial(_log_density, model, batch), chain.step_size, chain.inverse_mass, settings.n_leapfrog
        )

        def step(state: Any, step_key: jax.Array) -> tuple[Any, tuple[Tree, jax.Array, jax.Array]]:
            state, info = kernel.step(step_key, state)
            return state, (state.position, info.acceptance_rate, info.is_divergent)

        keys = jax.random.split(chain_key, settings.n_burn + n * settings.thin)
        state, (draws, acceptance, divergent) = jax.lax.scan(step, kernel.init(chain.position), keys)
        kept = jax.tree.map(lambda x: x[settings.n_burn :: settings.thin], draws)
        return chain._replace(position=state.position), kept, acceptance, divergent

    return jax.vmap(one)(jax.random.split(key, settings.n_chains), chains)


@jax.jit
def _worst(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jnp.min(effective_sample_size(values)), jnp.max(rhat(values))


def step_diagnostics(acceptance: np.ndarray, divergent: np.ndarray) -> dict[str, float]:
    """Mean acceptance and number of divergences over all steps of all chains."""
    return {"acceptance": float(np.mean(acceptance)), "divergences": float(np.sum(divergent))}


def chain_diagnostics(summaries: np.ndarray, acceptance: np.ndarray, divergent: np.ndarray) -> Mapping[str, float]:
    """Acceptance, divergences, smallest effective sample size and largest R-hat of ``summaries`` (n_chains, n, k).

    R-hat needs at least two chains of four draws; with fewer it is left out, and the effective sample size with it.
    """
    result = step_diagnostics(acceptance, divergent)
    if not np.isfinite(summaries).all():
        raise SurrogateError("the Markov chains left the finite numbers: raise the noise or shrink the prior", result)
    if summaries.shape[0] > 1 and summaries.shape[1] >= 4:
        ess, scale_reduction = _worst(summaries)
        result |= {"ess": float(ess), "rhat": float(scale_reduction)}
    return result
