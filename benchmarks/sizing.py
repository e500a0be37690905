"""How many calls, in flight, on how many workers? Regret against hours, by simulation, up to a million evaluations.

Service times are measured: those of a run's record (``--run FOLDER``; any run against your own server), drawn with
replacement. A worker serves ``PLACES`` requests at once; q are in flight and wait for the worker with most room, on
a virtual clock. What is chosen knows only the answers that had come back by then: top-two Thompson sampling on
independent beliefs, which are formed anew when there is a two-hundredth more to know. That is a simpler rule than the
product's, which cannot be simulated at a million; at the smallest T both are run on the same prompts, so that the page
says how far the stand-in can be trusted. Prompts that could be among a draw's best two with less than a chance in a
million are not drawn. True scores are those of N prompts, normal with standard deviation .1 around .6, without anything
that makes neighbours alike; an answer is right or wrong.

    python benchmarks/sizing.py --run runs/mine [--repeats 20] [--ray auto]
"""

from __future__ import annotations

import argparse
import heapq
import statistics
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from bestprompt.execution.fan_out import fan_out
from bestprompt.ledger import Ledger
from bestprompt.rng import stream
from bestprompt.selection import Selector, SelectorConfig
from bestprompt.types import Observation

RESULTS = Path(__file__).parent / "results" / "sizing.md"
PLACES = 16
CALLS = (10**3, 10**4, 10**5, 10**6)
DESIGNS = ((100, 16, 1), (100, 64, 4), (100, 512, 32), (1000, 16, 1), (1000, 64, 4), (1000, 512, 32))
REFRESHED = 200  # beliefs are formed anew when there is a two-hundredth more to know
REACH = 5.0  # standard deviations between which nearly all draws are
COMPARED = ((100, 16, 1), (100, 64, 4))  # designs in which the product is run as well, at the smallest T


@dataclass(frozen=True)
class Case:
    """N prompts, q in flight, so many workers, T calls, and which repetition it is."""

    prompts: int
    in_flight: int
    workers: int
    calls: int
    repetition: int

    @property
    def design(self) -> tuple[int, int, int]:
        """Prompts, in flight, workers."""
        return self.prompts, self.in_flight, self.workers


def simulated(service: tuple[float, ...], case: Case) -> tuple[float, float]:
    """(regret of the chosen prompt, seconds on the virtual clock)."""
    truth = _truth(case)
    rng = stream(case.repetition, "sizing", case.prompts, case.in_flight, case.workers, case.calls)
    right, tried = np.ones(case.prompts), np.full(case.prompts, 2.0)  # one success in two, before any
    seconds = _finished(np.array(service), case, rng)
    order = np.argsort(seconds, kind="stable")
    # The k-th is asked when the (k - q)-th answer is there: what is known then are the answers up to that one.
    asked = np.empty(case.calls, dtype=np.int64)
    scores = np.empty(case.calls, dtype=np.bool_)
    known = begin = 0
    while begin < case.calls:
        size = min(max(case.in_flight, begin // REFRESHED), case.calls - begin)
        asked[begin : begin + size] = _chosen(right, tried, size, rng)
        scores[begin : begin + size] = rng.random(size) < truth[asked[begin : begin + size]]
        begin += size
        until = max(begin - case.in_flight, 0)
        back = order[known:until]
        back = back[back < begin]
        np.add.at(right, asked[back], scores[back])
        np.add.at(tried, asked[back], 1.0)
        known = until
    np.add.at(right, asked[order[known:]], scores[order[known:]])
    np.add.at(tried, asked[order[known:]], 1.0)
    chosen = int(np.argmax(right / tried))
    return float(truth.max() - truth[chosen]), float(seconds.max())


def _finished(service: np.ndarray, case: Case, rng: np.random.Generator) -> np.ndarray:
    """(T,) when each call is answered, if as many are at the workers as may be."""
    places = min(case.in_flight, case.workers * PLACES)
    took = rng.choice(service, size=case.calls)
    free = [0.0] * places
    ended = np.empty(case.calls)
    for k in range(case.calls):
        ended[k] = free[0] + took[k]
        heapq.heapreplace(free, ended[k])
    return ended


def _chosen(right: np.ndarray, tried: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Top-two Thompson sampling: of two draws of the best, one or, half of the time, the next different one."""
    mean = right / tried
    std = np.sqrt(np.maximum(mean * (1.0 - mean), 0.01) / tried)
    second_best = np.partition(mean - REACH * std, -2)[-2]
    contenders = np.flatnonzero(mean + REACH * std >= second_best)
    mean, std = mean[contenders], std[contenders]
    chosen = np.empty(size, dtype=np.int64)
    for at in range(0, size, 512):
        draws = mean + std * rng.standard_normal((min(512, size - at), mean.size))
        best = draws.argmax(axis=1)
        draws[np.arange(best.size), best] = -np.inf
        second = draws.argmax(axis=1)
        chosen[at : at + best.size] = np.where(rng.random(best.size) < 0.5, best, second)
    return contenders[chosen]


def product(case: Case) -> float:
    """Regret of the product's own selection, asked for as many at a time as are in flight."""
    truth = _truth(case)
    Z = stream(case.repetition, "sizing", "coordinates").standard_normal((case.prompts, 8))
    config = SelectorConfig(budget=case.calls, seed=case.repetition, pairs="independent", units="alike")
    selector = Selector(Z, config)
    rng, state = stream(case.repetition, "sizing", "answers"), selector.initial()
    while proposals := selector.ask(state, case.in_flight):
        told = [Observation(p.candidate, p.replication, float(rng.random() < truth[p.candidate])) for p in proposals]
        state = selector.tell(state, told)
    return float(truth.max() - truth[selector.choice(state)])


def _truth(case: Case) -> np.ndarray:
    rng = stream(case.repetition, "sizing", case.prompts)
    return np.clip(0.6 + 0.1 * rng.standard_normal(case.prompts), 0.01, 0.99)


def service_times(folder: Path) -> tuple[float, ...]:
    """Seconds of the answered calls of a run."""
    with Ledger.read(folder) as ledger:
        return tuple(entry.latency for entry in ledger.entries() if entry.status == "ok" and entry.latency > 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="folder of a run whose service times are used")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--most", type=int, default=CALLS[-1], help="calls, at most")
    parser.add_argument("--ray", default=None, metavar="ADDRESS", help="spread repetitions over a cluster")
    options = parser.parse_args()
    service = service_times(options.run)
    calls = [t for t in CALLS if t <= options.most]
    cases = [Case(*design, t, r) for design in DESIGNS for t in calls for r in range(_repeats(options.repeats, t))]
    found = dict(zip(cases, fan_out(partial(simulated, service), cases, options.ray), strict=True))
    spread = np.quantile(service, (0.1, 0.5, 0.9))
    lines = [
        "# Sizing a run",
        "",
        f"`python benchmarks/sizing.py --run FOLDER --repeats {options.repeats} --most {options.most}`",
        "",
        f"Service times of {len(service)} measured calls: 10 %, median, 90 % {spread[0]:.3f}, {spread[1]:.3f}, "
        f"{spread[2]:.3f} s. {PLACES} requests at once per worker. Regret in points (mean, standard error), hours of "
        "the whole run; a hundred-thousand and more calls have a quarter of the repetitions.",
        "",
        "| prompts | in flight | workers | " + " | ".join(f"T = {t:,}" for t in calls) + " |",
        "| --- " * (3 + len(calls)) + "|",
    ]
    for design in DESIGNS:
        cells = []
        for t in calls:
            runs = [found[case] for case in cases if case.design == design and case.calls == t]
            hours = statistics.mean(seconds for _, seconds in runs) / 3600
            cells.append(f"{_points([regret for regret, _ in runs])}, {hours:.2g} h")
        lines.append("| " + " | ".join([*map(str, design), *cells]) + " |")
    twice = [case for case in cases if case.design in COMPARED and case.calls == calls[0]]
    ours = dict(zip(twice, fan_out(product, twice, options.ray), strict=True))
    lines += [
        "",
        f"The rule that is simulated beside the product's own selection, on the same prompts, T = {calls[0]:,}:",
        "",
        "| prompts | in flight | simulated rule | product |",
        "| --- | --- | --- | --- |",
    ]
    for design in COMPARED:
        same = [case for case in twice if case.design == design]
        columns = _points([found[case][0] for case in same]), _points([ours[case] for case in same])
        lines.append("| " + " | ".join([*map(str, design[:2]), *columns]) + " |")
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")
    print("\n".join(lines))


def _points(regrets: list[float]) -> str:
    points = [100 * regret for regret in regrets]
    return f"{statistics.mean(points):.2f} ± {statistics.stdev(points) / len(points) ** 0.5:.2f}"


def _repeats(repeats: int, calls: int) -> int:
    return repeats if calls < 10**5 else max(repeats // 4, 3)


if __name__ == "__main__":
    main()
