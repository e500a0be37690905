"""The table of ``benchmarks/selection.py``: mean regret ± standard error per cell, and how ours compares.

A record holds, per cell and contestant, one regret per macro-replication; ours a row of the regret and ``VERDICT``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from selection_families import ITEM_FAMILIES
from selection_replay import PREFIX

OURS = "ours"
VERDICT = ("pcs", "within", "low", "high", "score", "true", "raw", "stated_loss")
NEAR_ORACLE = ("KG",)
FEW, MANY = 5, 50
Cells = dict[tuple[str, int, int], dict[str, np.ndarray]]


def load(folder: Path) -> Cells:
    """Regrets by cell and contestant, from every group's file."""
    cells: Cells = {}
    for path in sorted(folder.glob("selection_*.json")):
        for key, rows in json.loads(path.read_text()).items():
            family, n, budget, name = key.split("|")
            if rows:
                regrets = [row[0] if isinstance(row, list) else row for row in rows]
                cells.setdefault((family, int(n), int(budget)), {})[name] = np.asarray(regrets)
    return cells


class Comparison(NamedTuple):
    """Ours against a cell's best peer, over the problems both have faced."""

    peer: str
    theirs: float
    mine: float
    error: float


def comparison(cell: dict[str, np.ndarray], excluded: tuple[str, ...] = (), least: int = FEW) -> Comparison:
    """The peer with the lowest mean regret (of those run at least ``least`` times) against ours, paired."""
    out = {OURS, "paper mode", *excluded}
    peers = {name: x for name, x in cell.items() if name not in out and len(x) >= least}
    name = min(peers, key=lambda p: float(peers[p].mean()))
    shared = min(len(peers[name]), len(cell[OURS]))
    mine, theirs = cell[OURS][:shared], peers[name][:shared]
    return Comparison(
        name, float(theirs.mean()), float(mine.mean()), float((mine - theirs).std(ddof=1) / np.sqrt(shared))
    )


def summary(cells: Cells, chosen: list[tuple[str, int, int]], excluded: tuple[str, ...] = (), least: int = FEW) -> str:
    """One line: cells won or tied within one standard error, and the averaged regrets."""
    seen = [comparison(cells[key], excluded, least) for key in chosen]
    tied = sum(s.mine <= s.theirs + s.error for s in seen)
    mine, theirs = float(np.mean([s.mine for s in seen])), float(np.mean([s.theirs for s in seen]))
    # Problems differ far more than the contestants do, so the error is that of the paired differences.
    error = float(np.sqrt(np.sum([s.error**2 for s in seen]))) / len(seen) / theirs
    return (
        f"{tied} of {len(chosen)} cells best or within one standard error of best; mean regret {mine:.4f} against "
        f"{theirs:.4f} of each cell's best peer: **ratio {mine / theirs:.2f}** ± {error:.2f}"
    )


HEAD = """# Selection benchmark: mean regret of the selected candidate ± standard error (macro-replications)

Commands: `python benchmarks/selection.py run --group G` for each group G, then `python benchmarks/selection.py
table`. Every contestant faces the same problems and answers. Peers are asked for one evaluation at a time, ours for 1
+ t // 80 and paper mode for 1 + t // 12 after t answers, which can only handicap them. Ours is the default mode with
`surrogate = "average"`, i.e. without the networks' kernels that `auto` may add, as their fits take seconds per run.
Families whose name begins with "items" have item difficulties; ours asks for common items there. The best peer is
found with hindsight, cell by cell, among those with at least 5 macro-replications; a peer that was run on few
problems and happened to do well on them is taken for the best and then compared on just these problems, which
flatters it. The lines on peers with 50 macro-replications or more are free of most of that, but leave out those that
were run less. The hand-set prior of "KG" is nearly that of the families; "KG, prior fitted" fits its own, and the
lines "without KG" compare with the other peers only. Ratios: mean regret of ours over mean regret of each cell's best
peer, ± the standard error of the paired differences.
"""


def write_table(folder: Path) -> None:
    """Writes ``selection.md`` beside the records."""
    cells = {key: cell for key, cell in sorted(load(folder).items()) if len(cell.get(OURS, ())) > 1 and len(cell) > 1}
    names = [OURS, "paper mode", *sorted({n for cell in cells.values() for n in cell} - {OURS, "paper mode"})]
    lines = [HEAD]
    groups = {
        "Synthetic families (bar 0.8)": [k for k in cells if k[0] not in ITEM_FAMILIES and not k[0].startswith(PREFIX)],
        "Families with item difficulties (bar 0.5)": [k for k in cells if k[0] in ITEM_FAMILIES],
        "Replayed score tables (bar 0.5)": [k for k in cells if k[0].startswith(PREFIX)],
    }
    for title, chosen in groups.items():
        if not chosen:
            continue
        lines.append(f"- {title}: {summary(cells, chosen)}.")
        lines.append(f"  - without KG: {summary(cells, chosen, NEAR_ORACLE)}")
        if all(any(len(x) >= MANY for name, x in cells[key].items() if name != OURS) for key in chosen):
            lines.append(f"  - peers with {MANY} macro-replications or more: {summary(cells, chosen, (), MANY)}")
        for n, ratio in sorted({(key[1], key[2] / key[1]) for key in chosen}):
            part = [key for key in chosen if (key[1], key[2] / key[1]) == (n, ratio)]
            lines.append(f"  - N = {n}, T = {ratio:g}N: {summary(cells, part)}")
    lines += [
        "",
        "| family | N | T | " + " | ".join(names) + " | best peer, on shared problems |",
        "| --- " * (len(names) + 4) + "|",
    ]
    for key, cell in cells.items():
        shown = [
            f"{cell[n].mean():.3f}±{cell[n].std(ddof=1) / np.sqrt(len(cell[n])):.3f} ({len(cell[n])})"
            if n in cell and len(cell[n]) > 1
            else "–"
            for n in names
        ]
        seen = comparison(cell)
        mark = "" if seen.mine <= seen.theirs + seen.error else " **missed**"
        paired = f"{seen.peer} {seen.theirs:.3f}, ours {seen.mine:.3f}{mark}"
        lines.append(f"| {key[0]} | {key[1]} | {key[2]} | " + " | ".join(shown) + f" | {paired} |")
    (folder / "selection.md").write_text("\n".join(lines) + "\n")
