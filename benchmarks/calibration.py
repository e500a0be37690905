"""Are the stated probabilities and intervals true? Read off the runs of ``benchmarks/selection.py``.

    python benchmarks/selection.py run --group ours
    python benchmarks/calibration.py                  # results/calibration.md

Every run of ours recorded what its verdict stated and what was true. Must hold: of the runs that state a probability of
at least .95, of being best or of being within δ = .02 of the best, at least 95 % are right; 95 % intervals cover
93–97 %; reported and true score differ by at most .02 in the mean.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from selection_table import OURS, VERDICT

RESULTS = Path(__file__).parent / "results"
DELTA = 0.02
SHARP = 0.05
RIGHT_OR_WRONG = ("smooth", "rough", "no-structure", "ties", "ridge", "ill-informative", "items", "items-hard")
Runs = dict[str, np.ndarray]

HEAD = """# Calibration of the verdict, {count} simulated runs

Command: `python benchmarks/calibration.py`, on the runs of `benchmarks/selection.py`. δ = {delta}. Columns: share of
runs that were right among those stating a probability of at least .95 (number of such runs); coverage of the 95 %
interval; mean of reported minus true score (bias), of the estimate and of the winner's raw mean; mean absolute error,
of all runs and of those whose interval is at most ±{sharp}; expected loss stated and the true one. Last, what few
answers can show at all: the mean absolute error of the winner's raw mean had somebody known the winner and spent all T
calls on it alone, √(2 v (1 − v) / (π T)) in the families with right-or-wrong answers.

| runs | number | best when PCS ≥ .95 | within δ when P ≥ .95 | interval covers | bias | bias of the raw mean | \
mean abs. error | the same, interval ≤ ±{sharp} | loss stated / true | error had all calls gone to the winner |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def load() -> tuple[list[tuple[str, int, int]], Runs]:
    """Cell of every run of ours, and the columns it recorded."""
    record = json.loads((RESULTS / "selection_ours.json").read_text())
    cells, rows = [], []
    for key, found in record.items():
        family, n, budget, name = key.split("|")
        if name == OURS:
            cells += [(family, int(n), int(budget))] * len(found)
            rows += found
    table = np.array(rows)
    runs = dict(zip(("loss", *VERDICT), table.T, strict=True))
    budgets = np.array([budget if family in RIGHT_OR_WRONG else np.nan for family, _, budget in cells])
    runs["known"] = np.sqrt(2.0 / np.pi * runs["true"] * (1.0 - runs["true"]) / budgets)
    return cells, runs


def line(name: str, runs: Runs, chosen: np.ndarray) -> str:
    """One row of the table."""
    r = {column: values[chosen] for column, values in runs.items()}
    error, covered = r["score"] - r["true"], (r["low"] <= r["true"]) & (r["true"] <= r["high"])
    sharp = r["high"] - r["low"] <= 2.0 * SHARP
    cells = [
        name,
        str(len(error)),
        _share(r["loss"] <= 1e-9, r["pcs"] >= 0.95),
        _share(r["loss"] <= DELTA + 1e-9, r["within"] >= 0.95),
        f"{covered.mean():.3f}",
        f"{error.mean():+.4f}",
        f"{(r['raw'] - r['true']).mean():+.4f}",
        f"{np.abs(error).mean():.4f}",
        f"{np.abs(error[sharp]).mean():.4f} ({sharp.sum()})" if sharp.any() else "–",
        f"{r['stated_loss'].mean():.4f} / {r['loss'].mean():.4f}",
        "–" if np.isnan(r["known"]).all() else f"{np.nanmean(r['known']):.4f}",
    ]
    return "| " + " | ".join(cells) + " |"


def _share(right: np.ndarray, stated: np.ndarray) -> str:
    return f"{right[stated].mean():.3f} ({stated.sum()})" if stated.any() else "–"


def main() -> None:
    """Writes ``calibration.md``."""
    cells, runs = load()
    families = np.array([family for family, _, _ in cells])
    ratios = np.array([budget / n for _, n, budget in cells])
    lines = [
        HEAD.format(count=len(cells), delta=DELTA, sharp=SHARP),
        line("all", runs, np.ones(len(cells), dtype=bool)),
        *(line(f"T = {ratio:g}N", runs, ratios == ratio) for ratio in np.unique(ratios)),
        *(line(family, runs, families == family) for family in dict.fromkeys(families)),
    ]
    (RESULTS / "calibration.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
