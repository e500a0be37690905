"""The bonus of M-UCB, tuned on the stochastic-kriging twin; in default mode scaled to the spread of the scores.

Notation (paper symbol → name):
    (b, c)     β_t = b sqrt(2 ln t), γ(m) = c·spread/sqrt(1 + m)     → ``Tuning.beta``, ``Tuning.gamma``
    T − t      evaluations left, of which a run on the twin uses H   → ``remaining``, ``HORIZON``

After the warm-up, and again whenever the observations have doubled, each pair of a grid is tried in simulated runs on
the twin and the best is kept (paper: "Hyperparameter Selection in Acquisition Function"). To bound the cost
whatever the run: at most ``HORIZON`` simulated evaluations, in one program that serves any number of them, and a twin
of at most ``CANDIDATES`` candidates, the most evaluated first.

``published_bonus`` is the paper's appendix: once, after the warm-up; truth μ_SK, noise σ²_SK + g*, selection by highest
observed mean, γ(m) = c/sqrt(m). The simulated runs begin at the posterior of the chosen surrogate. Fitting it anew at
every simulated step, as the appendix has it, would take as many fits as all simulated runs have steps: instead its
posterior is conditioned as the Gaussian that its draws show. The bounds on the cost are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bestprompt.acquisition.functions import ModifiedUCB
from bestprompt.choices import TuningName
from bestprompt.selection.core.state import SelectionState
from bestprompt.selection.core.views import Noise
from bestprompt.tuning.synthetic import kriging_twin, twin_of
from bestprompt.tuning.tuner import Tuner
from bestprompt.types import Evidence, FloatArray, IntArray, Posterior

HORIZON = 128
CANDIDATES = 256
RANK = 32
TUNER = Tuner(n_replications=16)
# Ranges of b and c (in units of the spread) in paper mode: the bonus of its experiments, b = 1 and c·spread = 2, lies
# inside where scores vary by about .2.
PUBLISHED_BETA, PUBLISHED_GAMMA = (0.02, 2.0), (0.005, 10.0)


@dataclass(frozen=True, slots=True)
class Bonus:
    """M-UCB with the pair chosen when there were ``tuned`` observations."""

    acquisition: ModifiedUCB
    tuned: int


def tuned_bonus(
    Z: FloatArray,
    state: SelectionState,
    noise: Noise,
    remaining: int,
    before: Bonus | None,
    rng: np.random.Generator,
    over: TuningName = "grid",
) -> Bonus:
    """The bonus for the rest of a run over candidates at ``Z`` (N, D); ``before`` is kept until its data have doubled.

    Args:
        Z: (N, D) coordinates of the candidates.
        state: At least one observation.
        noise: Of one evaluation.
        remaining: Evaluations left.
        before: What was tuned last.
        rng: Draws the twin's surfaces and which unevaluated candidates it has.
        over: A grid of pairs (b, c), or continuous ranges of both.
    """
    if before is not None and (len(state) < 2 * before.tuned or remaining < 2):
        return before
    rows, evidence = _looked_at(state, noise, rng)
    twin = kriging_twin(Z[rows], evidence, rank=RANK)
    tune = TUNER.grid if over == "grid" else TUNER.ranges
    tuning = tune(twin, evidence, min(max(remaining, 1), HORIZON), rng, padded=HORIZON)
    return Bonus(tuning.acquisition(), len(state))


def published_bonus(
    Z: FloatArray,
    state: SelectionState,
    noise: Noise,
    remaining: int,
    posterior_at: Callable[[IntArray], Posterior],
    rng: np.random.Generator,
) -> Bonus:
    """The paper's choice of (b, c) over continuous ranges, after the warm-up ``state`` over candidates at ``Z`` (N, D).

    Args:
        Z: (N, D) coordinates of the candidates.
        state: The warm-up.
        noise: Of one evaluation, g*.
        remaining: Evaluations left.
        posterior_at: The chosen surrogate's posterior at some candidates; without draws the twin stands in for it.
        rng: Draws synthetic scores, the pairs, and which unevaluated candidates the twin has.
    """
    rows, evidence = _looked_at(state, noise, rng)
    twin = kriging_twin(Z[rows], evidence, rank=RANK)
    posterior = posterior_at(rows)
    belief = None if posterior.draws is None else twin_of(posterior, evidence.noise)
    steps = min(max(remaining, 1), HORIZON)
    tuning = Tuner.paper().ranges(
        twin, evidence, steps, rng, PUBLISHED_BETA, PUBLISHED_GAMMA, belief=belief, padded=HORIZON
    )
    return Bonus(tuning.acquisition(), len(state))


def _looked_at(state: SelectionState, noise: Noise, rng: np.random.Generator) -> tuple[IntArray, Evidence]:
    """The candidates of the twin, the most evaluated first, and what is known of them."""
    order = np.lexsort((rng.random(state.n_candidates), -state.counts))
    rows = np.sort(order[:CANDIDATES])
    return rows, Evidence(state.counts[rows], state.means[rows], noise.variances[rows])
