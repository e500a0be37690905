"""The commonest case: some dozens of labelled pairs. Are verdicts true, and are calls well spent?

    python benchmarks/few_pairs.py run [--group ours|former] [--minutes 60] [--prompts 2,8] [--kinds graded]
    python benchmarks/few_pairs.py run --most-calls 2400    # the cheap cells; later, without it, the rest
    python benchmarks/few_pairs.py table            # results/few_pairs.md

A problem has N prompts and M pairs drawn from a population; the true score of a prompt is its mean over the population.
At temperature 0 a prompt's answer to a pair is fixed; above it, each answer is drawn anew around a chance that belongs
to prompt and pair. "Whole table" asks every prompt every pair once and takes the best mean. Group ``former`` is how
runs went before repeated questions were known for what they are: three fifths of the pairs, repetitions as news, rounds
of 16. Real tables: prompts are chosen on half of a stored table's items and judged on the other half, whose mean is no
truth either: each side of an interval is widened by 1.96 standard errors of the judged prompt's mean on that many
items. Every question is counted where the model would answer it. Problems 1000 and up are for trying things out;
reported are problems 0 and up.
"""

from __future__ import annotations

import argparse
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit

from bestprompt.execution import Schedule
from bestprompt.selection import SelectionResult, Selector, SelectorConfig
from bestprompt.selection.core.rotation import BLOCK
from bestprompt.types import Observation
from few_pairs_table import COLUMNS, write_table
from selection import fill, load_record
from selection_replay import TABLES, load_table, table_families

RESULTS = Path(__file__).parent / "results"
PAIRS, PROMPTS = (10, 20, 50, 200), (2, 8, 40, 200)
KINDS = ("right-or-wrong", "graded")
ITEM_SPREADS = (0.6, 1.5)  # of item difficulty on the logit scale, in turns
INTERACTION = 1.5  # spread of what a prompt and a pair have of their own, where answers vary
GRADE = 8.0  # concentration of graded answers
REPLICATES = 60
PILOT = 24
GROUPS = ("ours", "former")
STOP = 0.0005


@dataclass(frozen=True)
class Cell:
    """One kind of problem and a budget; ``calls`` is T."""

    kind: str
    hot: bool
    pairs: int
    prompts: int
    calls: int

    @property
    def key(self) -> str:
        """How the record names it."""
        return "|".join(map(str, (self.kind, "hot" if self.hot else "cold", self.pairs, self.prompts, self.calls)))


@dataclass(frozen=True)
class World:
    """Coordinates (N, D), true scores (N,), answers (N, M, R), and the standard errors (N,) of the true scores."""

    Z: np.ndarray
    truth: np.ndarray
    answers: np.ndarray
    truth_errors: np.ndarray


def make_world(cell: Cell, seed: int) -> World:
    """Problem number ``seed`` of a cell; the same for every budget."""
    if cell.kind in table_families():
        return table_world(cell, seed)
    rng = np.random.default_rng([zlib.crc32(cell.kind.encode()), cell.hot, cell.pairs, cell.prompts, seed])
    n, spread = cell.prompts, ITEM_SPREADS[seed % 2]
    Z = rng.standard_normal((n, 8)) / np.sqrt(1.0 + np.arange(8))
    squares = ((Z[:, None] - Z[None]) ** 2).sum(-1)
    covariance = 0.5 * np.exp(-0.5 * squares / (0.36 * np.median(squares[squares > 0]))) + (0.5 + 1e-9) * np.eye(n)
    own = INTERACTION if cell.hot else 0.0
    flattening = np.sqrt(1.0 + 0.346 * (spread**2 + own**2))
    ability = (-0.3 + 0.9 * np.linalg.cholesky(covariance) @ rng.standard_normal(n)) * flattening
    nodes, weights = np.polynomial.hermite_e.hermegauss(81)
    truth = expit(ability[:, None] - np.sqrt(spread**2 + own**2) * nodes) @ (weights / weights.sum())
    difficulty, suits = spread * rng.standard_normal(cell.pairs), own * rng.standard_normal((n, cell.pairs))
    chance = np.clip(expit(ability[:, None] - difficulty + suits), 0.01, 0.99)[:, :, None]
    shape = (n, cell.pairs, REPLICATES if cell.hot else 1)
    graded = rng.beta(GRADE * chance, GRADE * (1.0 - chance), size=shape) if cell.kind == "graded" else None
    answers = graded if graded is not None else (rng.random(shape) < chance).astype(float)
    return World(Z, truth, answers, np.zeros(n))


def table_world(cell: Cell, seed: int) -> World:
    """N prompts of a stored table, to be chosen on M of its items and judged on the others."""
    scores, Z = load_table(TABLES / f"{cell.kind.partition(':')[2]}.npz")
    rng = np.random.default_rng([zlib.crc32(cell.kind.encode()), cell.pairs, cell.prompts, seed])
    rows, items = rng.permutation(len(Z))[: cell.prompts], rng.permutation(scores.shape[1])
    other = scores[rows][:, items[cell.pairs :], 0]
    # A prompt's own scatter, over all items: that of some items is 0 where it got these right, or wrong, by chance.
    errors = scores[rows, :, 0].std(axis=1, ddof=1) / np.sqrt(other.shape[1])
    return World(Z[rows], other.mean(axis=1), scores[rows][:, items[: cell.pairs]], errors)


def settings(cell: Cell, group: str, seed: int) -> tuple[SelectorConfig, int]:
    """How the group chooses, and how many pairs it does so on."""
    common = {"budget": cell.calls, "pairs": "common", "seed": seed, "surrogate": "average", "units": "alike"}
    if group == "former":
        used = max(1, cell.pairs - 2 * max(1, round(0.2 * cell.pairs)))
        return SelectorConfig(**common, items=used, repeats="new-item", block=BLOCK, next_item="in-turn"), used
    repeats = "same-item" if cell.hot else "never"
    return SelectorConfig(**common, items=cell.pairs, repeats=repeats, stop_gain=STOP), cell.pairs


def played(cell: Cell, group: str, seed: int) -> tuple[World, SelectionResult, Counter[tuple[int, int]]]:
    """A whole run: its problem, its verdict, and how often each question (prompt, pair) was asked."""
    world = make_world(cell, seed)
    config, used = settings(cell, group, seed)
    selector, schedule = Selector(world.Z, config), Schedule(used, seed, repeats=config.repeats)
    state, asked = selector.initial(), Counter()
    batch = 16 if group == "former" else 8
    while selector.should_stop(state) is None:
        pilot = PILOT if group == "former" else batch
        answers = []
        for p in selector.ask(state, pilot if len(state) == 0 else batch):
            question = (p.candidate, schedule.pair(p))
            again = asked[question] % world.answers.shape[2]
            asked[question] += 1
            answers.append(Observation(*(p.candidate, p.replication), float(world.answers[(*question, again)])))
        if not answers:
            break
        state = selector.tell(state, answers)
    return world, selector.recommend(state), asked


def one_run(cell: Cell, group: str, seed: int) -> list[float]:
    """The row of one run, as ``COLUMNS`` names it."""
    world, found, asked = played(cell, group, seed)
    true, best = float(world.truth[found.candidate]), float(world.truth.max())
    table = world.answers[:, :, 0].mean(axis=1)
    here, (low, high) = found.on_these_items, found.interval
    side = high - found.score if true > found.score else found.score - low
    allowed = np.hypot(side, 1.96 * world.truth_errors[found.candidate])
    row = {
        "calls": asked.total(), "different": len(asked), "regret": best - true,
        "whole": best - float(world.truth[int(np.argmax(table))]), "bias": found.score - true,
        "covered": abs(true - found.score) <= allowed + 1e-9, "half": (high - low) / 2,
        "pcs": found.probability_best, "within": found.probability_within_delta,
        "here": here.probability_best if here else np.nan,
        "here_right": table[found.candidate] >= table.max() - 1e-9 if not cell.hot else np.nan,
    }  # fmt: skip
    return [round(float(row[name]), 5) for name in COLUMNS]


def budgets(pairs: int, prompts: int) -> list[int]:
    """T: one call a prompt (at least a dozen), four, and more than there are questions."""
    return sorted({max(prompts, 12), max(4 * prompts, 24), round(1.2 * pairs * prompts)})


def cells() -> list[Cell]:
    """All cells, small ones first."""
    made = [
        Cell(kind, hot, m, n, t)
        for n in PROMPTS for m in PAIRS for kind in KINDS for hot in (False, True) for t in budgets(m, n)
    ]  # fmt: skip
    tables = [
        Cell(kind, False, items // 2, n, t)
        for kind, rows in table_families().items()
        for items in [load_table(TABLES / f"{kind.partition(':')[2]}.npz")[0].shape[1]]
        for n in (8, 40) if n <= rows
        for t in budgets(items // 2, n)
    ]  # fmt: skip
    return [*tables, *made]


def missing(record: dict[str, list], arguments: argparse.Namespace) -> Iterator[tuple[Cell, int]]:
    """Runs still to be made, those of low number first in all cells."""
    sizes, kinds = ([part for part in text.split(",") if part] for text in (arguments.prompts, arguments.kinds))
    wanted = [
        cell for cell in cells()
        if (not sizes or str(cell.prompts) in sizes) and (not kinds or cell.kind.startswith(tuple(kinds)))
        and cell.calls <= arguments.most_calls
    ]  # fmt: skip
    for seed in range(arguments.reps):
        for cell in wanted:
            if len(record.get(cell.key, ())) <= seed:
                yield cell, seed


def run(arguments: argparse.Namespace) -> None:
    """Fills the record of a group for as long as it may."""
    path = RESULTS / f"few_pairs_{arguments.group}.json"
    record = load_record(path)
    jobs = ((cell.key, (cell, seed)) for cell, seed in missing(record, arguments))
    fill(record, path, jobs, lambda job: one_run(job[0], arguments.group, job[1]), arguments.minutes, arguments.ray)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--group", choices=GROUPS, default="ours")
    running.add_argument("--reps", type=int, default=200)
    running.add_argument("--prompts", default="", help="N,… only sets of so many prompts")
    running.add_argument("--kinds", default="", help="KIND,… only kinds whose name begins like this, e.g. table:")
    running.add_argument("--most-calls", type=float, default=float("inf"), help="only budgets up to this")
    running.add_argument("--minutes", type=float, default=float("inf"))
    running.add_argument("--ray", metavar="ADDRESS", help="spread runs over a Ray cluster")
    commands.add_parser("table")
    arguments = parser.parse_args()
    if arguments.command == "table":
        write_table(RESULTS, GROUPS)
    else:
        run(arguments)


if __name__ == "__main__":
    main()
