"""The table of ``benchmarks/selection.py``: mean regret ± standard error per cell, and how ours compares.

A record holds, per cell and contestant, one regret per macro-replication; ours a row of the regret and ``VERDICT``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from selection_families import HIDING_FAMILIES, ITEM_FAMILIES, look_alikes
from selection_replay import PREFIX

OURS, ORACLE, BLIND, CONNOISSEUR, APPRENTICE = "ours", "oracle", "blind oracle", "connoisseur", "apprentice"
ORACLE_CONCLUDES, OURS_CONCLUDES = "ours asks, the oracle concludes", "the oracle asks, ours concludes"
AUTO, PAPER = "ours, auto", "paper mode"
OF_THIS_PACKAGE = (OURS, ORACLE, BLIND, CONNOISSEUR, APPRENTICE, AUTO, PAPER)
CROSSED = (ORACLE_CONCLUDES, OURS_CONCLUDES)
VERDICT = ("pcs", "within", "low", "high", "score", "true", "raw", "stated_loss")
NEAR_ORACLE = ("KG",)
FEW = 5
BEST_PEER = " of each cell's best peer"
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
    """Ours against a peer, over the problems both have faced: mean regrets and the error of their difference."""

    peer: str
    theirs: float
    mine: float
    error: float


def comparison(cell: dict[str, np.ndarray], excluded: tuple[str, ...] = ()) -> Comparison:
    """The peer with the lowest mean regret (of those run at least ``FEW`` times) against ours, paired."""
    out = {*OF_THIS_PACKAGE, *CROSSED, *excluded}
    peers = {name: x for name, x in cell.items() if name not in out and len(x) >= FEW}
    name = min(peers, key=lambda p: float(peers[p].mean()))
    shared = min(len(peers[name]), len(cell[OURS]))
    return _paired(name, peers[name][:shared], cell[OURS][:shared])


def without_hindsight(cell: dict[str, np.ndarray]) -> Comparison:
    """Ours against the peer that was best on the other half of the problems; for peers run on as many as ours."""
    mine = cell[OURS]
    out = {*OF_THIS_PACKAGE, *CROSSED}
    peers = {name: x[: len(mine)] for name, x in cell.items() if name not in out and len(x) >= len(mine)}
    half = np.arange(len(mine)) % 2
    theirs = np.empty_like(mine)
    for side in (0, 1):
        name = min(peers, key=lambda p: float(peers[p][half != side].mean()))
        theirs[half == side] = peers[name][half == side]
    return _paired("chosen on the other half", theirs, mine)


def against_the_oracle(cell: dict[str, np.ndarray], oracle: str = ORACLE, who: str = OURS) -> Comparison | None:
    """Ours, or ``who`` else, against the same belief with the family's true prior and noise, on shared problems."""
    shared = min(len(cell.get(oracle, ())), len(cell.get(who, ())))
    return _paired(oracle, cell[oracle][:shared], cell[who][:shared]) if shared > 1 else None


def told_by_sight(cells: Cells) -> None:
    """Where no other family looks alike, the connoisseur is the oracle; the blind one, if coordinates are hidden."""
    for (family, _, _), cell in cells.items():
        known = BLIND if family in HIDING_FAMILIES else ORACLE
        if len(look_alikes(family)) == 1 and known in cell:
            cell[CONNOISSEUR] = cell[known]


def oracle_summary(seen: list[Comparison]) -> str:
    """One line: the averaged regrets of ours and of the oracle."""
    return f"{len(seen)} cells, mean regret {_ratio(seen)}"


def oracle_lines(cells: Cells) -> list[str]:
    """Ours against the oracle: over all cells, by budget, and by family."""
    compared = {key: seen for key, cell in cells.items() if (seen := against_the_oracle(cell)) is not None}
    if not compared:
        return []
    lines = [f"- Over the oracle (bar 1.15): {oracle_summary(list(compared.values()))}."]
    for ratio in sorted({key[2] / key[1] for key in compared}):
        part = [seen for key, seen in compared.items() if key[2] / key[1] == ratio]
        lines.append(f"  - T = {ratio:g}N: {oracle_summary(part)}")
    for family in dict.fromkeys(key[0] for key in compared):
        part = [seen for key, seen in compared.items() if key[0] == family]
        lines.append(f"  - {family}: {oracle_summary(part)}")
    blind = {key: seen for key, cell in cells.items() if (seen := against_the_oracle(cell, BLIND)) is not None}
    if blind:
        merged = list({**compared, **blind}.values())
        lines.append(f"- Over the blind oracle, where coordinates are hidden: {oracle_summary(list(blind.values()))}.")
        lines.append(f"- Over the blind oracle there and the oracle elsewhere: {oracle_summary(merged)}.")
    # What each piece of knowledge is worth, and where it is used: all on the problems that both have faced.
    for who, than in ((CONNOISSEUR, ORACLE), (APPRENTICE, ORACLE), *((name, ORACLE) for name in CROSSED),
                      (OURS, CONNOISSEUR), (OURS, APPRENTICE)):  # fmt: skip
        seen = [found for cell in cells.values() if (found := against_the_oracle(cell, than, who)) is not None]
        if seen:
            lines.append(f"- {who[0].upper()}{who[1:]}, over the {than}: {oracle_summary(seen)}.")
    return lines


def _paired(name: str, theirs: np.ndarray, mine: np.ndarray) -> Comparison:
    error = float((mine - theirs).std(ddof=1) / np.sqrt(len(mine)))
    return Comparison(name, float(theirs.mean()), float(mine.mean()), error)


def summary(seen: list[Comparison]) -> str:
    """One line: cells won or tied within one standard error, and the averaged regrets."""
    tied = sum(s.mine <= s.theirs + s.error for s in seen)
    return (
        f"{tied} of {len(seen)} cells best or within one standard error of best; mean regret {_ratio(seen, BEST_PEER)}"
    )


def _ratio(seen: list[Comparison], whose: str = "") -> str:
    mine, theirs = float(np.mean([s.mine for s in seen])), float(np.mean([s.theirs for s in seen]))
    # Problems differ far more than the contestants do, so the error is that of the paired differences.
    error = float(np.sqrt(np.sum([s.error**2 for s in seen]))) / len(seen) / theirs
    return f"{mine:.4f} against {theirs:.4f}{whose}: **ratio {mine / theirs:.2f}** ± {error:.2f}"


HEAD = """# Selection benchmark: mean regret of the selected candidate ± standard error (macro-replications)

Commands: `python benchmarks/selection.py run --group G` for each group G, then `python benchmarks/selection.py
table`. Every contestant faces the same problems and answers. Peers are asked for one evaluation at a time, ours for 1
+ t // 80 and paper mode for 1 + t // 12 after t answers, which can only handicap them. Ours is the default mode;
"ours, auto" is a former form of it, in which networks' kernels could join the average.
Families whose name begins with "items" have item difficulties; ours asks for common items there. The best peer is
found with hindsight, cell by cell, among those with at least 5 macro-replications; a peer that was run on few
problems and happened to do well on them is taken for the best and then compared on just these problems, which
flatters it. The lowest of several noisy means is lower than any of them: in the lines "without hindsight" each half of
a cell's problems is compared with the peer that was best on the other half, of those that faced as many problems as
ours. The hand-set prior of "KG" is nearly that of the families; "KG, prior fitted" fits its own, and the
lines "without KG" compare with the other peers only. Ratios: mean regret of ours over mean regret of each cell's best
peer, ± the standard error of the paired differences. The oracle is our own belief given the family's true prior (mean
and covariance of the logits) and noise, with the same duels: it shows what estimating these costs. Stored tables have
none. In "ill-informative" 8 of 48 coordinates count, and the oracle is told which; the blind oracle knows all else. The
connoisseur knows all families and not which of those it faces that look alike before anything is asked (where none
does, it is the oracle, or the blind one); the apprentice knows as much, but not how good the candidates are as a whole
and how far apart. "Ours asks, the oracle concludes": the run is ours, the final choice the oracle's, and vice versa.
"""


def write_table(folder: Path) -> None:
    """Writes ``selection.md`` beside the records."""
    cells = {key: cell for key, cell in sorted(load(folder).items()) if len(cell.get(OURS, ())) > 1 and len(cell) > 1}
    told_by_sight(cells)
    present = {name for cell in cells.values() for name in cell if name not in CROSSED}
    names = [*(name for name in OF_THIS_PACKAGE if name in present), *sorted(present - {*OF_THIS_PACKAGE})]
    lines = [HEAD]
    groups = {
        "Synthetic families (bar 0.8)": [k for k in cells if k[0] not in ITEM_FAMILIES and not k[0].startswith(PREFIX)],
        "Families with item difficulties (bar 0.5)": [k for k in cells if k[0] in ITEM_FAMILIES],
        "Replayed score tables (bar 0.5)": [k for k in cells if k[0].startswith(PREFIX)],
    }
    for title, chosen in groups.items():
        if not chosen:
            continue
        lines.append(f"- {title}: {summary([comparison(cells[key]) for key in chosen])}.")
        lines.append(f"  - without hindsight: {summary([without_hindsight(cells[key]) for key in chosen])}")
        lines.append(f"  - without KG: {summary([comparison(cells[key], NEAR_ORACLE) for key in chosen])}")
        for n, ratio in sorted({(key[1], key[2] / key[1]) for key in chosen}):
            part = [key for key in chosen if (key[1], key[2] / key[1]) == (n, ratio)]
            lines.append(f"  - N = {n}, T = {ratio:g}N: {summary([comparison(cells[key]) for key in part])}")
    lines += [
        *oracle_lines(cells),
        "",
        "| family | N | T | " + " | ".join(names) + " | best peer, on shared problems | over the oracle |",
        "| --- " * (len(names) + 5) + "|",
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
        known = against_the_oracle(cell)
        over = f"{known.mine / known.theirs:.2f} ± {known.error / known.theirs:.2f}" if known and known.theirs else "–"
        lines.append(f"| {key[0]} | {key[1]} | {key[2]} | " + " | ".join(shown) + f" | {paired} | {over} |")
    (folder / "selection.md").write_text("\n".join(lines) + "\n")
