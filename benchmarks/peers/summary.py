"""What the rows say: pure functions from recorded runs to the figures of the page.

Methods are compared on what all of them have run: for each model and budget, the (task, seed) cells in which every
method that is shown has a result. A mean is over tasks, each the mean of its seeds. Intervals, also those of a
difference between two methods cell by cell, are Student's 95 % over seeds within tasks: they speak of these tasks.

|stated − test| cannot be small on few pairs, however honest a method is: a plain mean of n right or wrong answers under
a prompt of true score q misses q by √(2/π) √(q (1 − q) / n) on average, and the test adds its own pairs. That floor is
computed run by run (q from the test; for scores between 0 and 1 it is an upper bound).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from methods import METHODS
from runs import HERE
from scipy.stats import t as student

Row = Mapping[str, Any]
Value = Callable[[Row], float]


def floor(row: Row) -> float:
    """What |stated − test| would be on average, had the method stated an unbiased mean of the pairs it rests on."""
    unknown = 1 / row["pairs"] + (1 / row["test_pairs"] if "test_pairs" in row else 0.0)
    return float(np.sqrt(2 / np.pi * row["test"] * (1 - row["test"]) * unknown))


VALUES: Mapping[str, Value] = {
    "test": lambda row: row["test"],
    "gap": lambda row: abs(row["stated"] - row["test"]),
    "floor": floor,
    "optimism": lambda row: row["stated"] - row["test"],
    "covered": lambda row: float(row["interval"][0] <= row["test"] <= row["interval"][1]),
    "pairs": lambda row: row["pairs"],
    "calls": lambda row: row["calls"],
    "refused": lambda row: row["refused"],
    "overran": lambda row: float(row["refused"] > 0),
    "tokens": lambda row: row["prompt_tokens"] + row["completion_tokens"],
    "own_seconds": lambda row: row["own_seconds"],
}


@dataclass(frozen=True)
class Estimate:
    """A mean, the half width of its 95 % interval (NaN of a single cell), and the number of runs behind it."""

    mean: float
    half: float
    runs: int

    def signed(self) -> str:
        """With its sign, and to three places."""
        return f"{self.mean:+.3f} ± {self.half:.3f}" if np.isfinite(self.half) else f"{self.mean:+.3f}"

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.half:.3f}" if np.isfinite(self.half) else f"{self.mean:.3f}"


def usable(row: Row) -> bool:
    """Whether a run ended with a prompt and a score it states for it."""
    return "error" not in row and row.get("test") is not None and row.get("stated") is not None


def shared_cells(rows: Iterable[Row], task: str) -> tuple[list[Row], list[str]]:
    """The rows of the (task, seed) cells that all methods have, and these methods in the order of the table.

    A method that has run less than half of the cells the most complete one has is left out rather than the cells.

    Args:
        rows: Of one model and budget.
        task: Name of the field that holds the task, or the family of simulated tasks.
    """
    by_method: dict[str, dict[tuple[Any, int], Row]] = {}
    for row in rows:
        if usable(row):
            by_method.setdefault(row["method"], {})[row[task], row["seed"]] = row
    most = max((len(cells) for cells in by_method.values()), default=0)
    kept = [name for name in METHODS if len(by_method.get(name, ())) * 2 >= max(most, 1)]
    cells = set.intersection(*(set(by_method[name]) for name in kept)) if kept else set()
    return [by_method[name][cell] for name in kept for cell in sorted(cells)], kept


def estimate(values: Sequence[tuple[Any, float]]) -> Estimate:
    """Of (task, value): the mean of the tasks' means, and how far other seeds would move it."""
    groups: dict[Any, list[float]] = {}
    for name, value in values:
        groups.setdefault(name, []).append(value)
    mean = float(np.mean([np.mean(group) for group in groups.values()]))
    if any(len(group) < 2 for group in groups.values()):
        return Estimate(mean, float("nan"), len(values))
    variance = sum(float(np.var(group, ddof=1)) / len(group) for group in groups.values()) / len(groups) ** 2
    freedom = sum(len(group) - 1 for group in groups.values())
    return Estimate(mean, float(student.ppf(0.975, freedom)) * variance**0.5, len(values))


def of_method(rows: Sequence[Row], method: str, value: str, task: str) -> Estimate:
    """Mean of a value over a method's rows."""
    return estimate([(row[task], VALUES[value](row)) for row in rows if row["method"] == method])


def difference(rows: Sequence[Row], first: str, second: str, value: str, task: str) -> Estimate:
    """Mean of ``first − second`` cell by cell."""
    of = {(row["method"], row[task], row["seed"]): VALUES[value](row) for row in rows}
    return estimate([(name, x - of[second, name, seed]) for (method, name, seed), x in of.items() if method == first])


def across_budgets(rows: Iterable[Row], task: str) -> list[Row]:
    """One row for each method, task and seed: test score and optimism, means over the budgets.

    Of cells that all methods shown have run at every budget, since a world is the same at each of them.
    """
    found: dict[tuple[str, Any, int], list[Row]] = {}
    listed = [row for row in rows if usable(row)]
    budgets = {row["budget"] for row in listed}
    for row in listed:
        found.setdefault((row["method"], row[task], row["seed"]), []).append(row)
    made = [
        {"method": method, task: name, "seed": seed, "stated": float(np.mean([r["stated"] for r in of])),
         "test": float(np.mean([r["test"] for r in of]))}
        for (method, name, seed), of in found.items() if len(of) == len(budgets)
    ]  # fmt: skip
    return shared_cells(made, task)[0]


def lines_of_code(method: str) -> int:
    """Statements' lines of the script that drives a method, without docstrings, comments and the harness' own part."""
    folder = HERE / "workers"
    chosen = METHODS[method].worker
    files = [chosen, *(["dspy_frame"] if METHODS[method].environment == "dspy" else [])]
    return sum(_code_lines(folder / f"{name}.py") for name in files)


def _code_lines(path: Path) -> int:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            continue
        inner = getattr(node, "body", None)
        if isinstance(node, ast.stmt):
            end = inner[0].lineno - 1 if isinstance(inner, list) else node.end_lineno or node.lineno
            lines.update(range(node.lineno, max(end, node.lineno) + 1))
    return len(lines)
