"""Makes docs/peers.md and its figures from the committed rows.

python benchmarks/peers/page.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
mpl.rcParams.update({"svg.hashsalt": "bestprompt", "svg.fonttype": "none", "font.size": 9})
import matplotlib.pyplot as plt  # noqa: E402 - after the back end was chosen
from environments import RECORD, RESULTS  # noqa: E402
from methods import METHODS  # noqa: E402
from problems import TASKS  # noqa: E402
from summary import Row, across_budgets, difference, lines_of_code, of_method, shared_cells, usable  # noqa: E402

DOCS = RESULTS.parents[1] / "docs"
INK, ACCENT = "#555b66", "#0f6674"
OURS = ("ours-default", "ours-latent", "ours-examples", "ours-proposals")
TEXT = Path(__file__).with_name("page.md")


def rows_of(name: str) -> list[dict[str, Any]]:
    """Recorded rows, none where nothing was run."""
    path = RESULTS / name
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def panels(rows: Sequence[Row], group: str, task: str) -> Iterator[tuple[Any, int, list[Row], list[str]]]:
    """(model or family, budget, comparable rows, methods) for every pair of them that has any."""
    for name in dict.fromkeys(row[group] for row in rows):
        for budget in sorted({row["budget"] for row in rows}):
            chosen, methods = shared_cells([r for r in rows if (r[group], r["budget"]) == (name, budget)], task)
            if chosen:
                yield name, budget, chosen, methods


def draw(rows: Sequence[Row], group: str, task: str, value: str, label: str, target: Path) -> None:
    """One panel for each model (or family) and budget, a row for each method."""
    found = list(panels(rows, group, task))
    groups, budgets = list(dict.fromkeys(p[0] for p in found)), sorted({p[1] for p in found})
    shown = [name for name in METHODS if any(name in p[3] for p in found)]
    size = (3.2 * len(budgets) + 2.2, 0.9 + (0.24 * len(shown) + 0.7) * len(groups))
    figure, axes = plt.subplots(len(groups), len(budgets), figsize=size, squeeze=False, sharey=True, sharex="row")
    for name, budget, chosen, methods in found:
        axis = axes[groups.index(name)][budgets.index(budget)]
        for place, method in enumerate(shown):
            if method in methods:
                e, colour = of_method(chosen, method, value, task), ACCENT if METHODS[method].ours else INK
                axis.errorbar(e.mean, -place, xerr=e.half, fmt="o", color=colour, markersize=4, capsize=2, linewidth=1)
        runs = len(chosen) // len(methods)
        axis.set(title=f"{name}, {budget} calls ({runs} runs each)", xlabel=label)
        axis.set_yticks([-i for i in range(len(shown))], [METHODS[method].label for method in shown])
        axis.grid(axis="x", alpha=0.25)
        if value == "optimism":
            axis.axvline(0, color=INK, linewidth=0.8)
    for row in axes:
        for axis in row:
            axis.set_visible(axis.has_data())
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})
    plt.close(figure)


def table(header: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    body = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in body)


def seconds_of_an_answer(rows: Sequence[Row], model: str) -> float:
    """How long ``model`` took for one on average, where it was not taken from the store; 0 where no model answered."""
    of = [row for row in rows if row.get("model") == model]
    fresh = sum(row.get("fresh", 0) for row in of)
    return float(sum(row.get("served", 0.0) for row in of) / fresh) if fresh else 0.0


def comparison(rows: Sequence[Row], group: str, task: str) -> str:
    """Test score, honesty, calls and time of every method, one table for each panel."""
    parts = []
    for name, budget, chosen, methods in panels(rows, group, task):
        ours = next((each for each in OURS if each in methods), None)
        lines, served = [], seconds_of_an_answer(rows, name)
        for method in methods:
            of = {value: of_method(chosen, method, value, task) for value in
                  ("test", "gap", "floor", "optimism", "pairs", "calls", "overran", "refused", "tokens",
                   "own_seconds")}  # fmt: skip
            states = all("interval" in row for row in chosen if row["method"] == method)
            inside = f"{of_method(chosen, method, 'covered', task).mean:.0%}" if states else ""
            gain = "" if ours is None or method == ours else str(difference(chosen, ours, method, "test", task))
            honest = [of["optimism"].signed(), f"{of['gap'].mean:.3f}", f"{of['floor'].mean:.3f}", inside]
            overran = f"{of['overran'].mean:.0%} ({of['refused'].mean:.0f})"
            whole = f"{of['own_seconds'].mean + of['calls'].mean * served:.0f}" if served else ""
            lines.append([METHODS[method].label, of["test"], gain, *honest, f"{of['pairs'].mean:.0f}",
                          f"{of['calls'].mean:.0f}", overran, f"{of['tokens'].mean:,.0f}",
                          f"{of['own_seconds'].mean:.1f}", whole])  # fmt: skip
        tasks = list(dict.fromkeys(row[task] for row in chosen))
        what = f"{len(chosen) // len(methods)} runs of each method; tasks: {', '.join(map(str, tasks))}"
        than = METHODS[ours].label if ours else ""
        header = ["method", "test score", f"{than} − it", "optimism", "gap", "floor", "inside", "pairs", "calls",
                  "overran (refused)", "tokens", "own s", "whole s"]  # fmt: skip
        parts += [f"**{name}, {budget} calls** ({what})", table(header, lines)]
    return "\n\n".join(parts) if parts else "Nothing was run yet."


def over_all_budgets(rows: Sequence[Row], ours: str) -> str:
    """How much better ``ours`` is than each method, and what each promises too much, over all budgets."""
    chosen = across_budgets(rows, "family")
    methods = [name for name in METHODS if any(row["method"] == name for row in chosen)]
    if ours not in methods:
        return ""
    lines = []
    for method in methods:
        gain = "" if method == ours else difference(chosen, ours, method, "test", "family").signed()
        optimism = of_method(chosen, method, "optimism", "family").signed()
        lines.append([METHODS[method].label, of_method(chosen, method, "test", "family"), gain, optimism])
    title = f"**all families and budgets** ({len(chosen) // len(methods)} worlds, each at every budget)"
    header = ["method", "test score", f"{METHODS[ours].label} − it", "optimism"]
    return f"{title}\n\n{table(header, lines)}"


def failures(rows: Sequence[Row]) -> str:
    """Runs that ended without a prompt or without a score."""
    lost: dict[str, int] = {}
    for row in rows:
        if not usable(row):
            lost[METHODS[row["method"]].label] = lost.get(METHODS[row["method"]].label, 0) + 1
    if not lost:
        return "Every run ended with a prompt and a score."
    named = ", ".join(f"{label} {count}" for label, count in lost.items())
    return f"Runs that ended without a prompt or a score of it, and are left out: {named}."


def per_task(rows: Sequence[Row]) -> str:
    """Where a peer's prompt is better than each of ours, task by task."""
    parts = []
    for name, budget, chosen, methods in panels(rows, "model", "task"):
        lines = []
        for task in dict.fromkeys(row["task"] for row in chosen):
            here = [row for row in chosen if row["task"] == task]
            mean = {method: of_method(here, method, "test", "task").mean for method in methods}
            mine = {m: x for m, x in mean.items() if METHODS[m].ours}
            peers = {m: x for m, x in mean.items() if not METHODS[m].ours}
            if mine and peers:
                best, peer = max(mine, key=mine.__getitem__), max(peers, key=peers.__getitem__)
                lead = mean[best] - mean[peer]
                lines.append([task, METHODS[best].label, f"{mean[best]:.3f}", METHODS[peer].label, f"{mean[peer]:.3f}",
                              f"{lead:+.3f}"])  # fmt: skip
        header = ["task", "best of ours", "", "best of the others", "", "lead"]
        parts += [f"**{name}, {budget} calls**", table(header, lines)]
    return "\n\n".join(parts) if parts else "Nothing was run yet."


def installation() -> str:
    """Size, time and code of every method."""
    known: Mapping[str, Any] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    lines = []
    for name, method in METHODS.items():
        of = known.get(method.environment, {})
        versions = ", ".join(f"{package} {number}" for package, number in of.get("versions", {}).items())
        measured = [of.get(figure) or "" for figure in ("megabytes", "seconds", "processor_seconds")]
        lines.append([method.label, versions, *measured, lines_of_code(name)])
    return table(["method", "versions", "MB", "install s", "of the processor", "lines"], lines)


def signal() -> str:
    """Which task separates prompts on which model."""
    path = RESULTS / "peers_signal.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    lines = []
    for task in TASKS:
        cells = [record[model].get(task) for model in record]
        shown = [f"{c['worst']:.2f}–{c['best']:.2f} ({c['ratio']:.1f})" if c else "" for c in cells]
        lines.append([task, *shown])
    return table(["task", *record], lines) if record else "Not measured yet."


def main() -> None:
    """Writes the page."""
    real, scripted = rows_of("peers.jsonl"), rows_of("peers_scripted.jsonl")
    together = [{**row, "part": "all three families"} for row in scripted]
    figures = DOCS / "figures"
    for rows, group, task, name in ((real, "model", "task", "peers"), (scripted, "family", "family", "peers_scripted")):
        if rows:
            label = "test score of the chosen prompt" if name == "peers" else "true score of the chosen prompt"
            draw(rows, group, task, "test", label, figures / f"{name}_test.svg")
            draw(rows, group, task, "optimism", "stated − test", figures / f"{name}_optimism.svg")
    pictures = "![Scores of what was chosen](figures/{0}_test.svg)\n\n![Honesty](figures/{0}_optimism.svg)"
    dates = sorted(row["date"] for row in real if "date" in row)
    text = TEXT.read_text(encoding="utf-8")
    filled = {
        "figures": pictures.format("peers") if real else "", "runs": str(len(real)),
        "scripted_figures": pictures.format("peers_scripted") if scripted else "",
         "scripted_runs": str(len(scripted)),
        "dates": f"{dates[0]} to {dates[-1]}" if dates else "no run yet",
        "comparison": comparison(real, "model", "task"), "per_task": per_task(real), "failures": failures(real),
        "scripted_all": over_all_budgets(scripted, "ours-proposals"),
        "scripted": comparison(together, "part", "family"),
        "scripted_families": comparison(scripted, "family", "family"),
        "scripted_failures": failures(scripted),
        "installation": installation(), "signal": signal(),
    }  # fmt: skip
    for name, value in filled.items():
        text = text.replace(f"<<{name}>>", value)
    (DOCS / "peers.md").write_text(text, encoding="utf-8")
    print(DOCS / "peers.md")


if __name__ == "__main__":
    main()
