"""Hamiltonian Monte Carlo round after round: when chains go on as they are, adapt again, or start afresh.

The posterior narrows as scores come in, so the step size that served one round is too long some rounds later: fewer and
fewer proposals are accepted, in the end every step diverges, and the draws stand still. Chains therefore adapt again,
from where they are, when the evaluations have grown by half or one chain accepts too little. Where that does not help
they start afresh, once, and a fit that still fails is an error: draws that stand still say nothing about the posterior.
All attempts run the same two compiled programs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from bestprompt.errors import SurrogateError
from bestprompt.surrogates.inference import HMC, Batch, Chains, Model, Tree, adapt_chains, run_chains, step_diagnostics

# Chains adapt again once there are so many times the evaluations they were adapted to, or one accepts less than this.
GROWTH = 1.5
ENOUGH_ACCEPTED = 0.5
# A freshly adapted chain that accepts less than this, or of whose steps more than this share diverges, has failed.
LEAST_ACCEPTED = 0.1
MOST_DIVERGENT = 0.5


class Adapted(NamedTuple):
    """Chains and the number of evaluations their step size and mass matrix were found for: the next round's start."""

    chains: Chains
    n_evaluations: int


class Sample(NamedTuple):
    """What a round leaves: where its chains stand, draws (n_chains, n, …), acceptance and divergence of each step."""

    state: Adapted
    draws: Tree
    acceptance: np.ndarray
    divergent: np.ndarray

    @property
    def goes_on_well(self) -> bool:
        """Whether every chain accepts enough for its draws to be kept without adapting again."""
        return self.is_usable and self.lowest_acceptance >= ENOUGH_ACCEPTED

    @property
    def is_usable(self) -> bool:
        """Whether every chain moves; one that stands still would hide in the mean of all."""
        return self.lowest_acceptance >= LEAST_ACCEPTED and float(self.divergent.mean(axis=1).max()) <= MOST_DIVERGENT

    @property
    def lowest_acceptance(self) -> float:
        """Mean acceptance of the chain that accepts least."""
        return float(self.acceptance.mean(axis=1).min())


def sample(
    model: Model,
    settings: HMC,
    batch: Batch,
    n_evaluations: int,
    n_kept: int,
    start: Callable[[], Tree],
    rng: np.random.Generator,
    before: Adapted | None,
) -> Sample:
    """``n_kept`` draws per chain from the posterior given ``batch``.

    Args:
        model: Whose weights are drawn.
        settings: Of the chains.
        batch: The evidence.
        n_evaluations: Evaluations behind ``batch``.
        n_kept: Draws per chain.
        start: Positions (leading axis n_chains) of a fresh start.
        rng: All randomness comes from here.
        before: The last round's chains, which are continued.

    Raises:
        SurrogateError: A chain hardly moves, even started afresh.
    """

    def attempt(begin: Callable[[jax.Array], Adapted]) -> Sample:
        run_key, adapt_key = (jax.random.key(int(rng.integers(2**31)), impl="rbg") for _ in range(2))
        state = begin(adapt_key)
        chains, draws, acceptance, divergent = run_chains(model, settings, state.chains, batch, run_key, n_kept)
        return Sample(state._replace(chains=chains), draws, np.asarray(acceptance), np.asarray(divergent))

    def adapted(positions: Tree, key: jax.Array) -> Adapted:
        return Adapted(adapt_chains(model, settings, positions, batch, key), n_evaluations)

    if before is not None:
        if n_evaluations < GROWTH * before.n_evaluations and (continued := attempt(lambda _: before)).goes_on_well:
            return continued
        if (again := attempt(lambda key: adapted(before.chains.position, key))).is_usable:
            return again
    if (fresh := attempt(lambda key: adapted(start(), key))).is_usable:
        return fresh
    diagnostics = step_diagnostics(fresh.acceptance, fresh.divergent) | {"lowest_acceptance": fresh.lowest_acceptance}
    raise SurrogateError(
        "Markov chains hardly move, even from a fresh start: the slowest accepts "
        f"{fresh.lowest_acceptance:.0%} of its steps, {diagnostics['divergences']:.0f} of {fresh.divergent.size} steps "
        "of all chains diverged. Raise hmc.n_warmup or hmc.n_leapfrog, or choose inference = 'vi'",
        diagnostics,
    )
