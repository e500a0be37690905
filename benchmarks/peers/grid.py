"""The comparison on real models: task × method × budget × seed, cheapest first.

    python benchmarks/peers/grid.py                      # goes on where it ended; a kill loses one run at most
    python benchmarks/peers/grid.py --model qwen.gguf --minutes 9 --tasks plural,units --budgets 150 --seeds 5
    python benchmarks/peers/grid.py --plan               # what is missing, and how long it would take

Rows go to ``results/peers.jsonl``. The test score of each chosen prompt is measured on pairs that no method has seen.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from environments import HOME, RESULTS
from methods import METHODS
from problems import TASKS, TEST, Problem, load_task, test_score
from proxy import Proxy
from runs import Record, Workers, one_run

import bestprompt as bp
from bestprompt.types import LanguageModel

BUDGETS, SEEDS = (150, 300, 600), 5
KEY = ("model", "task", "method", "budget", "seed")
# Of use where there is one prompt to start from, as in the scripted part; with a task's examples they do as others do.
ELSEWHERE = ("ours-ideas", "capo-proposals", "evoprompt-proposals")


def open_model(path: str | None) -> LanguageModel:
    """The embedded model, or a GGUF file, with its answers kept on disk."""
    HOME.mkdir(parents=True, exist_ok=True)
    return bp.lm.cached(bp.lm.embedded(path, context=4096, threads=2), HOME / "answers.db")


def wanted(arguments: argparse.Namespace, model: str) -> Iterator[dict[str, Any]]:
    """All runs in order: small budgets first, and every task and method before the next seed."""
    for budget in arguments.budgets:
        for seed in range(arguments.seeds):
            for task in arguments.tasks:
                for method in arguments.methods:
                    yield {"model": model, "task": task, "method": method, "budget": budget, "seed": seed}


def choose(proxy: Proxy, workers: Workers, lm: LanguageModel, run: dict[str, Any], log: bool) -> dict[str, Any]:
    """One run with the test score of what it chose."""
    task, problem = load_task(run["task"]), Problem(run["task"], run["seed"])
    pairs = {pair.input: pair for pair in problem.pairs}

    def score(question: str, output: str) -> float:
        return task.scorer.score([output], [pairs[question]])[0].value

    row = one_run(proxy, workers, lm, run, problem.as_job(), score, log)
    if "error" not in row:
        row["test_pairs"] = TEST
        row["test"] = round(test_score(run["task"], lm, row["prompt"], row["demos"]), 4)
    return {**row, "date": time.strftime("%Y-%m-%d")}


def plan(missing: list[dict[str, Any]], record: Record) -> str:
    """How long the missing runs would take, by those of the same method that were made."""
    seconds: dict[tuple[str, str], list[float]] = {}
    for row in record.rows:
        seconds.setdefault((row["model"], row["method"]), []).append(row["seconds"] / row["budget"])
    known = [run for run in missing if (run["model"], run["method"]) in seconds]
    total = sum(run["budget"] * sum(of) / len(of) for run in known for of in [seconds[run["model"], run["method"]]])
    return f"{len(missing)} runs are missing; {len(known)} of them would take about {total / 3600:.1f} h"


def arguments_of() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a GGUF file; the embedded model if left out")
    parser.add_argument("--tasks", default=",".join(TASKS), help="T,…")
    parser.add_argument("--methods", default=",".join(name for name in METHODS if name not in ELSEWHERE), help="M,…")
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)), help="calls,…")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no run is begun after so many")
    parser.add_argument("--log", action="store_true", help="keep requests and answers of these runs")
    parser.add_argument(
        "--again", default="", help="M,… forget what is recorded of these methods first, as after a change"
    )
    parser.add_argument("--plan", action="store_true", help="say what is missing and end")
    parser.add_argument("--output", type=Path, default=RESULTS / "peers.jsonl")
    arguments = parser.parse_args()
    for name, known in (("tasks", TASKS), ("methods", METHODS), ("again", METHODS)):
        given = [part for part in getattr(arguments, name).split(",") if part]
        if unknown := [part for part in given if part not in known]:
            parser.error(f"--{name}: there is no {unknown[0]!r}; choose from {', '.join(known)}")
        setattr(arguments, name, given)
    arguments.budgets = [int(part) for part in arguments.budgets.split(",")]
    return arguments


def main() -> None:
    """Makes the runs that are missing for as long as it may."""
    arguments = arguments_of()
    end = time.monotonic() + 60 * arguments.minutes
    record, lm = Record(arguments.output, KEY), open_model(arguments.model)
    if arguments.again:
        record.forget(lambda row: row["model"] == lm.name and row["method"] in arguments.again)
    missing = [run for run in wanted(arguments, lm.name) if run not in record]
    print(plan(missing, record), flush=True)
    if arguments.plan:
        return
    with Proxy() as proxy, Workers() as workers:
        for number, run in enumerate(missing, start=1):
            if time.monotonic() > end:
                break
            row = choose(proxy, workers, lm, run, arguments.log)
            record.add(row)
            what = " ".join(str(run[name]) for name in KEY[1:])
            print(f"{number}/{len(missing)} {what}: test {row.get('test')} stated {row.get('stated')} "
                  f"calls {row['calls']}+{row['refused']} in {row['seconds']} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
