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

from results import record, recorded


def main() -> None:
    """Runs all kinds, or one, and records how many inputs were taken or refused; shows every defect."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=sorted(KINDS))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ.setdefault("OPENAI_API_KEY", "sk-fuzz-0123456789")
    kinds, each = [arguments.kind] if arguments.kind else list(KINDS), -(-arguments.inputs // len(KINDS))
    rows = {row["kind"]: row for row in recorded().get("fuzz", {}).get("kinds", []) if row["kind"] in KINDS}
    for kind in kinds:
        started, (counts, found) = time.monotonic(), _try(kind, each, arguments.seed)
        seconds = round(time.monotonic() - started)
        print(f"{kind}: {dict(counts)}, {len(found)} defects, {seconds} s", flush=True)
        for drawn, trace in found:
            print(f"\n--- {kind}: {drawn}\n{trace}", flush=True)
        tried = sum(counts.values())
        rows[kind] = {
            "kind": kind,
            "inputs": tried,
            "defects": len(found),
            "outcomes": dict(counts),
            "seconds": seconds,
        }
        record("fuzz", {"seed": arguments.seed, "kinds": list(rows.values())})
    sys.exit(any(rows[kind]["defects"] for kind in kinds))


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
