"""Regret of the selected candidate against ranking-and-selection and Bayesian-optimisation peers.

    python benchmarks/selection.py run --group ours --reps 100          # likewise: classic, paper
    python benchmarks/selection.py run --group optuna --peer-python PY  # PY: python of an environment with the peers
    python benchmarks/selection.py run --group botorch --peer-python PY --reps 12
    python benchmarks/selection.py table                                # results/selection.md from all groups

Macro-replication s of a cell (family, N, T) is the same problem with the same answers for every contestant. Results are
written after each macro-replication, one file per group, and a run continues where the file ends, so that groups may be
run apart, stopped and resumed. ``--quick`` runs a small corner. Contestants see one problem one answer at a time; ours
and paper mode are asked in rounds that grow with the evidence (1 + t // 12), which can only handicap them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bestprompt.selection import Selector, SelectorConfig
from bestprompt.types import Observation
from peers.client import PeerWorker
from selection_contestants import CONTESTANTS
from selection_families import FAMILIES, ITEM_FAMILIES, Problem, make_problem
from selection_table import write_table

RESULTS = Path(__file__).parent / "results"
RATIOS = (0.75, 1.5, 2.5, 5.0, 15.0)
Runner = Callable[[Problem, int, int], int]


def run_selector(problem: Problem, config: SelectorConfig) -> int:
    """The candidate ours recommends, asked in growing rounds."""
    selector, common = Selector(problem.Z, config), config.pairs == "common"
    state = selector.initial()
    while len(state) < config.budget:
        proposals = selector.ask(state, 1 + len(state) // 12)
        state = selector.tell(
            state,
            [
                Observation(p.candidate, p.replication, problem.score(p.candidate, p.replication, common))
                for p in proposals
            ],
        )
    return selector.choice(state)


def ours(problem: Problem, budget: int, seed: int) -> int:
    """Default mode; common pairs where the family has items."""
    pairs = "common" if problem.item_sd else "independent"
    return run_selector(problem, SelectorConfig(budget=budget, seed=seed, pairs=pairs))


def paper(problem: Problem, budget: int, seed: int) -> int:
    """Paper mode with the Bayesian neural network."""
    return run_selector(problem, SelectorConfig(budget=budget, seed=seed, mode="paper"))


def classic(name: str) -> Runner:
    """One of the ranking-and-selection contestants."""
    return lambda problem, budget, seed: CONTESTANTS[name](problem, budget, np.random.default_rng([seed, budget]))


def group_members(group: str, peer_python: str | None) -> dict[str, Runner]:
    """Contestants of a group by name."""
    if group == "ours":
        return {"ours": ours}
    if group == "paper":
        return {"paper mode": paper}
    if group == "classic":
        return {name: classic(name) for name in CONTESTANTS}
    if not peer_python:
        raise SystemExit("this group needs --peer-python, or BESTPROMPT_PEER_PYTHON, the python that has the peers")
    worker = PeerWorker(peer_python)
    names = {"optuna": ["Optuna TPE"], "botorch": ["BoTorch GP+UCB", "BoTorch qLogNEI"]}[group]
    return {name: worker.contestant(name) for name in names}


def cells(arguments: argparse.Namespace) -> list[tuple[str, int, int]]:
    """(family, N, T) in the order they are run."""
    families = arguments.families.split(",") if arguments.families else [*FAMILIES, *ITEM_FAMILIES]
    sizes = [int(n) for n in arguments.sizes.split(",")]
    ratios = [float(r) for r in arguments.ratios.split(",")]
    return [(f, n, round(r * n)) for n in sizes for r in ratios for f in families]


def run(arguments: argparse.Namespace) -> None:
    """Runs a group, one macro-replication of every cell after another."""
    path = RESULTS / f"selection_{arguments.group}.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    members = group_members(arguments.group, arguments.peer_python)
    end = time.monotonic() + 60.0 * arguments.minutes
    for seed in range(arguments.reps):
        for family, n, budget in cells(arguments):
            problem = make_problem(family, n, seed)
            for name, contestant in members.items():
                regrets = record.setdefault(f"{family}|{n}|{budget}|{name}", [])
                if len(regrets) != seed:
                    continue
                chosen = contestant(problem, budget, seed)
                regrets.append(round(float(problem.truth.max() - problem.truth[chosen]), 5))
            if time.monotonic() > end:
                break
        path.write_text(json.dumps(record, separators=(",", ":")) + "\n")
        if time.monotonic() > end:
            break


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    runner = commands.add_parser("run")
    runner.add_argument("--group", choices=["ours", "classic", "paper", "optuna", "botorch"], required=True)
    runner.add_argument("--reps", type=int, default=100)
    runner.add_argument("--families", default="")
    runner.add_argument("--sizes", default="100,200")
    runner.add_argument("--ratios", default=",".join(str(r) for r in RATIOS))
    runner.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many minutes")
    runner.add_argument("--quick", action="store_true")
    runner.add_argument("--peer-python", default=os.environ.get("BESTPROMPT_PEER_PYTHON"))
    commands.add_parser("table")
    arguments = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    if arguments.command == "table":
        write_table(RESULTS)
        return
    if arguments.quick:
        arguments.sizes, arguments.ratios, arguments.reps = "100", "1.5", min(arguments.reps, 3)
    run(arguments)


if __name__ == "__main__":
    main()
