"""E5: the prompts that M-UCB-r selected, and default mode's beside them (paper, appendix "Selected Prompts").

    python experiments/e5_prompts/run.py

Of the fourth experiment's runs: for each table and method the prompt selected most often, the better one of equals.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from protocol import RUNS, arguments, rows

METHODS = ("M-UCB-r", "default")
BUDGET = 500


def main() -> None:
    """Command line."""
    chosen = arguments(__doc__)
    runs = [row for row in rows(RUNS) if row["method"] in METHODS and int(row["budget"]) == BUDGET]
    path = chosen.results or Path(__file__).with_name("results.csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["table", "method", "prompt", "score", "runs", "of"])
        for table, method in sorted({(row["table"], row["method"]) for row in runs}):
            own = [row for row in runs if (row["table"], row["method"]) == (table, method)]
            scores = {row["prompt"]: row["score"] for row in own}
            often = Counter(row["prompt"] for row in own)
            best = max(often, key=lambda prompt: (often[prompt], float(scores[prompt])))
            writer.writerow([table, method, best, scores[best], often[best], len(own)])


if __name__ == "__main__":
    main()
