"""What it gains to bring coordinates of unknown units to one spread, and what it costs where their units were right.

    python benchmarks/units.py --first 3000 --count 60      # prints the page results/units.md

Two runs on the same problem, one with the coordinates as they are (``units="alike"``) and one with the rule
(``selection/core/units.py``). The regret of a choice is noisy: which of two candidates is better is settled by one draw
of the problem. So it is also smoothed. Whoever knows the family's prior has, of the answers of a run, a posterior of
the true scores; the expected score of the choice under it has the mean of the true one and far less scatter, as the
problem was drawn from that very prior.

Notation (symbol → name):
    v̄_c   expected score of the choice given all answers, by the oracle's posterior   → first of ``smoothed``
    M      expected highest score by the same posterior                                → second of ``smoothed``

M has the same mean whatever is asked. A run that happened to find good answers has both high, so differences of v̄_c are
corrected by β times the difference of M, β their regression coefficient.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from bestprompt.selection import SelectionState, SelectorConfig
from bestprompt.selection.belief.belief import AveragedBelief
from selection import run_selector
from selection_families import Problem, make_problem
from selection_oracle import oracle_strategy

N, RATIOS = 100, (0.75, 1.5, 2.5, 5.0)
REVERSED = "smooth, columns reversed"
FAMILIES = ("ill-informative", "clusters", REVERSED)
STEPS, DRAWS = 3, 1500
PAGE = """# Coordinates of unknown units: as they are, or in one spread

Command: `python benchmarks/units.py --first {first} --count {count}`. Difference of the regret, in one spread less as
they are, ± standard error over problems {first} and up; {count} problems of each family, N = 100, T = .75N, 1.5N, 2.5N
and 5N. Smoothed: by the posterior of somebody who knows the family (the script says how). In `ill-informative` eight
coordinates count, and forty others have larger units. In `clusters` units are alike and in any order, so the rule
divides by spreads in nearly all problems. "Columns reversed" is `smooth`, whose units are right, in the one
order in which the rule takes them for unknown: what an error of the rule costs.

| family | regret as they are | difference | smoothed difference |
| --- | --- | --- | --- |"""


def problem_of(family: str, seed: int) -> Problem:
    """Problem number ``seed``."""
    if family != REVERSED:
        found = make_problem(family, N, seed)
        assert isinstance(found, Problem)
        return found
    smooth = make_problem("smooth", N, seed)
    assert isinstance(smooth, Problem)
    return replace(smooth, Z=smooth.Z[:, ::-1].copy(), _answers={})


def smoothed(problem: Problem, state: SelectionState, choice: int) -> tuple[float, float]:
    """v̄_c of the ``choice`` after the answers of ``state``, and M."""
    knowing, belief = oracle_strategy(problem), None
    for _ in range(STEPS):
        before = None if belief is None else replace(belief, fitted=0)
        belief = knowing.updated(before, replace(state, belief=None))
    assert isinstance(belief, AveragedBelief)
    draws = belief.draws(DRAWS, np.random.default_rng(problem.seed))
    return float(draws[:, choice].mean()), float(draws.max(axis=1).mean())


def one_run(problem: Problem, budget: int, units: str) -> tuple[float, float, float]:
    """Regret, v̄_c and M of a run."""
    config = SelectorConfig(budget=budget, seed=problem.seed, units=units)  # type: ignore[arg-type]
    selector, state = run_selector(problem, config, pace=80)
    choice = selector.choice(state)
    return float(problem.truth.max() - problem.truth[choice]), *smoothed(problem, state, choice)


def differences(alike: np.ndarray, scaled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(S,) regret of ``scaled`` less that of ``alike`` (S, T, 3), plain and smoothed, mean over budgets."""
    plain, score, highest = np.moveaxis(scaled - alike, -1, 0)
    slopes = [np.cov(s, h)[0, 1] / max(float(h.var(ddof=1)), 1e-12) for s, h in zip(score.T, highest.T, strict=True)]
    return plain.mean(axis=1), (np.clip(slopes, 0.0, 1.0) * highest - score).mean(axis=1)


def row(family: str, seeds: range) -> str:
    """A family's line of the page."""
    runs = {
        units: np.array(
            [[one_run(problem_of(family, seed), round(ratio * N), units) for ratio in RATIOS] for seed in seeds]
        )
        for units in ("alike", "unknown")
    }
    shown = (
        f"{d.mean():+.4f} ± {d.std(ddof=1) / np.sqrt(d.size):.4f}" for d in differences(runs["alike"], runs["unknown"])
    )
    return f"| {family} | {runs['alike'][..., 0].mean():.4f} | " + " | ".join(shown) + " |"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--first", type=int, default=3000)
    parser.add_argument("--count", type=int, default=60)
    arguments = parser.parse_args()
    print(PAGE.format(first=arguments.first, count=arguments.count))
    for family in FAMILIES:
        print(row(family, range(arguments.first, arguments.first + arguments.count)), flush=True)


if __name__ == "__main__":
    main()
