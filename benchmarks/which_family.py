"""How soon answers tell which family a problem is of, to somebody who knows all families exactly.

    python benchmarks/which_family.py --first 1000 --count 12      # prints the page results/which_family.md

The connoisseur of ``selection_oracle.py`` makes a run of 5N calls on problems of families that look alike, and after
each number of answers the probability that it gives the true one is noted. Nobody who does not know the families can
know sooner what kind of problem it is, and what is asked until then is asked in the dark.
"""

from __future__ import annotations

import argparse

import numpy as np

from bestprompt.types import Observation
from selection import default_mode
from selection_families import LOOK_ALIKES, Problem, make_problem
from selection_oracle import connoisseur_strategy

N, MOMENTS = 100, (20, 40, 75, 150, 250, 500)
PAGE = """# Which family is it? The probability of the true one, to whoever knows them all

Command: `python benchmarks/which_family.py --first {first} --count {count}`. Mean ± standard error over {count}
problems of each family, N = 100, in the connoisseur's own runs; families that look alike are equally likely beforehand.
(Of a ridge the connoisseur knows mean and covariance, and takes it for normal, which it is not: there even many answers
do not lead it to the right one.)

| family | among | {moments} |
| --- | --- |{rule}"""


def probabilities(family: str, among: tuple[str, ...], seed: int) -> list[float]:
    """Of ``family`` after each of ``MOMENTS`` answers in a run on its problem number ``seed``."""
    problem = make_problem(family, N, seed)
    assert isinstance(problem, Problem)
    strategy = connoisseur_strategy(problem)
    selector, state = default_mode(problem, MOMENTS[-1], seed, strategy)
    told = [
        Observation(*row)
        for row in zip(*(x.tolist() for x in (state.candidates, state.replications, state.scores)), strict=True)
    ]
    beliefs = (strategy.updated(None, selector.tell(selector.initial(), told[:t])) for t in MOMENTS)
    return [float(np.exp(belief.evidence[among.index(family)])) for belief in beliefs]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--count", type=int, default=12)
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.count)
    moments = " | ".join(f"{t} answers" for t in MOMENTS)
    print(PAGE.format(first=seeds.start, count=len(seeds), moments=moments, rule=" --- |" * len(MOMENTS)))
    for among in LOOK_ALIKES:
        for family in among:
            found = np.array([probabilities(family, among, seed) for seed in seeds])
            errors = found.std(axis=0, ddof=1) / np.sqrt(len(seeds))
            shown = " | ".join(f"{m:.2f} ± {e:.2f}" for m, e in zip(found.mean(axis=0), errors, strict=True))
            print(f"| {family} | {len(among)} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
