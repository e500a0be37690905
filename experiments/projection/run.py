"""Whether a trained projection predicts new prompts better than kriging on principal coordinates (refinement's model).

    python experiments/projection/run.py [--repetitions 15]

Of a table's prompts n are evaluated five times each; the others' true means are predicted from latent vectors by
projection stochastic kriging trained from a warm start with early stopping (``trained``), by the same without training
(``default``: kriging of finite rank on the principal coordinates), by stochastic kriging on these coordinates
(``kriging``), and by PSK as published (``paper``). Reported are the RMSE, the mean log density of the true means, and
where training stopped.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).parents[1]))

from bestprompt.kriging.inputs import Observed
from bestprompt.kriging.kernels import typical_distance
from bestprompt.kriging.projection import Principal, ProjectionKriging, kriging_projection, paper_kriging
from bestprompt.kriging.stochastic import KrigingModel
from bestprompt.rng import stream
from protocol import arguments, fill, tables

SIZES = (20, 40, 70)
EVALUATIONS = 5
RECIPES = {
    "trained": ProjectionKriging(),
    "default": kriging_projection(),
    "kriging": None,
    "paper": paper_kriging(),
}


def main() -> None:
    """Command line."""
    chosen = arguments(__doc__)
    found = tables([chosen.tables]) if chosen.tables else tables()

    def measure(repetition: int, table: str, n: int, method: str) -> dict[str, float]:
        replay, score = found[table], found[table].score(repetition)
        X, order = replay.candidates.X, stream(repetition, "split", n).permutation(len(replay.truth))
        train, test = order[:n], order[n:]
        scores = np.array([[score(int(c), r) for r in range(EVALUATIONS)] for c in train])
        # One variance for all, as right-or-wrong scores of the whole have it: how noise is estimated is not at issue.
        variances = np.full(n, scores.mean() * (1.0 - scores.mean()) / EVALUATIONS)
        principal, recipe = Principal.of(X, ProjectionKriging().inputs), RECIPES[method]
        stopped = 0
        if recipe is None:
            data = Observed(principal.coordinates(X[train]), train, scores.mean(axis=1), variances)
            kriging = KrigingModel(nugget=True).fit(data, unit=typical_distance(principal.rows))
            mean, variance = kriging.predict(principal.coordinates(X[test]))
            deviation = np.sqrt(variance)
        else:
            data = Observed(X[train], train, scores.mean(axis=1), variances)
            psk = recipe.fit(principal, data, stream(repetition, "psk", n))
            mean, std = psk.predict(X[test])
            deviation, stopped = np.sqrt(std**2 + psk.nugget), psk.checkpoint
        truth = replay.truth[test]
        density = norm.logpdf(truth, mean, np.maximum(deviation, 1e-3)).mean()
        return {"rmse": float(np.sqrt(((mean - truth) ** 2).mean())), "density": float(density), "stopped": stopped}

    sizes = SIZES[:1] if chosen.small else SIZES
    cells = [(r, t, n, m) for r in range(chosen.repetitions) for t in found for n in sizes for m in RECIPES]
    path = chosen.results or Path(__file__).with_name("results.csv")
    fill(path, "repetition table n method", "rmse density stopped", cells, measure, chosen.ray)


if __name__ == "__main__":
    main()
