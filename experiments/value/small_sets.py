"""Does refinement find better prompts, or does it only spend more calls? Small sets, several seeds, equal budgets.

From the bundled example prompts of every task that the model tells prompts apart on, sets of ``CANDIDATES``:
  * ``selected``  chosen with ``BUDGET`` calls, no refinement (M-UCB's place);
  * ``longer``    the same with ``BUDGET + ADDITIONAL`` calls, still no refinement;
  * ``refined``   ``BUDGET`` calls of selection, then ``ADDITIONAL`` of refinement (M-UCB-r's place);
  * ``one budget`` ``BUDGET + ADDITIONAL`` calls, split by the rule of ``default`` mode.
The seed changes the candidates, the split of the pairs and every draw. Test pairs are as in ``run.py``. A seed of a
task is one difference; intervals are 95 %, Student, over all of them.

    python experiments/value/small_sets.py --seeds 0,1,2,3
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from bestprompt.tasks import Task
from bestprompt.types import LanguageModel
from run import add_model_options, choose, fill, fresh_pairs, open_model, test_scores

HERE = Path(__file__).parent
CANDIDATES, BUDGET, ADDITIONAL = 40, 160, 80
_SET = {"search.source": "latent", "search.candidates": CANDIDATES}
CONTESTANTS: dict[str, dict[str, Any]] = {
    "selected": {**_SET, "refinement.mode": "off", "budget.calls": BUDGET},
    "longer": {**_SET, "refinement.mode": "off", "budget.calls": BUDGET + ADDITIONAL},
    "refined": {
        **_SET, "refinement.mode": "m-ucb-r", "refinement.additional": ADDITIONAL,
        "budget.calls": BUDGET + ADDITIONAL,
    },
    "one budget": {**_SET, "refinement.mode": "default", "budget.calls": BUDGET + ADDITIONAL},
}  # fmt: skip
COMPARISONS = (("refined", "selected"), ("refined", "longer"), ("one budget", "longer"), ("longer", "selected"))


def measure(task: Task, model: LanguageModel, seed: int) -> dict[str, Any]:
    """What each contestant chose, and its mean score on fresh pairs."""
    pairs = fresh_pairs(task, seed)
    row: dict[str, Any] = {}
    for name, overrides in CONTESTANTS.items():
        row[name] = choose(task, model, overrides, seed)
        row[name]["score"] = float(test_scores(task, model, row[name]["prompt"], pairs).mean())
        print(f"  {name}: {row[name]['score']:.3f}  {row[name]['prompt']!r} ({row[name]['source']})", flush=True)
    return row


def gap(rows: list[dict[str, Any]], first: str, second: str) -> str:
    """Mean difference over ``rows`` with its interval."""
    values = np.array([row[first]["score"] - row[second]["score"] for row in rows])
    if len(values) < 2:
        return f"{values.mean():+.3f}"
    half = float(student.ppf(0.975, len(values) - 1)) * float(values.std(ddof=1)) / np.sqrt(len(values))
    return f"{values.mean():+.3f} ({values.mean() - half:+.3f} to {values.mean() + half:+.3f})"


def table(results: dict[str, dict[str, Any]]) -> str:
    """The results as a page."""
    lines = [
        "# Does refinement find better prompts, or does it only spend more calls?",
        "",
        "Command: `python experiments/value/small_sets.py --seeds 0,1,2,3`.",
        f"Sets of {CANDIDATES}, {BUDGET} calls, {ADDITIONAL} more.",
        "What the columns mean is explained at the top of the script. Mean scores on fresh test pairs; `new` is the",
        "share of runs of `refined` and `one budget` that return a prompt refinement has written.",
    ]
    for model, rows in results.items():
        titles = [f"{first} − {second}" for first, second in COMPARISONS]
        lines += ["", f"## {model}", "", "| " + " | ".join(["task", "seeds", *CONTESTANTS, "new", *titles]) + " |"]
        lines.append("| " + " | ".join(["---"] * (3 + len(CONTESTANTS) + len(titles))) + " |")
        tasks = list(dict.fromkeys(key.split("#")[0] for key in rows))
        for name in [*tasks, "all"]:
            mine = [row for key, row in rows.items() if name in ("all", key.split("#")[0])]
            scores = [f"{np.mean([row[c]['score'] for row in mine]):.3f}" for c in CONTESTANTS]
            new = np.mean([row[c]["source"] == "refined" for row in mine for c in ("refined", "one budget")])
            gaps = [gap(mine, first, second) for first, second in COMPARISONS]
            lines.append("| " + " | ".join([name, str(len(mine)), *scores, f"{new:.0%}", *gaps]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measures what is missing and writes the table after each run."""
    parser = argparse.ArgumentParser(description="Measure what refinement adds to a small set.")
    add_model_options(parser)
    arguments = parser.parse_args()
    target = arguments.output / "small_sets.json"
    results: dict[str, dict[str, Any]] = json.loads(target.read_text()) if target.exists() else {}
    model = open_model(arguments)

    def save() -> None:
        target.write_text(json.dumps(results, ensure_ascii=False) + "\n")
        (arguments.output / "small_sets.md").write_text(table(results))

    rows = results.setdefault(model.name, {})
    fill(rows, arguments, model, lambda task, seed: measure(task, model, seed), save)
    save()
    print(table(results))


if __name__ == "__main__":
    main()
