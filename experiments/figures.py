"""Figures and tables of docs/reproduction.md, from the committed results alone.

    python experiments/figures.py          # writes docs/figures/*.svg and the tables between markers in the page

Lines are means over repetitions, bands a standard deviation to either side, as in the paper.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, stdev

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
mpl.rcParams.update({"svg.hashsalt": "bestprompt", "svg.fonttype": "none", "font.size": 9})
import matplotlib.pyplot as plt  # noqa: E402 - after the back end was chosen

from protocol import HERE, METHODS, RUNS, rows  # noqa: E402

PAGE = HERE.parent / "docs" / "reproduction.md"
Row = dict[str, str]
E1, E2, E5 = (HERE / name / "results.csv" for name in ("e1_surrogates", "e2_acquisition", "e5_prompts"))
PROJECTION = HERE / "projection" / "results.csv"
RADAR_BUDGET = 500
FEWEST_PAIRS = 6  # of runs, for an interval


def grouped(found: Sequence[Row], value: str, *keys: str) -> dict[tuple[str, ...], list[float]]:
    """Values of one column by the values of others."""
    groups: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for row in found:
        groups[tuple(row[key] for key in keys)].append(float(row[value]))
    return groups


def spread(values: Sequence[float]) -> float:
    """Standard deviation; 0 of a single value."""
    return stdev(values) if len(values) > 1 else 0.0


def told(values: Sequence[float] | None, digits: int = 3) -> str:
    """Mean ± standard deviation (repetitions), the one value there is, or a dash."""
    if not values:
        return "–"
    deviation = f" ± {spread(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{deviation} ({len(values)})"


def lines(path: Path, found: Sequence[Row], along: str, panels: Sequence[tuple[str, str, bool]]) -> None:
    """One row of panels per table: a line with a band for each method along a column; (column, label, logarithmic)."""
    names = sorted({row["table"] for row in found})
    figure, axes = plt.subplots(len(names), len(panels), figsize=(4.4 * len(panels), 3 * len(names)), squeeze=False)
    for line, name in enumerate(names):
        own = [row for row in found if row["table"] == name]
        for axis, (column, label, logarithmic) in zip(axes[line], panels, strict=True):
            groups = grouped(own, column, "method", along)
            for method in dict.fromkeys(row["method"] for row in own):
                x = sorted(int(at) for who, at in groups if who == method)
                values = [groups[method, str(at)] for at in x]
                middle, half = np.array([mean(v) for v in values]), np.array([spread(v) for v in values])
                axis.plot(x, middle, marker="o", markersize=3, label=method)
                axis.fill_between(x, middle - half, middle + half, alpha=0.15)
            axis.set(xlabel=along, ylabel=label, title=name)
            if logarithmic:
                axis.set_yscale("log")
    axes[0][-1].legend(fontsize=7)
    save(figure, path)


def radar(path: Path, found: Sequence[Row]) -> None:
    """The fourth experiment: one spoke per table, one line per method."""
    names = sorted({row["table"] for row in found})
    groups = grouped(found, "score", "table", "method")
    angles = np.linspace(0, 2 * np.pi, len(names), endpoint=False)
    figure, axis = plt.subplots(figsize=(5.5, 5), subplot_kw={"projection": "polar"})
    for method in METHODS:
        known = [i for i, name in enumerate(names) if (name, method) in groups]
        if known:
            values = [mean(groups[names[i], method]) for i in known]
            axis.plot([*angles[known], angles[known[0]]], [*values, values[0]], marker="o", markersize=3, label=method)
    axis.set_xticks(angles, names)
    axis.set_ylim(0, 1)
    axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    save(figure, path)


def save(figure: plt.Figure, path: Path) -> None:
    """The same file from the same results."""
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    # Trailing blanks differ between versions of the library and are noise in a difference.
    path.write_text(re.sub(r"[ \t]+\n", "\n", path.read_text(encoding="utf-8")), encoding="utf-8")


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """As Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *body))


def by_method(found: Sequence[Row], along: str, values: Sequence[str]) -> str:
    """A row per table, method and place; mean ± standard deviation of each column."""
    groups = {value: grouped(found, value, "table", along, "method") for value in values}
    keys = list(dict.fromkeys((row["table"], row[along], row["method"]) for row in found))
    keys.sort(key=lambda key: (key[0], int(key[1])))
    return table(["table", along, "method", *values], [[*key, *(told(groups[v][key]) for v in values)] for key in keys])


def cards() -> str:
    """The score tables that have a card."""
    found = [(path.stem, json.loads(path.read_text())) for path in sorted((HERE / "tables").glob("*.json"))]
    columns = ("model", "prompts", "items", "mean", "best", "spread_over_error", "hours")
    body = [[name, *(str(card[column]) for column in columns), card["sha256"][:12]] for name, card in found]
    return table(["table", *columns, "sha256"], body) if found else "No table has a card yet."


def six_tasks() -> str:
    """Default mode against paper mode at one budget, in pairs."""
    runs = [row for row in rows(RUNS) if int(row["budget"]) == RADAR_BUDGET]
    groups = grouped(runs, "score", "table", "method")
    names = sorted({row["table"] for row in runs})
    text = table(["table", *METHODS], [[name, *(told(groups.get((name, m))) for m in METHODS)] for name in names])
    paired = grouped(runs, "score", "repetition", "table", "method")
    for rival in ("M-UCB", "M-UCB-r"):
        gaps = [
            value[0] - paired[(*key[:2], rival)][0]
            for key, value in paired.items()
            if key[2] == "default" and (*key[:2], rival) in paired
        ]
        if len(gaps) >= FEWEST_PAIRS:
            half = 1.96 * spread(gaps) / np.sqrt(len(gaps))
            text += f"\n\nDefault mode minus {rival}: {mean(gaps):+.3f} ± {half:.3f} (95 %, {len(gaps)} pairs)."
    return text


def prompts() -> str:
    """The fifth experiment."""
    found = rows(E5)
    body = [[r["table"], r["method"], r["prompt"], r["score"], f"{r['runs']} of {r['of']}"] for r in found]
    return table(["table", "method", "prompt", "score", "runs"], body)


TABLES: dict[str, Callable[[], str]] = {
    "cards": cards,
    "e1": lambda: by_method(rows(E1), "n", ("rmse", "covering")),
    "e2": lambda: by_method(rows(E2), "n", ("score", "seconds")),
    "e3": lambda: by_method(rows(RUNS), "budget", ("score", "regret")),
    "e4": six_tasks,
    "e5": prompts,
    "projection": lambda: by_method(rows(PROJECTION), "n", ("rmse", "density")),
}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--page", type=Path, default=PAGE)
    page = parser.parse_args().page
    folder = page.parent / "figures"
    folder.mkdir(exist_ok=True)
    lines(folder / "e1.svg", rows(E1), "n", [("rmse", "RMSE", True), ("covering", "covering ratio", False)])
    lines(folder / "e2.svg", rows(E2), "n", [("score", "score", False), ("seconds", "CPU seconds", True)])
    lines(folder / "e3.svg", rows(RUNS), "budget", [("score", "score", False)])
    radar(folder / "e4.svg", [row for row in rows(RUNS) if int(row["budget"]) == RADAR_BUDGET])
    text = page.read_text(encoding="utf-8")
    for name, make in TABLES.items():
        before, marker, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("\n<!-- end -->")
        text = before + marker + make() + end + after
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
