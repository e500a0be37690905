"""E1: how well surrogates approximate mean scores of prompts that were not evaluated (paper, section 6.1).

    python experiments/e1_surrogates/run.py [--repetitions 15]

As published: of N prompts 70 % are evaluated five times each, the others are predicted; K = 100 draws of the posterior;
RMSE against the mean of 50 evaluations, and the share of those means inside the central 90 % of the draws. Rows besides
the paper's: default mode's belief, and the mean of all scores seen, which is what knowing nothing of prompts gives.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from bestprompt.kriging.variance import variance_model
from bestprompt.rng import stream
from bestprompt.selection import Selector, SelectorConfig
from bestprompt.surrogates.base import make_surrogate
from bestprompt.surrogates.published import published_options
from bestprompt.types import Evidence, FloatArray, Observation
from protocol import arguments, fill, tables

SIZES = (50, 100, 200, 500)
PUBLISHED = {"BLR": "blr", "GP": "gp-rank", "BNN": "bnn", "VAE": "vae"}
METHODS = (*PUBLISHED, "default", "mean")
EVALUATIONS, TESTS = 5, 50


def predicted(method: str, Z: FloatArray, seen: dict[int, list[float]], seed: int) -> tuple[FloatArray, ...]:
    """(N,) mean, and ends of the central 90 %, at every candidate after the scores ``seen``."""
    known = np.array(list(seen))
    scores = np.array(list(seen.values()))
    if method == "mean":
        ends = np.quantile(scores.mean(axis=1), (0.05, 0.95))
        return tuple(np.full(len(Z), value) for value in (scores.mean(), *ends))
    if method == "default":
        selector = Selector(Z, SelectorConfig(budget=scores.size + 1, seed=seed))
        told = [Observation(n, r, v) for n, values in seen.items() for r, v in enumerate(values)]
        found = selector.recommend(selector.tell(selector.initial(), told))
        return found.estimates, *(found.estimates + side * found.deviations for side in (-1.645, 1.645))
    counts, means = np.zeros(len(Z), dtype=np.int64), np.zeros(len(Z))
    counts[known], means[known] = EVALUATIONS, scores.mean(axis=1)
    noise = variance_model("kriging")(Z, known, scores.var(axis=1, ddof=1), counts[known])
    surrogate = make_surrogate(PUBLISHED[method], **published_options(PUBLISHED[method], Z))
    posterior = surrogate.fit(Z, Evidence(counts, means, noise), stream(seed, "e1")).posterior(Z)
    return posterior.mean, *np.quantile(posterior.draws, (0.05, 0.95), axis=0)


def main() -> None:
    """Command line."""
    chosen = arguments(__doc__)
    found = tables([chosen.tables]) if chosen.tables else tables()

    def measure(repetition: int, table: str, n: int, method: str) -> dict[str, float]:
        replay = found[table].sample(n, repetition)
        score, order = replay.score(repetition), stream(repetition, "split", n).permutation(n)
        train, test = order[: round(0.7 * n)], order[round(0.7 * n) :]
        seen = {int(c): [score(int(c), r) for r in range(EVALUATIONS)] for c in train}
        truth = np.array([np.mean([score(int(c), 1000 + r) for r in range(TESTS)]) for c in test])
        mean, low, high = (values[test] for values in predicted(method, replay.candidates.Z, seen, repetition))
        covered = float(((low <= truth) & (truth <= high)).mean())
        return {"rmse": float(np.sqrt(((mean - truth) ** 2).mean())), "covering": covered}

    sizes = SIZES[:1] if chosen.small else SIZES
    cells = [
        (repetition, table, n, method)
        for repetition in range(chosen.repetitions)
        for table, replay in found.items()
        for n in sizes
        for method in METHODS
        if n <= len(replay.candidates.prompts)
    ]
    path = chosen.results or Path(__file__).with_name("results.csv")
    fill(path, "repetition table n method", "rmse covering", cells, measure, chosen.ray)


if __name__ == "__main__":
    main()
