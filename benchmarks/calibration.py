"""Are the stated probabilities and intervals true? Simulated runs on the families of ``selection_families``.

    python benchmarks/calibration.py run --reps 15     # every family x budget, resumable
    python benchmarks/calibration.py table             # results/calibration.md

Each run records what the verdict stated and what was true: probability of the best and of being within δ, 95 %
interval, estimate. Must hold: of the runs that state PCS ≥ .95 at least 95 % are right; intervals cover 93–97 %; the
mean |reported − true| is at most .02. The same runs also give the figures by family and by budget.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from bestprompt.selection import Recommendation, Selector, SelectorConfig
from bestprompt.types import Observation
from selection_families import FAMILIES, ITEM_FAMILIES, make_problem

RESULTS = Path(__file__).parent / "results"
RECORD = RESULTS / "calibration.json"
CANDIDATES = 50
BUDGETS = (100, 300, 1000)
FIRST_SEED = 10_000


def one_run(family: str, budget: int, seed: int, delta: float = 0.02) -> dict[str, Any]:
    """One simulated run: what it stated and what was true."""
    problem = make_problem(family, CANDIDATES, FIRST_SEED + seed)
    common = bool(problem.item_sd)
    config = SelectorConfig(budget=budget, seed=seed, pairs="common" if common else "independent", delta=delta)
    selector = Selector(problem.Z, config)
    state = selector.initial()
    while proposals := selector.ask(state, 1 + len(state) // 12):
        state = selector.tell(
            state,
            [
                Observation(p.candidate, p.replication, problem.score(p.candidate, p.replication, common))
                for p in proposals
            ],
        )
    rec: Recommendation = selector.recommend(state)
    true, best = float(problem.truth[rec.candidate]), float(problem.truth.max())
    return {
        "family": family,
        "budget": budget,
        "pcs": round(rec.probability_best, 4),
        "within": round(rec.probability_within_delta, 4),
        "right": bool(best - true <= 1e-12),
        "right_within": bool(best - true <= delta + 1e-12),
        "covered": bool(rec.interval[0] <= true <= rec.interval[1]),
        "error": round(rec.score - true, 5),
        "loss": round(best - true, 5),
        "stated_loss": round(rec.expected_loss, 5),
        "raw_error": round(float(rec.means[rec.candidate]) - true, 5),
    }


def run(reps: int, minutes: float) -> None:
    """Runs every family and budget ``reps`` times; continues a record that exists."""
    record = json.loads(RECORD.read_text()) if RECORD.exists() else []
    end, plan = time.monotonic() + 60.0 * minutes, []
    for seed in range(reps):
        plan += [(f, b, seed) for b in BUDGETS for f in (*FAMILIES, *ITEM_FAMILIES)]
    for number, (family, budget, seed) in enumerate(plan):
        if number < len(record):
            continue
        record.append(one_run(family, budget, seed))
        if number % 24 == 23 or time.monotonic() > end:
            RECORD.write_text("[\n" + ",\n".join(json.dumps(r) for r in record) + "\n]\n")
        if time.monotonic() > end:
            break
    RECORD.write_text("[\n" + ",\n".join(json.dumps(r) for r in record) + "\n]\n")


def line(name: str, runs: list[dict[str, Any]]) -> str:
    """One row of the table."""
    sure = [r for r in runs if r["pcs"] >= 0.95]
    near = [r for r in runs if r["within"] >= 0.95]
    share = f"{np.mean([r['right'] for r in sure]):.3f} ({len(sure)})" if sure else "–"
    share_near = f"{np.mean([r['right_within'] for r in near]):.3f} ({len(near)})" if near else "–"
    error = np.array([r["error"] for r in runs])
    raw = np.array([r["raw_error"] for r in runs])
    return (
        f"| {name} | {len(runs)} | {share} | {share_near} | {np.mean([r['covered'] for r in runs]):.3f} | "
        f"{np.abs(error).mean():.4f} | {error.mean():+.4f} | {raw.mean():+.4f} | "
        f"{np.mean([r['stated_loss'] for r in runs]):.4f} / {np.mean([r['loss'] for r in runs]):.4f} |"
    )


def table() -> None:
    """Writes ``calibration.md`` beside the record."""
    runs = json.loads(RECORD.read_text())
    lines = [
        f"# Calibration of the verdict, {len(runs)} simulated runs, N = {CANDIDATES}",
        "",
        "| runs | number | right when PCS ≥ .95 stated | within δ when P ≥ .95 stated | interval covers | mean abs. "
        "error of the estimate | bias | bias of the raw mean | stated / true loss |",
        "| --- " * 9 + "|",
        line("all", runs),
        *(line(f"T = {b}", [r for r in runs if r["budget"] == b]) for b in BUDGETS),
        *(line(f, [r for r in runs if r["family"] == f]) for f in dict.fromkeys(r["family"] for r in runs)),
    ]
    (RESULTS / "calibration.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("command", choices=["run", "table"])
    parser.add_argument("--reps", type=int, default=15)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--quick", action="store_true", help="one macro-replication")
    arguments = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    if arguments.command == "run":
        run(1 if arguments.quick else arguments.reps, arguments.minutes)
    table()


if __name__ == "__main__":
    main()
