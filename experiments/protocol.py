"""What the paper's five experiments share here: score tables, results that are gone on with, and the methods."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

import bestprompt as bp
from bestprompt.errors import TaskError
from bestprompt.execution.fan_out import fan_out
from bestprompt.rng import stream
from bestprompt.run.settings import load_settings

HERE = Path(__file__).parent
FOLDERS = (HERE / "tables", HERE.parent / "benchmarks" / "tables")
RUNS = HERE / "runs.csv"  # of the third and the fourth experiment
REPETITIONS = 15
CANDIDATES = 200  # N, or half of a smaller table
ADDITIONAL = 20  # I, evaluations of refinement
REFINED = {"M-UCB-r": "m-ucb-r", "PSK-EI": "psk-ei", "default": "default"}
METHODS = ("M-UCB", "M-UCB-r", "PSK-EI", "random search", "sequential halving", "default")
Cell = tuple[str | int, ...]


def tables(folders: Iterable[Path] = FOLDERS) -> dict[str, bp.ReplayTask]:
    """Every score table there is, by name; one that was only begun is not there yet."""
    found = {}
    for path in (path for folder in folders for path in sorted(folder.glob("*.npz"))):
        with suppress(TaskError):
            found[path.stem] = bp.ReplayTask.load(path)
    return found


def arguments(doc: str) -> argparse.Namespace:
    """The command line of every experiment."""
    parser = argparse.ArgumentParser(description=doc.split("\n", maxsplit=1)[0])
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--small", action="store_true", help="the first cells only: whether it runs")
    parser.add_argument("--tables", type=Path, help="a folder of score tables; all there are otherwise")
    parser.add_argument("--results", type=Path, help="the file of results; results.csv beside the script otherwise")
    parser.add_argument("--ray", metavar="ADDRESS", help="spread repetitions over a Ray cluster")
    return parser.parse_args()


def fill(
    path: Path,
    keys: str,
    values: str,
    cells: Iterable[Cell],
    measure: Callable[..., Mapping[str, object]],
    ray: str | None = None,
) -> None:
    """Measures the cells that ``path`` (CSV) does not have; each is written at once, so a second call goes on.

    On the cluster ``ray``, if one is given; in the order of ``cells`` in any case.
    """
    columns, names = keys.split(), [*keys.split(), *values.split()]
    done = {tuple(row[key] for key in columns) for row in rows(path)} if path.exists() else set()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        if not done and file.tell() == 0:
            writer.writeheader()
        missing = [cell for cell in cells if tuple(map(str, cell)) not in done]
        for cell, found in zip(missing, fan_out(lambda cell: measure(*cell), missing, ray), strict=True):
            shown = {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in found.items()}
            writer.writerow(dict(zip(columns, cell, strict=True)) | shown)
            file.flush()
            print(*cell, *shown.values(), flush=True)


def rows(path: Path) -> list[dict[str, str]]:
    """The lines of a file of results."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def fill_runs(
    cells: Iterable[Cell], found: Mapping[str, bp.ReplayTask], path: Path | None = None, ray: str | None = None
) -> None:
    """Whole runs for the cells (repetition, table, budget, method) that ``path``, or ``RUNS``, does not have."""

    def measure(repetition: int, table: str, budget: int, method: str) -> dict[str, object]:
        whole = found[table]
        few = whole.sample(min(CANDIDATES, len(whole.truth) // 2), repetition, examples=True)
        prompt, calls = run(few, method, budget, repetition)
        score = whole.worth(prompt)
        return {"score": score, "regret": float(whole.truth.max()) - score, "calls": calls, "prompt": prompt}

    # Direct search needs a new text for each evaluation, so a table serves it up to as many as it has.
    cells = [c for c in cells if c[3] != "PSK-EI" or int(c[2]) <= len(found[str(c[1])].truth)]
    fill(path or RUNS, "repetition table budget method", "score regret calls prompt", cells, measure, ray)


def run(replay: bp.ReplayTask, method: str, budget: int, seed: int) -> tuple[str, int]:
    """The prompt that ``method`` selects among the candidates of ``replay``, and the calls it made."""
    if method == "sequential halving":
        return halving(replay, budget, seed)
    mode = "default" if method in ("default", "random search") else "paper"
    how = {"refinement.mode": REFINED.get(method, "off"), "refinement.additional": ADDITIONAL, "mode": mode}
    how |= {"selection.policy": "random"} if method == "random search" else {}
    how |= {"selection.replications": 2} if method == "PSK-EI" else {}  # else T = 50 would all be warm-up
    settings = load_settings(None, {"ideas.mode": "off", **how, "budget.calls": budget, "seed": seed})
    given = {"candidates": () if method == "PSK-EI" else replay.candidates, "autoencoder": replay.space}
    found = bp.optimize(replay.task, replay.lm, config=settings, **given)
    return found.prompt, int(found.choice.counts.sum())


def halving(replay: bp.ReplayTask, budget: int, seed: int) -> tuple[str, int]:
    """Sequential halving: rounds of equal shares of the budget, each keeps the better half of what is left."""
    score, rng = replay.score(seed), stream(seed, "halving")
    alive = rng.permutation(len(replay.candidates.prompts))[: max(budget, 1)]
    counts, sums = (np.zeros(len(replay.candidates.prompts)) for _ in range(2))
    while len(alive) > 1:
        rounds_left = int(np.log2(len(alive)))
        each = max(1, int((budget - counts.sum()) // (rounds_left * len(alive))))
        for n in alive.tolist():
            for _ in range(min(each, int(budget - counts.sum()))):
                sums[n] += score(n, int(counts[n]))
                counts[n] += 1
        means = sums[alive] / np.maximum(counts[alive], 1)
        alive = alive[np.lexsort((rng.random(len(alive)), -means))][: len(alive) // 2]
    return replay.candidates.prompts[int(alive[0])], int(counts.sum())
