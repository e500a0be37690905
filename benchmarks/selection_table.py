"""The table of ``benchmarks/selection.py``: mean regret ± standard error per cell, and how ours compares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from selection_families import ITEM_FAMILIES

OURS = "ours"
Cells = dict[tuple[str, int, int], dict[str, np.ndarray]]


def load(folder: Path) -> Cells:
    """Regrets by cell and contestant, from every group's file."""
    cells: Cells = {}
    for path in sorted(folder.glob("selection_*.json")):
        for key, regrets in json.loads(path.read_text()).items():
            family, n, budget, name = key.split("|")
            if regrets:
                cells.setdefault((family, int(n), int(budget)), {})[name] = np.asarray(regrets)
    return cells


class Comparison(NamedTuple):
    """Ours against a cell's best peer, over the problems both have faced."""

    peer: str
    theirs: float
    mine: float
    error: float


def comparison(cell: dict[str, np.ndarray], least: int = 5) -> Comparison:
    """The peer with the lowest mean regret (of those run at least ``least`` times) against ours, paired."""
    peers = {name: x for name, x in cell.items() if name not in (OURS, "paper mode") and len(x) >= least}
    name = min(peers, key=lambda p: float(peers[p].mean()))
    shared = min(len(peers[name]), len(cell[OURS]))
    mine, theirs = cell[OURS][:shared], peers[name][:shared]
    return Comparison(
        name, float(theirs.mean()), float(mine.mean()), float((mine - theirs).std(ddof=1) / np.sqrt(shared))
    )


def summary(cells: Cells, chosen: list[tuple[str, int, int]]) -> str:
    """One line: cells won or tied within one standard error, and the averaged regrets."""
    tied, mine, theirs, ratios = 0, [], [], []
    for key in chosen:
        seen = comparison(cells[key])
        tied += seen.mine <= seen.theirs + seen.error
        mine.append(seen.mine)
        theirs.append(seen.theirs)
        ratios.append(seen.mine / seen.theirs if seen.theirs > 0 else 1.0)
    return (
        f"{tied} of {len(chosen)} cells best or within one standard error of best; mean regret {np.mean(mine):.4f} "
        f"against {np.mean(theirs):.4f} of each cell's best peer: **ratio {np.mean(mine) / np.mean(theirs):.2f}** "
        f"(median of the cells' ratios {np.median(ratios):.2f})"
    )


def write_table(folder: Path) -> None:
    """Writes ``selection.md`` beside the records."""
    cells = {key: cell for key, cell in sorted(load(folder).items()) if OURS in cell and len(cell) > 1}
    names = [OURS, "paper mode", *sorted({n for cell in cells.values() for n in cell} - {OURS, "paper mode"})]
    lines = ["# Selection benchmark: mean regret of the selected candidate ± standard error (macro-replications)", ""]
    plain = [key for key in cells if key[0] not in ITEM_FAMILIES]
    items = [key for key in cells if key[0] in ITEM_FAMILIES]
    for title, chosen, bar in (("Synthetic families", plain, 0.8), ("Families with item difficulties", items, 0.5)):
        if chosen:
            lines.append(f"- {title} (bar {bar}): {summary(cells, chosen)}.")
            for ratio in sorted({key[2] / key[1] for key in chosen}):
                part = [key for key in chosen if key[2] / key[1] == ratio]
                lines.append(f"  - T = {ratio:g}N: {summary(cells, part)}")
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
