"""Does it pay that candidates begin a block of common items at different places (``selection.core.rotation``)?

    python benchmarks/rotation.py            # results/rotation.md; some 20 minutes of one core

Regret at N = 100 with blocks of 1 (everybody meets item r in the r-th evaluation), 4, 10 and 30 items, on problems that
the selection benchmark neither reports nor was tuned on; the block itself was chosen on them. The same problems and the
same answers for every block.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np

from bestprompt.selection import SelectorConfig
from selection import run_selector
from selection_families import ITEM_FAMILIES, make_problem
from selection_replay import table_families

RESULT = Path(__file__).parent / "results" / "rotation.md"
BLOCKS, RATIOS, N, FIRST = (1, 4, 10, 30), (0.75, 1.5, 2.5), 100, 2000

HEAD = """# Regret with common items in blocks

`python benchmarks/rotation.py --reps {reps}`: mean regret at N = 100 on {reps} problems from {first} on; in brackets
the mean difference to blocks of 1 on the same problems ± its standard error. Within a block every candidate begins at
another item.

| family | T | {blocks} |
| --- | --- |{rule}"""


def regret(family: str, budget: int, seed: int, block: int) -> float:
    """Of one run."""
    problem = make_problem(family, N, seed)
    config = SelectorConfig(budget=budget, seed=seed, pairs="common", surrogate="average", block=block)
    selector, state = run_selector(problem, config, pace=80)
    return float(problem.truth.max() - problem.truth[selector.choice(state)])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--reps", type=int, default=100)
    reps = parser.parse_args().reps
    blocks = " | ".join(f"blocks of {b}" for b in BLOCKS)
    lines = [HEAD.format(reps=reps, first=FIRST, blocks=blocks, rule=" --- |" * len(BLOCKS))]
    for family, ratio in product((*ITEM_FAMILIES, *table_families()), RATIOS):
        budget = round(ratio * N)
        found = np.array([[regret(family, budget, FIRST + s, b) for b in BLOCKS] for s in range(reps)])
        off = found - found[:, :1]
        shown = [f"{found[:, 0].mean():.3f}"]
        for k in range(1, len(BLOCKS)):
            error = off[:, k].std(ddof=1) / np.sqrt(reps)
            shown.append(f"{found[:, k].mean():.3f} ({off[:, k].mean():+.3f} ± {error:.3f})")
        lines.append(f"| {family} | {budget} | " + " | ".join(shown) + " |")
        print(lines[-1], flush=True)
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
