"""Are verdicts on half of a real table's items true of the other half, whose mean is no truth either?

    python benchmarks/judged_half.py run [--reps 200] [--prompts 40] [--table table:first-letter-default]
    python benchmarks/judged_half.py table          # results/judged_half.md

Notation (symbol → name):
    v, [l, h]   stated score and its 95 % interval                        → ``stated``, ``low``, ``high``
    w           mean of the named prompt on the J items it was not chosen on → ``judged``
    S, S̄        scatter of the named prompt's scores over all items of the table, and its mean over all prompts

Three ways to allow for the error of w. The mean's: |w − (l + h)/2| ≤ hypot((h − l)/2, 1.96 S̄/√J). The prompt's own, by
sides: v − hypot(v − l, 1.96 S/√J) ≤ w ≤ v + hypot(h − v, 1.96 S/√J). And without normal approximation, for answers that
are right or wrong: J w lies within the central 95 % of the binomial of J trials, averaged over the stated distribution
of the chance (normal on each side of v, cut off at 0 and 1). Counts are whole, so true verdicts have .95 or more.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from scipy.stats import binom, norm

from few_pairs import RESULTS, TABLES, Cell, budgets, load_table, played

RECORD = RESULTS / "judged_half.json"
QUANTILES = (np.arange(400) + 0.5) / 400

HEAD = """# Verdicts on half of a table's items, judged on the other half

Command: `python benchmarks/judged_half.py run`, then `table`; the columns are explained at the top of the script. ± is
the standard error of a share of .95 in so many runs; the true one is larger, as the runs of a cell name few different
prompts of one table.

| table | prompts | T | runs | prompts named | stated − judged | error, mean scatter | error, own | covered, mean \
| covered, own | covered, binomial |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def one_run(table: str, prompts: int, calls: int, seed: int) -> list[float]:
    """Which prompt of the table was named, stated score, interval, judged score, errors by S̄ and by S."""
    scores, Z = load_table(TABLES / f"{table.partition(':')[2]}.npz")
    cell = Cell(table, False, scores.shape[1] // 2, prompts, calls)
    world, found, _ = played(cell, "ours", seed)
    named = int(np.flatnonzero((world.Z[found.candidate] == Z).all(axis=1))[0])
    judged, own = (float(x[found.candidate]) for x in (world.truth, world.truth_errors))
    half = scores.shape[1] - cell.pairs
    return [named, found.score, *found.interval, judged, float(world.truth_errors.mean()), own, half]


def binomial_covers(stated: float, low: float, high: float, judged: float, half: int) -> bool:
    """Whether the number right of ``half`` is within the central 95 % of what the verdict says of it."""
    u = norm.ppf(QUANTILES)
    chances = np.clip(stated + np.where(u < 0.0, stated - low, high - stated) / 1.96 * u, 0.0, 1.0)
    right = round(judged * half)
    return bool(binom.cdf(right, half, chances).mean() > 0.025 and binom.cdf(right - 1, half, chances).mean() < 0.975)


def run(table: str, prompts: int, reps: int) -> None:
    """Goes on where the record ends."""
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    items = load_table(TABLES / f"{table.partition(':')[2]}.npz")[0].shape[1]
    for calls in budgets(items // 2, prompts):
        rows = record.setdefault(f"{table}|{prompts}|{calls}", [])
        for seed in range(len(rows), reps):
            rows.append([round(value, 5) for value in one_run(table, prompts, calls, seed)])
        RECORD.write_text(json.dumps(record, separators=(",", ":")) + "\n")


def table() -> None:
    """Writes ``judged_half.md``."""
    text = HEAD
    for key, rows in json.loads(RECORD.read_text()).items():
        named, stated, low, high, judged, mean_error, own, _ = np.array(rows).T
        by_mean = np.abs(judged - (low + high) / 2) <= np.hypot((high - low) / 2, 1.96 * mean_error) + 1e-9
        side = np.where(judged > stated, high - stated, stated - low)
        by_own = np.abs(judged - stated) <= np.hypot(side, 1.96 * own) + 1e-9
        exact = [binomial_covers(*row[1:5], int(row[7])) for row in rows]
        error = np.sqrt(0.95 * 0.05 / len(rows))
        text += (
            f"| {key.replace('|', ' | ')} | {len(rows)} | {np.unique(named).size} | {(stated - judged).mean():+.3f} | "
        )
        text += f"{mean_error.mean():.3f} | {own.mean():.3f} | {by_mean.mean():.3f} | {by_own.mean():.3f} | "
        text += f"{np.mean(exact):.3f} ± {error:.3f} |\n"
    (RESULTS / "judged_half.md").write_text(text)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--table", default="table:first-letter-default")
    parser.add_argument("--prompts", type=int, default=40)
    parser.add_argument("--reps", type=int, default=200)
    given = parser.parse_args()
    if given.what == "table":
        table()
    else:
        run(given.table, given.prompts, given.reps)


if __name__ == "__main__":
    main()
