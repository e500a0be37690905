"""Regret of the selected candidate against ranking-and-selection and Bayesian-optimisation peers.

    python benchmarks/selection.py run --group ours --reps 100          # likewise: classic, paper
    python benchmarks/selection.py run --group optuna --peer-python PY  # PY: python of an environment with the peers
    python benchmarks/selection.py run --group botorch --peer-python PY --reps 12
    python benchmarks/selection.py table                                # results/selection.md from all groups

Macro-replication s of a cell (family, N, T) is the same problem with the same answers for every contestant. Results are
written after each macro-replication, one file per group, and a run continues where the file ends, so that groups may be
run apart, stopped and resumed. ``--quick`` runs a small corner. Peers are asked for one evaluation at a time; ours in
rounds of 1 + t // 80 after t answers and paper mode in rounds of 1 + t // 12, which saves time here and can only
handicap them. Ours is the default mode without the networks' kernels (``surrogate = average``), whose fits would take
seconds per run. It also records its verdict, from which ``calibration.py`` makes its table. Score tables under
``benchmarks/tables`` (see ``score_table.py``) are families too. Constants of ours were chosen on problems 1000 and
up; reported are problems 0 and up.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bestprompt.selection import SelectionState, Selector, SelectorConfig
from bestprompt.types import Observation
from peers.client import PeerWorker
from selection_contestants import CONTESTANTS
from selection_families import FAMILIES, ITEM_FAMILIES, make_problem
from selection_replay import table_families
from selection_table import write_table

RESULTS = Path(__file__).parent / "results"
RATIOS = (0.75, 1.5, 2.5, 5.0, 15.0)
Runner = Callable[[Any, int, int], "int | list[float]"]


def run_selector(problem: Any, config: SelectorConfig, pace: int) -> tuple[Selector, SelectionState]:
    """A whole run, asked in rounds of 1 + t // ``pace`` after t answers."""
    selector, common = Selector(problem.Z, config), config.pairs == "common"
    state = selector.initial()
    while proposals := selector.ask(state, 1 + len(state) // pace):
        answers = [problem.score(p.candidate, p.replication, common) for p in proposals]
        state = selector.tell(
            state, [Observation(p.candidate, p.replication, v) for p, v in zip(proposals, answers, strict=True)]
        )
    return selector, state


def ours(problem: Any, budget: int, seed: int) -> list[float]:
    """Default mode, common pairs where the family has items: regret and the columns of ``VERDICT``."""
    pairs = "common" if problem.has_items else "independent"
    config = SelectorConfig(budget=budget, seed=seed, pairs=pairs, surrogate="average")
    selector, state = run_selector(problem, config, pace=80)
    rec = selector.recommend(state)
    true = float(problem.truth[rec.candidate])
    stated = [rec.probability_best, rec.probability_within_delta, *rec.interval, rec.score, true]
    return [float(problem.truth.max()) - true, *stated, float(rec.means[rec.candidate]), rec.expected_loss]


def paper(problem: Any, budget: int, seed: int) -> int:
    """Paper mode with the Bayesian neural network."""
    selector, state = run_selector(problem, SelectorConfig(budget=budget, seed=seed, mode="paper"), pace=12)
    return selector.choice(state)


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
    """(family, N, T) in the order they are run; a table has at most the prompts that are in it."""
    tables = table_families()
    families = arguments.families.split(",") if arguments.families else [*FAMILIES, *ITEM_FAMILIES, *tables]
    sizes = [int(n) for n in arguments.sizes.split(",")]
    ratios = [float(r) for r in arguments.ratios.split(",")]
    pairs = dict.fromkeys((f, min(n, tables.get(f, n))) for n in sizes for f in families)
    return [(f, n, round(r * n)) for r in ratios for f, n in pairs]


def run(arguments: argparse.Namespace) -> None:
    """Runs a group, one macro-replication of every cell after another."""
    path = RESULTS / f"selection_{arguments.group}.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    members = group_members(arguments.group, arguments.peer_python)
    end = time.monotonic() + 60.0 * arguments.minutes
    for seed in range(arguments.reps):
        for family, n, budget in cells(arguments):
            for name, contestant in members.items():
                rows = record.setdefault(f"{family}|{n}|{budget}|{name}", [])
                if len(rows) != seed or time.monotonic() > end:
                    continue
                problem = make_problem(family, n, seed)
                found = contestant(problem, budget, seed)
                if isinstance(found, list):
                    rows.append([round(value, 5) for value in found])
                else:
                    rows.append(round(float(problem.truth.max() - problem.truth[found]), 5))
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
