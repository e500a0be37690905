"""Regret of the selected candidate against ranking-and-selection and Bayesian-optimisation peers.

    python benchmarks/selection.py run --group ours --reps 100          # or another of GROUPS
    python benchmarks/selection.py run --group optuna --peer-python PY  # PY: python of an environment with the peers
    python benchmarks/selection.py run --group botorch --peer-python PY --reps 12
    python benchmarks/selection.py run --group ours --minutes 60 --reps-at 15:40   # one hour; T = 15N gets 40 only
    python benchmarks/selection.py plan --group ours                    # seconds per run by (N, T), hours to the end
    python benchmarks/selection.py table                                # results/selection.md from all groups

Macro-replication s of a cell (family, N, T) is the same problem with the same answers for every contestant. A cell gets
macro-replication s + 1 only when all have had s, so that a run that is stopped leaves a balanced table. Results are
written as it goes, one file per group, and a run continues where the file ends, so that groups may be run apart,
stopped and resumed. ``--quick`` runs a small corner. Peers are asked for one evaluation at a time; ours in
rounds of 1 + t // 80 after t answers and paper mode in rounds of 1 + t // 12, which saves time here and can only
handicap them. Ours is the default mode; "ours, auto" is a former form of it, in which networks' kernels could join the
average. Ours also records its verdict, from which ``calibration.py`` makes its table. Score tables under
``benchmarks/tables`` (``bestprompt.replay``) are families too. Constants of ours were chosen on problems 1000 and up;
reported are problems 0 and up.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bestprompt.execution.fan_out import fan_out
from bestprompt.selection import SelectionState, Selector, SelectorConfig
from bestprompt.types import Observation
from selection_contestants import CONTESTANTS
from selection_families import FAMILIES, HIDING_FAMILIES, ITEM_FAMILIES, LOOK_ALIKES, make_problem
from selection_oracle import Known, KnownFamilies, connoisseur_strategy, oracle_strategy
from selection_peer_client import PeerWorker
from selection_replay import table_families
from selection_table import (
    APPRENTICE,
    BLIND,
    CONNOISSEUR,
    ORACLE,
    ORACLE_CONCLUDES,
    OURS,
    OURS_CONCLUDES,
    PAPER,
    write_table,
)

RESULTS = Path(__file__).parent / "results"
RATIOS = (0.75, 1.5, 2.5, 5.0, 15.0)
SAVED_EVERY = 20.0  # seconds
TIMED = ("smooth", "no-structure-graded", "items")
KNOWING = ("oracle", "blind", "connoisseur", "apprentice", "crossed")  # what no run can know
GROUPS = ("ours", *KNOWING, "classic", "paper", "optuna", "botorch")
UNREPORTED = 1000  # problems from here on are for tuning and timing
Runner = Callable[[Any, int, int], "int | list[float]"]
Cell = tuple[str, int, int]
Record = dict[str, list[Any]]
A = TypeVar("A")


def run_selector(
    problem: Any, config: SelectorConfig, pace: int, strategy: Known | KnownFamilies | None = None
) -> tuple[Selector, SelectionState]:
    """A whole run, asked in rounds of 1 + t // ``pace`` after t answers."""
    selector, common = Selector(problem.Z, config, strategy), config.pairs == "common"
    state = selector.initial()
    while proposals := selector.ask(state, 1 + len(state) // pace):
        answers = [problem.score(p.candidate, p.replication, common) for p in proposals]
        state = selector.tell(
            state, [Observation(p.candidate, p.replication, v) for p, v in zip(proposals, answers, strict=True)]
        )
    return selector, state


def default_mode(
    problem: Any, budget: int, seed: int, strategy: Known | KnownFamilies | None = None
) -> tuple[Selector, SelectionState]:
    """A run in default mode, on common pairs where the family has items."""
    pairs = "common" if problem.has_items else "independent"
    config = SelectorConfig(budget=budget, seed=seed, pairs=pairs)
    return run_selector(problem, config, pace=80, strategy=strategy)


def ours(problem: Any, budget: int, seed: int) -> list[float]:
    """Default mode: regret and the columns of ``VERDICT``."""
    selector, state = default_mode(problem, budget, seed)
    rec = selector.recommend(state)
    true = float(problem.truth[rec.candidate])
    stated = [rec.probability_best, rec.probability_within_delta, *rec.interval, rec.score, true]
    return [float(problem.truth.max()) - true, *stated, float(rec.means[rec.candidate]), rec.expected_loss]


def oracle(problem: Any, budget: int, seed: int) -> int:
    """Default mode that knows the family's true prior and noise."""
    selector, state = default_mode(problem, budget, seed, oracle_strategy(problem))
    return selector.choice(state)


def blind(problem: Any, budget: int, seed: int) -> int:
    """The same without knowing which coordinates count."""
    selector, state = default_mode(problem, budget, seed, oracle_strategy(problem, blind=True))
    return selector.choice(state)


def connoisseur(problem: Any, budget: int, seed: int) -> int:
    """Default mode that knows the families, and not which of those that look alike it faces."""
    selector, state = default_mode(problem, budget, seed, connoisseur_strategy(problem))
    return selector.choice(state)


def apprentice(problem: Any, budget: int, seed: int) -> int:
    """The same without knowing how good the candidates are as a whole, and how far apart."""
    selector, state = default_mode(problem, budget, seed, connoisseur_strategy(problem, apprentice=True))
    return selector.choice(state)


def oracle_concludes(problem: Any, budget: int, seed: int) -> int:
    """Ours asks; of what was answered, the oracle makes its choice."""
    selector, state = default_mode(problem, budget, seed)
    return Selector(problem.Z, selector.config, oracle_strategy(problem)).choice(replace(state, belief=None))


def ours_concludes(problem: Any, budget: int, seed: int) -> int:
    """The oracle asks; of what was answered, ours makes its choice."""
    selector, state = default_mode(problem, budget, seed, oracle_strategy(problem))
    return Selector(problem.Z, selector.config).choice(replace(state, belief=None))


def paper(problem: Any, budget: int, seed: int) -> int:
    """Paper mode with the Bayesian neural network."""
    selector, state = run_selector(problem, SelectorConfig(budget=budget, seed=seed, mode="paper"), pace=12)
    return selector.choice(state)


def classic(name: str) -> Runner:
    """One of the ranking-and-selection contestants."""
    return lambda problem, budget, seed: CONTESTANTS[name](problem, budget, np.random.default_rng([seed, budget]))


def group_members(group: str, peer_python: str | None) -> dict[str, Runner]:
    """Contestants of a group by name."""
    own: dict[str, dict[str, Runner]] = {
        "ours": {OURS: ours}, "oracle": {ORACLE: oracle}, "blind": {BLIND: blind}, "paper": {PAPER: paper},
        "connoisseur": {CONNOISSEUR: connoisseur}, "apprentice": {APPRENTICE: apprentice},
        "crossed": {ORACLE_CONCLUDES: oracle_concludes, OURS_CONCLUDES: ours_concludes},
    }  # fmt: skip
    if group in own:
        return own[group]
    if group == "classic":
        return {name: classic(name) for name in CONTESTANTS}
    if not peer_python:
        raise SystemExit("this group needs --peer-python, or BESTPROMPT_PEER_PYTHON, the python that has the peers")
    worker = PeerWorker(peer_python)
    names = {"optuna": ["Optuna TPE"], "botorch": ["BoTorch GP+UCB", "BoTorch qLogNEI"]}[group]
    return {name: worker.contestant(name) for name in names}


def cells(arguments: argparse.Namespace) -> list[tuple[str, int, int]]:
    """(family, N, T) in the order they are run; a table has at most the prompts that are in it."""
    tables = {} if arguments.group in KNOWING else table_families()
    everything = (*FAMILIES, *ITEM_FAMILIES, *tables)
    if arguments.group == "blind":
        everything = HIDING_FAMILIES
    if arguments.group == "connoisseur":  # who elsewhere knows the family by its looks, and is the oracle or blind
        everything = tuple(family for group in LOOK_ALIKES for family in group)
    families = arguments.families.split(",") if arguments.families else everything
    sizes = [int(n) for n in arguments.sizes.split(",")]
    ratios = [float(r) for r in arguments.ratios.split(",")]
    pairs = dict.fromkeys((f, min(n, tables.get(f, n))) for n in sizes for f in families)
    return [(f, n, round(r * n)) for r in ratios for f, n in pairs]


def wanted(arguments: argparse.Namespace) -> list[tuple[tuple[str, int, int], int]]:
    """Cells and how many macro-replications each gets."""
    fewer = {
        float(r): int(reps) for r, _, reps in (part.partition(":") for part in arguments.reps_at.split(",") if part)
    }
    return [(cell, min(arguments.reps, fewer.get(cell[2] / cell[1], arguments.reps))) for cell in cells(arguments)]


def missing(record: Record, arguments: argparse.Namespace, names: Iterable[str]) -> Iterator[tuple[Cell, str, int]]:
    """(cell, contestant, macro-replication) of every run still to be made, those of low number first in all cells."""
    plan, names = wanted(arguments), list(names)
    for seed in range(arguments.reps):
        for cell, reps in plan:
            for name in names:
                if len(record.get(row_key(cell, name), ())) <= seed < reps:
                    yield cell, name, seed


def row_key(cell: Cell, name: str) -> str:
    """Where the record keeps the rows of a contestant in a cell."""
    return "|".join([*map(str, cell), name])


def one_run(contestant: Runner, cell: Cell, seed: int) -> float | list[float]:
    """The row of one run: its regret, and what else the contestant states."""
    family, n, budget = cell
    problem = make_problem(family, n, seed)
    found = contestant(problem, budget, seed)
    if isinstance(found, list):
        return [round(value, 5) for value in found]
    return round(float(problem.truth.max() - problem.truth[found]), 5)


def run(arguments: argparse.Namespace) -> None:
    """Runs a group, one macro-replication of every cell after another."""
    path = record_path(arguments.group)
    record = load_record(path)
    members = group_members(arguments.group, arguments.peer_python)
    jobs = ((row_key(cell, name), (name, cell, seed)) for cell, name, seed in missing(record, arguments, members))

    def row(job: tuple[str, Cell, int]) -> float | list[float]:
        name, cell, seed = job
        return one_run(members[name], cell, seed)

    fill(record, path, jobs, row, arguments.minutes, arguments.ray)


def fill(
    record: Record, path: Path, jobs: Iterable[tuple[str, A]], row: Callable[[A], Any], minutes: float, ray: str | None
) -> None:
    """Adds the row of each job to the rows of its key, for as long as it may; on the cluster ``ray``, if given.

    The record is saved now and then, and at the end.
    """
    end, saved = time.monotonic() + 60.0 * minutes, time.monotonic()
    keys: deque[str] = deque()

    def in_time() -> Iterator[A]:
        for key, job in jobs:
            if time.monotonic() > end:
                return
            keys.append(key)
            yield job

    for made in fan_out(row, in_time(), ray):
        record.setdefault(keys.popleft(), []).append(made)
        if time.monotonic() > saved + SAVED_EVERY:
            save(record, path)
            saved = time.monotonic()
    save(record, path)


def plan(arguments: argparse.Namespace) -> None:
    """Prints seconds of processor time per run, by (N, T), and how long the missing ones will take."""
    record = load_record(record_path(arguments.group))
    members = group_members(arguments.group, arguments.peer_python)
    left = Counter((n, budget) for (_, n, budget), _, _ in missing(record, arguments, members))
    total = 0.0
    print("| N | T | seconds per run | runs missing | hours |\n| --- | --- | --- | --- | --- |")
    for (n, budget), runs in sorted(left.items()):
        timed = []
        for family in TIMED:
            for contestant in members.values():
                begun = time.process_time()
                one_run(contestant, (family, n, budget), UNREPORTED)
                timed.append(time.process_time() - begun)
        seconds = float(np.mean(timed))
        total += seconds * runs / 3600.0
        print(f"| {n} | {budget} | {seconds:.3f} | {runs} | {seconds * runs / 3600.0:.2f} |", flush=True)
    print(f"\n{total:.2f} hours of one processor core in all.")


def record_path(group: str) -> Path:
    """Where a group's rows are."""
    return RESULTS / f"selection_{group}.json"


def load_record(path: Path) -> Record:
    """Rows by cell and contestant."""
    return json.loads(path.read_text()) if path.exists() else {}


def save(record: Record, path: Path) -> None:
    """Writes the record; whoever stops the program meanwhile finds the old or the new one."""
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(record, separators=(",", ":")) + "\n")
    draft.replace(path)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--group", choices=GROUPS, required=True)
    shared.add_argument("--reps", type=int, default=100)
    shared.add_argument("--reps-at", default="", help="RATIO:REPS,… fewer macro-replications where T is RATIO times N")
    shared.add_argument("--families", default="")
    shared.add_argument("--sizes", default="100,200")
    shared.add_argument("--ratios", default=",".join(str(r) for r in RATIOS))
    shared.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many minutes")
    shared.add_argument("--quick", action="store_true")
    shared.add_argument("--peer-python", default=os.environ.get("BESTPROMPT_PEER_PYTHON"))
    running = commands.add_parser("run", parents=[shared])
    running.add_argument("--ray", metavar="ADDRESS", help="spread runs over a Ray cluster (not those of peers)")
    commands.add_parser("plan", parents=[shared])
    commands.add_parser("table")
    arguments = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    if arguments.command == "table":
        write_table(RESULTS)
        return
    if arguments.quick:
        arguments.sizes, arguments.ratios, arguments.reps = "100", "1.5", min(arguments.reps, 3)
    (plan if arguments.command == "plan" else run)(arguments)


if __name__ == "__main__":
    main()
