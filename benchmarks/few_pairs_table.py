"""The tables of ``few_pairs.py``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

COLUMNS = (
    "calls", "different", "regret", "whole", "bias", "covered", "half", "pcs", "within", "here", "here_right",
)  # fmt: skip
DELTA = 0.02
Rows = dict[str, np.ndarray]

HEAD = """# Few pairs: are verdicts true, and are calls well spent?

Command: `python benchmarks/few_pairs.py run`, the same with `--group former`, then `table`. {count} runs of ours,
{former} of the way runs went before. Regret is on the population (real tables: on the other half of the items).
`stated ≥ .95`: share of runs that were right among those that state at least .95 (number of them), for best, for within
{delta} of the best, and for best on the pairs at hand (temperature 0). "Over the former": regret on the same problems
with the same budget, ratio of means. "Less the whole table": difference of regrets on the same problems ± its standard
error.

"""
LINE = (
    "| {name} | {runs} | {covered:.3f} | {bias:+.4f} | {half:.3f} | {best} | {within} | {here} | {calls:.0f} "
    "| {again:.1f} | {regret:.4f} | {ratio} | {gap:+.4f} ± {error:.4f} |"
)
COLUMN_NAMES = (
    "| | runs | 95 % interval covers | bias | half width | stated best ≥ .95 right | within | on these pairs | calls "
    "| repeated | regret | over the former | less the whole table |\n" + "| --- " * 13 + "|\n"
)


def load(path: Path) -> dict[str, np.ndarray]:
    """Cell → rows (R, columns)."""
    return {key: np.array(rows) for key, rows in json.loads(path.read_text()).items()} if path.exists() else {}


def line(name: str, keys: Sequence[str], ours: dict[str, np.ndarray], former: dict[str, np.ndarray]) -> str:
    """One row of a table over the cells ``keys``."""
    rows = np.concatenate([ours[key] for key in keys])
    r = dict(zip(COLUMNS, rows.T, strict=True))
    pairs = [
        (mine[: len(theirs), 2], theirs[: len(mine), 2])
        for key in keys if key in former for mine, theirs in [(ours[key], former[key])]
    ]  # fmt: skip
    gap = r["regret"] - r["whole"]
    before = np.concatenate([theirs for _, theirs in pairs]).mean() if pairs else 0.0
    now = np.concatenate([mine for mine, _ in pairs]).mean() if pairs else 0.0
    return LINE.format(
        name=name, runs=len(rows), covered=r["covered"].mean(), bias=r["bias"].mean(), half=r["half"].mean(),
        best=_share(r["regret"] <= 1e-9, r["pcs"] >= 0.95),
        within=_share(r["regret"] <= DELTA + 1e-9, r["within"] >= 0.95),
        here=_share(r["here_right"] > 0.5, (r["here"] >= 0.95) & ~np.isnan(r["here_right"])),
        calls=r["calls"].mean(), again=(r["calls"] - r["different"]).mean(), regret=r["regret"].mean(),
        ratio=f"{now / before:.2f}" if before > 0 else "–", gap=gap.mean(), error=gap.std() / np.sqrt(len(gap)),
    )  # fmt: skip


def _share(right: np.ndarray, stated: np.ndarray) -> str:
    return f"{right[stated].mean():.3f} ({stated.sum()})" if stated.any() else "–"


def write_table(folder: Path, groups: Sequence[str]) -> None:
    """Writes ``few_pairs.md``."""
    ours, former = (load(folder / f"few_pairs_{group}.json") for group in groups)
    cells = {key: key.split("|") for key in ours}

    def chosen(**wanted: str) -> list[str]:
        places = {"kind": 0, "heat": 1, "pairs": 2, "prompts": 3}
        return [k for k, parts in cells.items() if all(parts[places[name]] == value for name, value in wanted.items())]

    def complete(key: str) -> bool:
        return int(cells[key][4]) >= int(cells[key][2]) * int(cells[key][3])

    made = [k for k, parts in cells.items() if not parts[0].startswith("table:")]
    text = HEAD.format(count=sum(map(len, ours.values())), former=sum(map(len, former.values())), delta=DELTA)
    text += COLUMN_NAMES
    summary = {
        "all but tables": made,
        **{f"M = {m}": [k for k in chosen(pairs=m) if k in made] for m in ("10", "20", "50", "200")},
        **{f"N = {n}": [k for k in chosen(prompts=n) if k in made] for n in ("2", "8", "40", "200")},
        "temperature 0": [k for k in chosen(heat="cold") if k in made], "above 0": chosen(heat="hot"),
        "right or wrong": chosen(kind="right-or-wrong"), "graded": chosen(kind="graded"),
        "T ≥ M·N, temperature 0": [k for k in chosen(heat="cold") if k in made and complete(k)],
        **{kind: chosen(kind=kind) for kind in sorted({p[0] for p in cells.values() if p[0].startswith("table:")})},
    }  # fmt: skip
    text += "\n".join(line(name, keys, ours, former) for name, keys in summary.items() if keys)
    text += "\n\n## Every cell: kind, temperature, M, N, T\n\n" + COLUMN_NAMES
    text += "\n".join(line(", ".join(cells[key]), [key], ours, former) for key in cells) + "\n"
    (folder / "few_pairs.md").write_text(text)
