"""Thousands of malformed inputs, each of which must end well or in one of our own errors.

python benchmarks/torture/fuzz.py [--inputs 10000] [--seed 0] [--kind NAME]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from inputs import KINDS, attempt, furnish

from results import record


def main() -> None:
    """Runs all kinds in turn and records how many inputs were taken or refused, and every defect."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=sorted(KINDS))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ.setdefault("OPENAI_API_KEY", "sk-fuzz-0123456789")
    kinds = [arguments.kind] if arguments.kind else list(KINDS)
    rows: list[dict[str, Any]] = []
    defects: list[tuple[str, str]] = []
    for kind in kinds:
        started, (counts, found) = time.monotonic(), _try(kind, -(-arguments.inputs // len(kinds)), arguments.seed)
        seconds = time.monotonic() - started
        rows.append({"kind": kind, "inputs": sum(counts.values()), "outcomes": dict(counts), "seconds": round(seconds)})
        print(f"{kind}: {dict(counts)}, {len(found)} defects, {seconds:.0f} s", flush=True)
        for drawn, trace in found:
            print(f"\n--- {kind}: {drawn}\n{trace}", flush=True)
        defects += found
    if not arguments.kind:
        record("fuzz", {"inputs": sum(row["inputs"] for row in rows), "defects": len(defects), "kinds": rows})
    sys.exit(bool(defects))


def _try(kind: str, inputs: int, number: int) -> tuple[Counter[str], list[tuple[str, str]]]:
    counts: Counter[str] = Counter()
    defects: dict[str, tuple[str, str]] = {}
    with tempfile.TemporaryDirectory() as outside:
        folder = Path(outside) / "inside"
        folder.mkdir()
        furnish(folder)

        @seed(number)
        @settings(
            max_examples=inputs,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(KINDS[kind][0])
        def one(drawn: Any) -> None:
            try:
                counts[attempt(kind, drawn, folder)] += 1
            except Exception as error:
                counts["DEFECT"] += 1
                where = traceback.extract_tb(error.__traceback__)[-1]
                trace = "".join(traceback.format_exception(error)[-6:])
                defects.setdefault(
                    f"{type(error).__name__} {where.filename}:{where.lineno}", (repr(drawn)[:600], trace)
                )

        one()
    return counts, list(defects.values())


if __name__ == "__main__":
    main()
