"""E2: M-UCB against PR-M-UCB(starts, iterations), score of the selected prompt and time (paper, section 6.2).

    python experiments/e2_acquisition/run.py [--repetitions 15]

As published: T = 500, a Bayesian neural network by variational inference with K = 100 draws, a random 5 % of prompts
warmed up five times each. The score is the table's mean of the selected prompt, time is that of the sequential step in
CPU seconds, which hardly depend on what else the machine does. Where a table has fewer than N prompts, the others are
vectors moved from its own by a tenth of the spread, with the scores of the prompt they were moved from.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import bestprompt as bp
from bestprompt.rng import stream
from bestprompt.selection import SelectorConfig
from protocol import arguments, fill, tables

SIZES = (200, 500, 800, 1000)
BUDGET = 500
PROBABILISTIC = {"PR-M-UCB(1,10)": (1, 10), "PR-M-UCB(5,20)": (5, 20), "PR-M-UCB(5,50)": (5, 50)}
METHODS = ("M-UCB", *PROBABILISTIC, "random search", "default")


def config(method: str, budget: int, seed: int) -> SelectorConfig:
    """What the method is."""
    if method == "default":
        return SelectorConfig(budget=budget, seed=seed)
    if method == "random search":
        return SelectorConfig(budget=budget, seed=seed, policy="random")
    published = {"budget": budget, "seed": seed, "mode": "paper", "warmup": "random", "surrogate": "bnn"}
    if method == "M-UCB":
        return SelectorConfig(**published, maximizer="argmax")
    starts, iterations = PROBABILISTIC[method]
    return SelectorConfig(
        **published, maximizer="reinforce", maximizer_options={"starts": starts, "iterations": iterations}
    )


def main() -> None:
    """Command line."""
    chosen = arguments(__doc__)
    found = tables([chosen.tables]) if chosen.tables else tables()
    budget = 40 if chosen.small else BUDGET

    def measure(repetition: int, table: str, n: int, method: str) -> dict[str, float]:
        replay, rng = found[table], stream(repetition, "enlarged", n)
        Z, prompts = replay.candidates.Z, len(replay.candidates.prompts)
        rows = np.concatenate([rng.permutation(prompts), rng.integers(prompts, size=max(n - prompts, 0))])[:n]
        moved = 0.1 * Z.std(axis=0) * rng.standard_normal((n, Z.shape[1])) * (np.arange(n) >= prompts)[:, None]
        score = replay.score(repetition)
        begun = time.process_time()
        result = bp.select(
            Z[rows] + moved,
            lambda c, r: score(int(rows[c]), r + 10_000 * int(c)),
            budget,
            config=config(method, budget, repetition),
        )
        seconds = time.process_time() - begun
        return {"score": float(replay.truth[rows[result.candidate]]), "seconds": seconds}

    sizes = SIZES[:1] if chosen.small else SIZES
    cells = [(r, t, n, m) for r in range(chosen.repetitions) for t in found for n in sizes for m in METHODS]
    path = chosen.results or Path(__file__).with_name("results.csv")
    fill(path, "repetition table n method", "score seconds", cells, measure, chosen.ray)


if __name__ == "__main__":
    main()
