"""Whether Markov chains have mixed, judged by f at watched candidates after every step.

Notation (symbol → name):
    R̂       rank-normalised split R-hat (Vehtari et al. 2021), the largest over candidates  → ``Mixing.rhat``
    ESS     bulk effective sample size, the smallest over candidates                        → ``Mixing.ess``
    C, s    chains, and the steps of each                                                   → ``n_chains``, ``n_steps``
    m, n    split chains and their length, m = 2C and n = s/2                               → ``m``, ``n``

Hidden units may swap roles without changing f, so weights would never seem to mix; f is also what is used.

Limits. R̂ may be 1.05: where chains stand in different places, or still drift, it is more. But R̂ is itself a statistic:
for independent draws n (R̂² − 1) + 1 is the ratio of the variances between and within chains, F-distributed with m − 1
and m (n − 1) degrees of freedom, so that the worst of many candidates exceeds 1.05 by chance where chains are few or
short. The limit is then what independent draws exceed in one fit of a thousand (simulated: 1.043 for 4 chains of 100
steps, 1.070 for 2; by the formula 1.043 and 1.074). ESS must be an eighth of the steps: draws kept four steps apart are
then worth at least half as many independent ones, so the Monte Carlo variance of a posterior mean is at most
twice that of independent draws. Independent draws fall below an eighth in less than one fit of a thousand (simulated
for 4 and 2 chains of 100 steps and the worst of 32 independent candidates). ESS and R̂ agree: R̂² − 1 ≈ m/ESS (Vats and
Knudson 2021).
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.diagnostics import ess_bulk, rhat
from scipy.stats import f as f_distribution

LARGEST_RHAT = 1.05
FALSE_ALARMS = 1e-3
LEAST_SHARE = 1 / 8
# Steps per chain below which neither statistic says much: with 25 steps of four chains, half of all perfect samples
# have an R-hat above 1.07, and one in a thousand above 1.18.
FEWEST_STEPS = 100


class Mixing(NamedTuple):
    """The two statistics, and the limits that they must keep."""

    ess: float
    rhat: float
    least_ess: float
    largest_rhat: float

    @property
    def is_enough(self) -> bool:
        """Whether the chains have mixed."""
        return self.ess >= self.least_ess and self.rhat <= self.largest_rhat

    def __str__(self) -> str:
        return (
            f"R-hat {self.rhat:.2f} where at most {self.largest_rhat:.2f} will do, "
            f"effective sample size {self.ess:.0f} where at least {self.least_ess:.0f} is needed"
        )


def mixing(outputs: np.ndarray) -> Mixing:
    """Of ``outputs`` (n_chains, n_steps, w): f at w watched candidates after each step of each chain."""
    n_chains, n_steps, n_watched = outputs.shape
    limits = LEAST_SHARE * n_chains * n_steps, largest_rhat(n_chains, n_steps, n_watched)
    moved = np.isfinite(outputs).all() and (np.ptp(outputs, axis=1) > 0).all()
    if not moved:
        return Mixing(0.0, inf, *limits)  # chains that stand still, or have left the finite numbers
    ess, scale_reduction = _worst(outputs)
    return Mixing(float(ess), float(scale_reduction), *limits)


def largest_rhat(n_chains: int, n_steps: int, n_watched: int) -> float:
    """1.05, or what the worst of ``n_watched`` independent candidates exceeds in one fit of a thousand if that is more.

    Bonferroni over the candidates and over the two parts of R-hat, location and spread.
    """
    return max(LARGEST_RHAT, rhat_by_chance(n_chains, n_steps, FALSE_ALARMS / (2 * n_watched)))


def rhat_by_chance(n_chains: int, n_steps: int, probability: float) -> float:
    """The R-hat that independent draws of one candidate exceed with that ``probability``."""
    m, n = 2 * n_chains, n_steps // 2
    ratio = f_distribution.isf(probability, m - 1, m * (n - 1))
    return sqrt(1.0 + (ratio - 1.0) / n)


@jax.jit
def _worst(outputs: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jnp.min(ess_bulk(outputs)), jnp.max(rhat(outputs))
