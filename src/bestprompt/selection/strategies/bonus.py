"""The bonus of M-UCB in default mode: scaled to the spread of the scores, and tuned on the stochastic-kriging twin.

Notation (paper symbol → name):
    (b, c)     β_t = b sqrt(2 ln t), γ(m) = c·spread/sqrt(1 + m)     → ``Tuning.beta``, ``Tuning.gamma``
    T − t      evaluations left, of which a run on the twin uses H   → ``remaining``, ``HORIZON``

After the warm-up, and again whenever the observations have doubled, each pair of a grid is tried in simulated runs on
the twin and the best is kept (paper: "Hyperparameter Selection in Acquisition Function"). To bound the cost
whatever the run: at most ``HORIZON`` simulated evaluations, in one program that serves any number of them, and a twin
of at most ``CANDIDATES`` candidates, the most evaluated first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bestprompt.acquisition.functions import ModifiedUCB
from bestprompt.choices import TuningName
from bestprompt.selection.core.state import SelectionState
from bestprompt.selection.core.views import Noise
from bestprompt.tuning.synthetic import kriging_twin
from bestprompt.tuning.tuner import Tuner
from bestprompt.types import Evidence, FloatArray

HORIZON = 128
CANDIDATES = 256
RANK = 32
TUNER = Tuner(n_replications=16)


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
    order = np.lexsort((rng.random(len(Z)), -state.counts))
    rows = np.sort(order[:CANDIDATES])
    evidence = Evidence(state.counts[rows], state.means[rows], noise.variances[rows])
    twin = kriging_twin(Z[rows], evidence, rank=RANK)
    tune = TUNER.grid if over == "grid" else TUNER.ranges
    tuning = tune(twin, evidence, min(max(remaining, 1), HORIZON), rng, padded=HORIZON)
    return Bonus(tuning.acquisition(), len(state))
