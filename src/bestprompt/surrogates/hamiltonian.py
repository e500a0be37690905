"""Hamiltonian Monte Carlo: the two compiled programs that adapt Markov chains and run them.

Notation (paper symbol → name):
    W                     weights, a tree of arrays                          → ``position``
    U(W) = −log p − log π potential energy                                   → ``−log_density``
    ε, M                  step size, mass matrix                             → ``Chains``, found by window adaptation
    L                     leapfrog steps of a trajectory                     → ``n_leapfrog``
    L_i                   those of the i-th trajectory                       → ``_length``

Deviations: a rejected proposal repeats the old state (the paper's Alg. 3 would drop it, which biases the sample), and
trajectories differ in length. A direction of the posterior that oscillates with frequency ω has autocorrelation cos(ω ε
L) from one draw to the next: trajectories of one length return to where they began wherever ω ε L is near a multiple of
2π, and such a direction is hardly explored however many draws are made. Lengths L_i that run quasi-randomly (van der
Corput) and evenly over L/2 … 3L/2 have no common period. Each of them leaves the posterior invariant, so the
sequence does, and all chains share it, so that none waits for the longer trajectory of another. ``HMC(trajectory=
"fixed")`` is the paper's standard HMC, every L_i = L.

L is an argument like the data: a fit may lengthen its trajectories without another compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
from blackjax.adaptation.base import get_filter_adapt_info_fn
from blackjax.mcmc.dynamic_hmc import halton_sequence

from bestprompt.surrogates.inference import Batch, Model, Tree, log_likelihood
from bestprompt.surrogates.options import check_choice, check_counts, check_shares

TRAJECTORIES = ("jittered", "fixed")


@dataclass(frozen=True, slots=True)
class HMC:
    """Settings of Hamiltonian Monte Carlo.

    Attributes:
        n_chains: Independent chains.
        n_warmup: Steps of window adaptation, on a cold start and whenever chains adapt again.
        n_burn: Steps dropped before the first kept draw, in every round.
        thin: Steps between kept draws; more where a chain would else make too few steps to judge it by.
        n_leapfrog: L; doubled, and doubled again, while the chains do not mix.
        target_acceptance: Aim of the step-size adaptation.
        trajectory: ``"jittered"`` lengths around L, or the ``"fixed"`` L of the paper's standard HMC, which resonates.
    """

    n_chains: int = 4
    n_warmup: int = 300
    n_burn: int = 20
    thin: int = 4
    n_leapfrog: int = 16
    target_acceptance: float = 0.8
    trajectory: Literal["jittered", "fixed"] = "jittered"

    def __post_init__(self) -> None:
        check_counts(self, 1, "n_chains", "n_warmup", "thin", "n_leapfrog", within="hmc")
        check_counts(self, 0, "n_burn", within="hmc")
        check_shares(self, "target_acceptance", within="hmc")
        check_choice("hmc.trajectory", self.trajectory, TRAJECTORIES)


DEFAULT_HMC = HMC()


class Chains(NamedTuple):
    """Where each chain stands and how it moves; leading axis n_chains. What one round hands to the next."""

    position: Tree
    step_size: jax.Array
    inverse_mass: jax.Array


class Stretch(NamedTuple):
    """What chains leave behind: leading axis n_chains.

    Attributes:
        draws: (n_chains, n, …) kept weights.
        outputs: (n_chains, n · thin, w) f at the watched rows after every step.
        acceptance: (n_chains, n_burn + n · thin) probability with which each step was accepted.
        divergent: The same shape, whether its trajectory diverged.
    """

    draws: Tree
    outputs: jax.Array
    acceptance: jax.Array
    divergent: jax.Array


class Sampler(NamedTuple):
    """A sampling algorithm as ``blackjax.window_adaptation`` takes it."""

    init: Callable[..., Any]
    build_kernel: Callable[[], Callable[..., Any]]


def _length(i: jax.Array, n_leapfrog: jax.Array) -> jax.Array:
    """L_i, symmetric around L."""
    least = (n_leapfrog + 1) // 2
    return least + jnp.floor(halton_sequence(i) * (2 * (n_leapfrog - least) + 1)).astype(jnp.int32)


def _sampler(settings: HMC) -> Sampler:
    """Chains count their steps from 0 and find L_i from that: a number which is the same for all of them."""
    kernel = blackjax.dynamic_hmc.build_kernel(
        next_random_arg_fn=lambda i: i + 1,
        integration_steps_fn=_length if settings.trajectory == "jittered" else lambda _, n_leapfrog: n_leapfrog,
    )
    return Sampler(
        lambda position, log_density: blackjax.dynamic_hmc.init(position, log_density, jnp.asarray(0, jnp.int32)),
        lambda: kernel,
    )


def _log_density(model: Model, batch: Batch, weights: Tree) -> jax.Array:
    return log_likelihood(model, weights, batch) + model.prior.log_density(weights)


@partial(jax.jit, static_argnames=("model", "settings"))
def adapt_chains(model: Model, settings: HMC, positions: Tree, batch: Batch, n_leapfrog: int, key: jax.Array) -> Chains:
    """Window adaptation of every chain from ``positions`` (leading axis n_chains)."""
    warmup = blackjax.window_adaptation(
        _sampler(settings),
        partial(_log_density, model, batch),
        target_acceptance_rate=settings.target_acceptance,
        adaptation_info_fn=get_filter_adapt_info_fn(),
        integration_steps_params=(n_leapfrog,),
    )

    def one(chain_key: jax.Array, position: Tree) -> Chains:
        adapted, _ = warmup.run(chain_key, position, settings.n_warmup)
        found = adapted.parameters
        return Chains(adapted.state.position, found["step_size"], found["inverse_mass_matrix"])

    return jax.vmap(one)(jax.random.split(key, settings.n_chains), positions)


@partial(jax.jit, static_argnames=("model", "settings", "n", "thin"))
def run_chains(
    model: Model,
    settings: HMC,
    chains: Chains,
    batch: Batch,
    watched: jax.Array,
    n_leapfrog: int,
    key: jax.Array,
    n: int,
    thin: int,
) -> tuple[Chains, Stretch]:
    """``n`` kept draws per chain, ``thin`` steps apart, with f at the rows ``watched`` (w, D) after every step."""
    sampler, log_density = _sampler(settings), partial(_log_density, model, batch)
    kernel = sampler.build_kernel()

    def one(chain_key: jax.Array, chain: Chains) -> tuple[Chains, Stretch]:
        def step(state: Any, step_key: jax.Array) -> tuple[Any, Stretch]:
            state, info = kernel(
                step_key,
                state,
                log_density,
                chain.step_size,
                chain.inverse_mass,
                integration_steps_params=(n_leapfrog,),
            )
            outputs = model.predict(state.position, watched)
            return state, Stretch(state.position, outputs, info.acceptance_rate, info.is_divergent)

        keys = jax.random.split(chain_key, settings.n_burn + n * thin)
        state, steps = jax.lax.scan(step, sampler.init(chain.position, log_density), keys)
        kept = jax.tree.map(lambda x: x[settings.n_burn :: thin], steps.draws)
        stretch = steps._replace(draws=kept, outputs=steps.outputs[settings.n_burn :])
        return chain._replace(position=state.position), stretch

    return jax.vmap(one)(jax.random.split(key, settings.n_chains), chains)
