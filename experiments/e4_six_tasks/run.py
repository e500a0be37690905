"""E4: every method on every task, T = 500 (paper, section 6.3, the radar).

    python experiments/e4_six_tasks/run.py [--repetitions 15]

The setting of the third experiment at one budget, on every table there is. Results are ``experiments/runs.csv``.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from protocol import METHODS, arguments, fill_runs, tables

BUDGET = 500


def main() -> None:
    """Command line."""
    chosen = arguments(__doc__)
    found = tables([chosen.tables]) if chosen.tables else tables()
    budget = 30 if chosen.small else BUDGET
    cells = [(r, t, budget, m) for r in range(chosen.repetitions) for t in found for m in METHODS]
    fill_runs(cells, found, chosen.results, chosen.ray)


if __name__ == "__main__":
    main()
