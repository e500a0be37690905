"""Which item should a candidate be asked next? Three rules on the problems of ``few_pairs.py``.

    python benchmarks/next_item.py --minutes 20        # results/next_item.md

*in turn*: the order of the rotation. *most telling*: the item whose answer is the least noisy look at the candidate,
among those it has not met (what the package does). *with repetitions*: where answers vary, also those it has met, a
repetition as noisy as the estimated split of the variance says. Problems 5000 and up; every rule faces the same ones.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

import few_pairs
from bestprompt.selection import SelectionState, Selector, SelectorConfig
from bestprompt.selection.belief.belief import AveragedBelief, item_effects
from bestprompt.selection.core.state import Belief
from bestprompt.selection.selector import make_strategy
from bestprompt.selection.strategies.averaged import AveragedStrategy
from bestprompt.selection.strategies.rank import next_candidates
from bestprompt.types import Proposal
from few_pairs_table import COLUMNS

RULES = ("in turn", "most telling", "with repetitions")
FIRST = 5000
HEAD = """# Which item next?

Command: `python benchmarks/next_item.py --minutes {minutes:g}`. {reps} problems in each cell of `few_pairs.py` with at
most {prompts} prompts. Differences are paired, against items in turn, ± standard error.

| problems | rule | regret | less in turn | 95 % interval covers | bias | calls |
| --- | --- | --- | --- | --- | --- | --- |
"""


class Repeating(AveragedStrategy):
    """Asks a question again where the split of the variance says that this tells more than a new one."""

    __slots__ = ()

    def choose(
        self,
        state: SelectionState,
        belief: Belief,
        waiting: np.ndarray,
        remaining: int,
        n: int,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Duels in which every candidate's answer is as noisy as to its most telling question."""
        assert isinstance(belief, AveragedBelief)
        view = belief.exact_view(state, remaining + int(waiting.sum()))
        if len(state):
            view = replace(view, noise=belief.slope**2 * _noise(state, belief)[0].min(axis=1))
        return next_candidates(view, n, rng, np.repeat(np.arange(waiting.size), waiting))

    def questions(
        self, state: SelectionState, belief: Belief, chosen: np.ndarray, pending: Sequence[Proposal]
    ) -> list[Proposal]:
        """The most telling questions."""
        assert isinstance(belief, AveragedBelief)
        noise, answers = _noise(state, belief)
        items, proposals = state.rotation.items, []
        for c in map(int, chosen):
            item = int(np.argmin(noise[c]))
            proposals.append(Proposal(c, item + int(answers[c, item]) * items))
            answers[c, item] += 1
            noise[c, item] *= float(belief.dispersion.repeated_noise(np.array([1]))[0])
        return proposals


def _noise(state: SelectionState, belief: AveragedBelief) -> tuple[np.ndarray, np.ndarray]:
    """(N, I) noise of each question, asked before or not, and how often it was."""
    effects, unknown = item_effects(state, belief)
    answers = np.zeros((state.n_candidates, effects.size), dtype=np.int64)
    np.add.at(answers, (state.candidates, state.items), 1)
    weights = belief.link.weights(belief.level[:, None] + effects, belief.variance[:, None] + unknown)
    again = belief.dispersion.residual / weights * belief.dispersion.repeated_noise(answers) + unknown
    return np.where(answers > 0, again, belief.question_noise(state)), answers


def repeating_selector(Z: np.ndarray, config: SelectorConfig) -> Selector:
    """The selector with that rule."""
    usual = make_strategy(Z, config, 0)
    assert isinstance(usual, AveragedStrategy)
    return Selector(Z, config, Repeating(usual.shapes, usual.common))


def settings(rule: str, usual: tuple[SelectorConfig, int]) -> tuple[SelectorConfig, int]:
    """The settings of a run by that rule."""
    return replace(usual[0], next_item="in-turn" if rule == RULES[0] else "most-telling"), usual[1]


def run(minutes: float, prompts: int) -> tuple[dict[str, list[list[list[float]]]], int]:
    """Group of cells → rule → rows, and how many problems each cell had."""
    usual, plain = few_pairs.settings, few_pairs.Selector
    cells = [cell for cell in few_pairs.cells() if cell.prompts <= prompts]
    found: dict[str, list[list[list[float]]]] = {}
    end, seed = time.monotonic() + 60.0 * minutes, FIRST
    while time.monotonic() < end:
        for cell in cells:
            kind = (
                cell.kind if cell.kind.startswith("table") else "above temperature 0" if cell.hot else "temperature 0"
            )
            for number, rule in enumerate(RULES if cell.hot else RULES[:2]):
                few_pairs.settings = lambda *given, rule=rule: settings(rule, usual(*given))
                few_pairs.Selector = repeating_selector if rule == RULES[2] else plain
                row = few_pairs.one_run(cell, "ours", seed)
                for group in (kind, f"{kind}, N = {cell.prompts}"):
                    found.setdefault(group, [[] for _ in RULES])[number].append(row)
        seed += 1
    return found, seed - FIRST


def line(group: str, rule: str, rows: np.ndarray, in_turn: np.ndarray) -> str:
    """One row of the table."""
    column = dict(zip(COLUMNS, rows.T, strict=True))
    less = column["regret"] - in_turn[:, COLUMNS.index("regret")]
    less_by, mean = f"{less.mean():+.4f} ± {less.std() / np.sqrt(less.size):.4f}", partial(np.mean, axis=0)
    return (
        f"| {group} | {rule} | {mean(column['regret']):.4f} | {less_by} "
        f"| {mean(column['covered']):.3f} | {mean(column['bias']):+.4f} | {mean(column['calls']):.1f} |"
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--prompts", type=int, default=40, help="leave larger sets out")
    options = parser.parse_args()
    found, reps = run(options.minutes, options.prompts)
    lines = [
        line(group, rule, np.array(rows), np.array(by_rule[0]))
        for group, by_rule in found.items()
        for rule, rows in zip(RULES, by_rule, strict=True)
        if rows
    ]
    head = HEAD.format(minutes=options.minutes, reps=reps, prompts=options.prompts)
    (few_pairs.RESULTS / "next_item.md").write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
