"""Hamiltonian Monte Carlo round after round: when chains go on as they are, go on longer, adapt again, or start afresh.

The posterior narrows as scores come in, so the step size that served one round is too long some rounds later: fewer and
fewer proposals are accepted, in the end every step diverges, and the draws stand still. Chains therefore adapt again,
from where they are, when the evaluations have grown by half or one chain accepts too little. A narrow posterior also
takes longer to cross. Chains that move but have not mixed go on: the draws so far are dropped, another stretch
is made, and if that is not enough the trajectories are doubled, up to eightfold, which gains more than as many further
steps: a trajectory of twice the length goes twice as far, a walk of twice the steps does not. Where all that does
not help chains start afresh, once, and a fit that still fails is an error: draws that stand still, or depend on where
they started, say nothing about the posterior. All attempts run the same two compiled programs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np

from bestprompt.errors import SurrogateError
from bestprompt.surrogates.convergence import FEWEST_STEPS, Mixing, mixing
from bestprompt.surrogates.hamiltonian import HMC, Chains, adapt_chains, run_chains
from bestprompt.surrogates.inference import Batch, Model, Tree

# Chains adapt again once there are so many times the evaluations they were adapted to, or one accepts less than this.
GROWTH = 1.5
ENOUGH_ACCEPTED = 0.5
# A chain that accepts less than this, or of whose steps more than this share diverges, hardly moves.
LEAST_ACCEPTED = 0.1
MOST_DIVERGENT = 0.5
# L of one stretch after the other while chains do not mix, as multiples of the first. The second is no longer: a
# perfect sample fails by chance now and then, and trajectories once lengthened stay so in the rounds to come.
LENGTHS = (1, 1, 2, 4, 8)


class Target(NamedTuple):
    """The posterior to draw from.

    Attributes:
        model: Whose weights are drawn.
        batch: The evidence.
        n_evaluations: Evaluations behind it.
        watched: (w, D) rows at which f must have mixed.
    """

    model: Model
    batch: Batch
    n_evaluations: int
    watched: np.ndarray


class Adapted(NamedTuple):
    """Chains, the L that serves them, and the evaluations they were adapted to: the next round's start."""

    chains: Chains
    n_leapfrog: int
    n_evaluations: int


@dataclass(frozen=True, slots=True)
class ChainSample:
    """What a round leaves.

    Attributes:
        state: Where its chains stand.
        draws: (n_chains, n, …) weights.
        mixing: How well f has mixed over all steps behind them.
        lowest_acceptance: Mean acceptance of the chain that accepts least; the mean of all would hide it.
        most_divergent: Share of divergent steps of the chain that has most.
        diagnostics: Mean acceptance and number of divergences over all chains, L, and where chains move their effective
            sample size and R-hat.
    """

    state: Adapted
    draws: Tree
    mixing: Mixing
    lowest_acceptance: float
    most_divergent: float
    diagnostics: dict[str, float]

    @property
    def moves(self) -> bool:
        """Whether no chain stands still."""
        return self.lowest_acceptance >= LEAST_ACCEPTED and self.most_divergent <= MOST_DIVERGENT

    @property
    def is_usable(self) -> bool:
        """Whether every chain moves and all have mixed."""
        return self.moves and self.mixing.is_enough

    @property
    def goes_on_well(self) -> bool:
        """Whether, besides, every chain accepts enough for its draws to be kept without adapting again."""
        return self.is_usable and self.lowest_acceptance >= ENOUGH_ACCEPTED


def sample(
    target: Target,
    settings: HMC,
    n_draws: int,
    start: Callable[[], Tree],
    rng: np.random.Generator,
    before: Adapted | None,
) -> ChainSample:
    """At least ``n_draws`` draws from the posterior, as many of each chain.

    Args:
        target: The posterior.
        settings: Of the chains.
        n_draws: K.
        start: Positions (leading axis n_chains) of a fresh start.
        rng: All randomness comes from here.
        before: The last round's chains, which are continued.

    Raises:
        SurrogateError: A chain hardly moves, or the chains have not mixed, even started afresh.
    """
    model, batch = target.model, target.batch
    n = -(-n_draws // settings.n_chains)
    thin = max(settings.thin, -(-FEWEST_STEPS // n))

    def key() -> jax.Array:
        return jax.random.key(int(rng.integers(2**31)), impl="rbg")

    def adapted(positions: Tree, n_leapfrog: int) -> Adapted:
        chains = adapt_chains(model, settings, positions, batch, n_leapfrog, key())
        return Adapted(chains, n_leapfrog, target.n_evaluations)

    def stretch(state: Adapted) -> ChainSample:
        chains, left = run_chains(
            model, settings, state.chains, batch, target.watched, state.n_leapfrog, key(), n, thin
        )
        acceptance, divergent = np.asarray(left.acceptance), np.asarray(left.divergent)
        found = mixing(np.asarray(left.outputs))
        return ChainSample(
            state._replace(chains=chains),
            left.draws,
            found,
            float(acceptance.mean(axis=1).min()),
            float(divergent.mean(axis=1).max()),
            {
                "acceptance": float(acceptance.mean()),
                "divergences": float(divergent.sum()),
                "n_leapfrog": float(state.n_leapfrog),
            }
            | ({"ess": found.ess, "rhat": found.rhat} if np.isfinite(found.rhat) else {}),
        )

    def attempt(state: Adapted) -> ChainSample:
        result = stretch(state)
        lengths = (times * state.n_leapfrog for times in LENGTHS[1:])
        for n_leapfrog in lengths:
            if not result.moves or result.is_usable or n_leapfrog > LENGTHS[-1] * settings.n_leapfrog:
                break
            result = stretch(result.state._replace(n_leapfrog=n_leapfrog))
        return result

    if before is not None:
        if target.n_evaluations < GROWTH * before.n_evaluations and (continued := attempt(before)).goes_on_well:
            return continued
        if (again := attempt(adapted(before.chains.position, before.n_leapfrog))).is_usable:
            return again
    if (fresh := attempt(adapted(start(), settings.n_leapfrog))).is_usable:
        return fresh
    raise SurrogateError(_refusal(fresh), fresh.diagnostics | {"lowest_acceptance": fresh.lowest_acceptance})


def _refusal(failed: ChainSample) -> str:
    if failed.moves:
        what = f"have not mixed, even from a fresh start with up to {LENGTHS[-1]} times the leapfrog steps"
        found = str(failed.mixing)
    else:
        what = "hardly move, even from a fresh start"
        found = (
            f"the slowest accepts {failed.lowest_acceptance:.0%} of its steps, "
            f"{failed.most_divergent:.0%} of the steps of one diverged"
        )
    return (
        f"Markov chains {what}: {found}. Raise hmc.n_warmup or hmc.n_leapfrog, give the network fewer units in layers, "
        "or choose inference = 'vi'"
    )
