"""Refinement against selection alone at the same total budget, on latent surfaces whose optimum lies outside the set.

    python benchmarks/refinement.py run                   # resumable: results/refinement.json, then refinement.md
    python benchmarks/refinement.py speed                 # one fit and one suggestion at N = 200, D~ = 3584
    python benchmarks/refinement.py table                 # refinement.md from what has been run

Reported seeds are 0, 1, …; constants were set by looking at seeds 2000–2004 and at fits on seeds 1000–1005. Every
contestant of a replication faces the same surface, set and answers, so differences are paired.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from bestprompt.refinement import Refiner, RefinerConfig
from bestprompt.selection.core.state import empty_state, fold
from bestprompt.types import Observation
from refinement_contestants import SPLITS, run
from refinement_surfaces import FAMILIES, candidate_set, surface

RESULTS = Path(__file__).parent / "results"
N, BUDGET = 100, 200
BASELINE = "selection only"
CHEAP_FIRST = (BASELINE, "rule", "M-UCB-r (tail of 20)", "share 20 %", "share 40 %", "PSK-EI direct")

HEAD = """# Refinement, synthetic latent surfaces (D~ = 3584, N = {n}, T = {budget} evaluations in all)

Command: `python benchmarks/refinement.py run`. Families: {families}; manifolds of 4, 6 or 8 dimensions; right-or-wrong
or graded scores. Value: true score of the chosen text. Gain: difference to selection only on the same surface and the
same answers, mean with its 95 % interval. Selection uses the averaged Gaussian belief (`surrogate = "average"`) in
every row. At T = {budget} a tail of 20 evaluations is the fixed share of 10 %, and 0 % is selection only.
PSK-EI direct is the paper's: examples only, then each evaluation a new vector, v* the best single score, and the
highest observed mean is returned. Rows with fewer runs cover the first seeds only; the last column is the gain of the
rule on the runs of that row, and the only fair comparison with it.
"""
COLUMNS = """\
| contestant | runs | value | gain | 95 % interval | new prompts | calls to them | new one won | rule, same runs |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def replicate(seeds: int, names: list[str], minutes: float) -> None:
    """Runs what is not in the record yet, for at most ``minutes``."""
    path = RESULTS / "refinement.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    ends = time.monotonic() + 60.0 * minutes
    for seed in range(seeds):
        for family in FAMILIES:
            for name in names:
                key = f"{family}|{seed}|{name}"
                if key in record or time.monotonic() > ends:
                    continue
                started = time.process_time()
                course = asdict(run(surface(family, seed), name, N, BUDGET))
                record[key] = {**course, "cpu": round(time.process_time() - started, 2)}
                path.write_text(json.dumps(record))
    table()


def table() -> None:
    """Writes refinement.md."""
    record = json.loads((RESULTS / "refinement.json").read_text())
    lines = [HEAD.format(n=N, budget=BUDGET, families=", ".join(FAMILIES)), COLUMNS]
    everybody = {name: _rows(record, name, FAMILIES) for name in SPLITS}
    lines += [_line(name, record, rows) for name, rows in everybody.items() if rows]
    lines += ["", "## The rule, by family", "", COLUMNS.replace("contestant", "family")]
    apart = {family: _rows(record, "rule", (family,)) for family in FAMILIES}
    lines += [_line(family, record, rows, "rule") for family, rows in apart.items() if rows]
    errors = np.array([p for key, row in record.items() if key.endswith("|rule") for p in row["predicted"]])
    if len(errors):
        mean, std, truth = errors.T
        lines.append(
            f"\nPredictions at the {len(errors)} new prompts of the rule, before their evaluation: mean error "
            f"{np.mean(mean - truth):+.3f}, mean absolute error {np.mean(np.abs(mean - truth)):.3f}, mean σ̂ "
            f"{std.mean():.3f}."
        )
    speed_path = RESULTS / "refinement_speed.json"
    if speed_path.exists():
        speed_row = json.loads(speed_path.read_text())
        lines.append(
            "\nSpeed (`python benchmarks/refinement.py speed`, two quiet cores, after compilation): PSK fit and EI "
            f"proposal at N = 200, D~ = 3584 take {speed_row['wall']:.2f} s (bound 2; median of {speed_row['runs']}), "
            f"{speed_row['cpu']:.2f} s of processor time; compilation takes {speed_row['compile']:.1f} s of it once."
        )
    (RESULTS / "refinement.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines[1:]))


def _rows(record: dict[str, dict[str, float]], name: str, families: tuple[str, ...]) -> list[tuple[str, str]]:
    keys = (key.split("|") for key in record)
    return [(f, s) for f, s, who in keys if who == name and f in families and f"{f}|{s}|{BASELINE}" in record]


def _line(label: str, record: dict[str, dict[str, float]], rows: list[tuple[str, str]], name: str | None = None) -> str:
    found = [record[f"{f}|{s}|{name or label}"] for f, s in rows]
    values = np.array([row["value"] for row in found])
    gains = values - [record[f"{f}|{s}|{BASELINE}"]["value"] for f, s in rows]
    half = 1.96 * gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.nan
    added, calls, won = (np.mean([row[c] for row in found]) for c in ("added", "refined_calls", "winner_refined"))
    interval = f"{gains.mean() - half:+.3f} … {gains.mean() + half:+.3f}"
    gain = "–" if (name or label) == BASELINE else f"{gains.mean():+.3f}"
    shown = "–" if gain == "–" else interval
    head = f"| {label} | {len(rows)} | {values.mean():.3f} | {gain} | {shown} "
    both = [(f, s) for f, s in rows if f"{f}|{s}|rule" in record]
    rule = np.mean([record[f"{f}|{s}|rule"]["value"] - record[f"{f}|{s}|{BASELINE}"]["value"] for f, s in both])
    return f"{head}| {added:.1f} | {calls:.0f} | {won:.0%} | {rule:+.3f} |"


def speed(runs: int = 5) -> None:
    """Fit and suggestion with every one of 200 candidates evaluated."""
    problem = surface("bump", 0)
    texts, X = candidate_set(problem, 200)
    state = empty_state(200)
    for r in range(2):
        state = fold(state, [Observation(n, r, problem.score(text, r)) for n, text in enumerate(texts)])
    times = []
    for seed in range(runs + 1):
        refiner = Refiner(problem, lambda _text, _parent: "accepted", RefinerConfig(seed=seed))
        started, ticked = time.process_time(), time.perf_counter()
        refiner.suggest(X, state, texts, 100)
        times.append((time.process_time() - started, time.perf_counter() - ticked))
    cpu, wall = np.median(np.array(times[1:]), axis=0)
    result = {"cpu": float(cpu), "wall": float(wall), "compile": float(times[0][0] - cpu), "runs": runs}
    (RESULTS / "refinement_speed.json").write_text(json.dumps(result))
    print(result)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["run", "table", "speed"])
    parser.add_argument("--seeds", type=int, default=13)
    parser.add_argument("--only", nargs="*", default=list(CHEAP_FIRST))
    parser.add_argument("--minutes", type=float, default=600.0)
    chosen = parser.parse_args()
    if chosen.command == "run":
        replicate(chosen.seeds, chosen.only, chosen.minutes)
    elif chosen.command == "speed":
        speed()
    else:
        table()


if __name__ == "__main__":
    main()
