"""The results of the torture as a page.

python benchmarks/torture/page.py
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from results import FILE, recorded


def _table(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    lines = [list(header), ["---"] * len(list(header)), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def main() -> None:
    """Writes the page beside the results."""
    found, parts = recorded(), ["# Torture\n\n`make torture`; what each part checks stands at the top of its script."]
    if "kills" in found:
        names = ("in flight", "faults", "kills", "runs", "most billed", "lost", "failed attempts")
        rows = [[*(row[name] for name in names), len(row["problems"])] for row in found["kills"]["rows"]]
        budget = found["kills"]["budget"]
        parts.append(
            f"## SIGKILLs, a budget of {budget} calls (`benchmarks/torture/kills.py`)\n\n"
            f"{_table((*names, 'problems'), rows)}"
        )
    if "budgets" in found:
        names = ("trials", "crashed", "overspent")
        parts.append(
            "## Randomised budgets (`benchmarks/torture/budgets.py`)\n\n"
            f"{_table(names, [[found['budgets'][name] for name in names]])}"
        )
    if "fuzz" in found:
        kinds = found["fuzz"]["kinds"]
        rows = [
            [row["kind"], row["inputs"], row["outcomes"].get("taken", 0), row["defects"]]
            for row in [*kinds, {"kind": "all", "inputs": sum(k["inputs"] for k in kinds),
                                 "outcomes": {"taken": sum(k["outcomes"].get("taken", 0) for k in kinds)},
                                 "defects": sum(k["defects"] for k in kinds)}]
        ]  # fmt: skip
        parts.append(
            "## Malformed inputs (`benchmarks/torture/fuzz.py`)\n\nWhat is not taken is refused by an error of our own"
            f"; anything else is a defect.\n\n{_table(('kind', 'inputs', 'taken', 'defects'), rows)}"
        )
    FILE.with_suffix(".md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
