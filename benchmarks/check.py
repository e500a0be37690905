"""``bestprompt check`` on pairs of prompts whose difference is known: false alarms, power and calls.

    python benchmarks/check.py run [--minutes 9]     # fills results/check.json, continued where it ended
    python benchmarks/check.py table                 # results/check.md

The new prompt's true score differs from the incumbent's by d. Answers are right or wrong, at temperature 0; item
difficulties are normal with spread .6, 1.5 or 3 on the logit scale, prompt and item have .5 of their own, and the
incumbent's true score is drawn from .4 to .9. "Whole table" asks both prompts every pair and states what the same
belief then holds.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from bestprompt.choices import IncumbentCheck
from bestprompt.selection import SelectionState, Selector, SelectorConfig
from bestprompt.selection.conclusion.against_incumbent import AgainstIncumbent
from bestprompt.types import Observation, Proposal
from selection import load_record, save

RESULTS = Path(__file__).parent / "results"
PAIRS, DIFFERENCES, MARGINS = (20, 50, 200), (-0.3, -0.2, -0.1, -0.05, 0.0, 0.1), (0.0, 0.05)
SPREADS, OWN = (0.6, 1.5, 3.0), 0.5
BATCH = 4
OUTCOMES = ("worse", "not worse", "undecided")
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(81)


@dataclass(frozen=True)
class Cell:
    """One kind of comparison: M pairs, the true difference, the margin, and what an undecided one does."""

    pairs: int
    difference: float
    margin: float
    if_undecided: str = "pass"

    @property
    def key(self) -> str:
        """How the record names it."""
        return f"{self.pairs}|{self.difference:g}|{self.margin:g}|{self.if_undecided}"


def answers(cell: Cell, seed: int) -> np.ndarray:
    """(2, M) scores of incumbent and new prompt on every pair, in problem number ``seed``."""
    rng = np.random.default_rng([cell.pairs, round(1000 * (cell.difference + 1)), seed])
    spread, low = SPREADS[seed % len(SPREADS)], 0.4
    score = rng.uniform(max(low, low - cell.difference), min(0.9, 0.9 - cell.difference))
    total = float(np.hypot(spread, OWN))
    levels = [_level(truth, total) for truth in (score, score + cell.difference)]
    difficulty = spread * rng.standard_normal(cell.pairs)
    chance = expit(np.array(levels)[:, None] - difficulty + OWN * rng.standard_normal((2, cell.pairs)))
    return (rng.random((2, cell.pairs)) < chance).astype(float)


def _level(truth: float, spread: float) -> float:
    """The ability whose mean score over items is ``truth``."""
    weights = WEIGHTS / WEIGHTS.sum()
    return float(brentq(lambda level: expit(level - spread * NODES) @ weights - truth, -30.0, 30.0))


def one_run(cell: Cell, seed: int) -> list[float]:
    """Outcome (as a number), calls, and the outcome of asking the whole table."""
    table = answers(cell, seed)
    asked = IncumbentCheck(margin=cell.margin, if_undecided=cell.if_undecided)
    config = SelectorConfig(
        budget=2 * cell.pairs, pairs="common", items=cell.pairs, repeats="never", seed=seed, examples=(0, 1),
        incumbent=0, incumbent_check=asked,
    )  # fmt: skip
    selector = Selector(np.array([[0.0], [1.0]]), config)
    state = selector.initial()
    while selector.should_stop(state) is None:
        state = _told(selector, state, table)
    calls, found = len(state), _checked(selector, state)
    state = _told(selector, state, table, 2 * cell.pairs)
    whole = _checked(selector, state)
    return [OUTCOMES.index(found.outcome), calls, OUTCOMES.index(whole.outcome)]


def _told(selector: Selector, state: SelectionState, table: np.ndarray, n: int = BATCH) -> SelectionState:
    asked = selector.ask(state, n)
    return selector.tell(state, [Observation(*_place(p), float(table[_place(p)])) for p in asked])


def _place(proposal: Proposal) -> tuple[int, int]:
    return proposal.candidate, proposal.replication


def _checked(selector: Selector, state: SelectionState) -> AgainstIncumbent:
    found = selector.recommend(state).checked
    assert found is not None
    return found


def cells() -> list[Cell]:
    """All cells, those with few pairs first."""
    made = [Cell(m, d, margin) for m in PAIRS for margin in MARGINS for d in DIFFERENCES]
    strict = [Cell(m, d, 0.05, "fail") for m in PAIRS for d in (0.0, -0.1)]
    return [*made, *strict]


def run(minutes: float, repetitions: int) -> None:
    """Fills the record for as long as it may, problems of low number first in all cells."""
    path = RESULTS / "check.json"
    record, end = load_record(path), time.monotonic() + 60.0 * minutes
    for seed in range(repetitions):
        for cell in cells():
            if len(record.get(cell.key, ())) <= seed:
                if time.monotonic() > end:
                    save(record, path)
                    return
                record.setdefault(cell.key, []).append(one_run(cell, seed))
        if seed % 20 == 19:
            save(record, path)
    save(record, path)


HEAD = """# Checks of prompts whose difference is known, {count} runs

Command: `python benchmarks/check.py run && python benchmarks/check.py table`. Right-or-wrong answers at temperature 0,
probability .95, {batch} answers at a time. d is the true score of the new prompt less that of the one in use, m the
margin. Shares of the runs that ended worse, not worse, undecided; mean calls, and their share of the whole table; then
the shares had every pair been asked of both prompts.

| pairs | d | margin | if undecided | runs | worse | not worse | undecided | calls | of the table | \
whole table: worse | not worse |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def table() -> None:
    """Writes ``check.md``."""
    record = load_record(RESULTS / "check.json")
    lines, count = [], 0
    wrong: dict[str, list[np.ndarray]] = {"worse": [], "not worse": []}
    for cell in cells():
        rows = np.array(record.get(cell.key, ()))
        if not rows.size:
            continue
        count += len(rows)
        outcome, calls, whole = rows.T
        shares = [np.mean(outcome == n) for n in range(3)]
        figures = [*(f"{share:.3f}" for share in shares), f"{calls.mean():.0f}", f"{calls.mean() / 2 / cell.pairs:.2f}"]
        figures += [f"{np.mean(whole == n):.3f}" for n in (0, 1)]
        names = [cell.pairs, f"{cell.difference:+g}" if cell.difference else "0", f"{cell.margin:g}", cell.if_undecided]
        lines.append("| " + " | ".join(map(str, [*names, len(rows), *figures])) + " |")
        really = "worse" if cell.difference < -cell.margin else "not worse"
        said = "not worse" if really == "worse" else "worse"
        wrong[said].append(outcome == OUTCOMES.index(said))
    sentences = [
        f"Of {sum(map(len, found))} runs in which it is not so, {np.concatenate(found).mean():.3f} ended “{said}”; the "
        f"most in one row: {max(map(np.mean, found)):.3f}."
        for said, found in wrong.items()
    ]
    text = [HEAD.format(count=count, batch=BATCH), *lines, "", " ".join(sentences)]
    (RESULTS / "check.md").write_text("\n".join(text) + "\n")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--minutes", type=float, default=float("inf"))
    running.add_argument("--reps", type=int, default=200)
    commands.add_parser("table")
    chosen = parser.parse_args()
    if chosen.command == "table":
        table()
    else:
        run(chosen.minutes, chosen.reps)


if __name__ == "__main__":
    main()
