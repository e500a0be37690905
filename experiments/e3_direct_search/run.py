"""E3: the two-stage framework, with and without refinement, against direct search in the latent space (section 6.3).

    python experiments/e3_direct_search/run.py [--repetitions 15]

As published: N = 200 prompts (half of a table that has fewer than 400), T evaluations, 20 more for refinement. What
refinement and direct search decode is the table's prompt nearest to the vector they chose, so all of the table can be
reached by them and half of it by the others. The score is the table's mean of the selected prompt. Results are
``experiments/runs.csv``, which the fourth and fifth experiment share.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from protocol import METHODS, arguments, fill_runs, tables

BUDGETS = (50, 200, 500, 1000)


def main() -> None:
    """Command line."""
    chosen = arguments(__doc__)
    found = tables([chosen.tables]) if chosen.tables else tables()
    budgets = BUDGETS[:1] if chosen.small else BUDGETS
    cells = [(r, t, b, m) for r in range(chosen.repetitions) for b in budgets for t in found for m in METHODS]
    fill_runs(cells, found, chosen.results, chosen.ray)


if __name__ == "__main__":
    main()
