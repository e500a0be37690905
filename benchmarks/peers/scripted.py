"""The part without a language model: every method gets the same stream of proposals of known quality.

    python benchmarks/peers/scripted.py [--seeds 20] [--minutes 9]      # goes on where it ended

Rows go to ``results/peers_scripted.jsonl``; ``test`` is the true score of the chosen prompt, ``best`` that of the best
prompt the run was shown.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from environments import RESULTS
from proxy import Proxy
from runs import Record, Workers, one_run
from scripted_world import FAMILIES, RIGHT, ScriptedModel, World

BUDGETS, SEEDS = (150, 300, 600), 20
BLOCK = 5  # seeds of all families and budgets before the next are begun; cheap budgets first
METHODS = (
    "uniform-proposals", "halving", "ours-proposals", "ours-ideas", "gepa", "mipro", "mipro-proposals", "dspy-gepa",
    "capo-proposals", "evoprompt-proposals",
)  # fmt: skip
KEY = ("family", "method", "budget", "seed")


def choose(proxy: Proxy, workers: Workers, run: dict[str, Any]) -> dict[str, Any]:
    """One run."""
    world = World(run["family"], run["seed"])
    model = ScriptedModel(world)
    job = {
        "seed": run["seed"],
        "examples": world.prompts[:1],
        "pairs": [{"input": question, "answer": RIGHT} for question in world.inputs()],
        "template": "{prompt}\n\n{input}",
        "max_tokens": 4,
    }
    row = one_run(proxy, workers, model, run, job, lambda question, output: float(output == RIGHT))
    if "error" in row:
        return row
    k = world.number(row.pop("prompt"))
    shown = world.truth[: 1 + model.proposed]
    return {
        **row,
        "chosen": k,
        "test": None if k is None else round(float(world.truth[k]), 4),
        "start": round(float(world.truth[0]), 4),
        "best": round(float(shown.max()), 4),
        "shown": model.proposed,
        "unknown": model.unknown,
    }


def main() -> None:
    """Makes the runs that are missing for as long as it may."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no run is begun after so many")
    arguments = parser.parse_args()
    end, record = time.monotonic() + 60 * arguments.minutes, Record(RESULTS / "peers_scripted.jsonl", KEY)
    runs = [
        {"family": family, "method": method, "budget": int(budget), "seed": seed}
        for block in range(0, arguments.seeds, BLOCK)
        for budget in arguments.budgets.split(",")
        for seed in range(block, min(block + BLOCK, arguments.seeds))
        for family in FAMILIES
        for method in arguments.methods.split(",")
    ]
    missing = [run for run in runs if run not in record]
    with Proxy() as proxy, Workers() as workers:
        for number, run in enumerate(missing, start=1):
            if time.monotonic() > end:
                break
            row = choose(proxy, workers, run)
            record.add(row)
            print(f"{number}/{len(missing)} {' '.join(str(run[name]) for name in KEY)}: true {row.get('test')} of "
                  f"{row.get('best')}, stated {row.get('stated')}, calls {row['calls']}+{row['refused']}, "
                  f"{row['seconds']} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
