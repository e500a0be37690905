"""Cost of one ask by surrogate, next to a BoTorch round in the same run; of PR-M-UCB, a verdict and memory as N grows.

One ask = refit (continuing from the last round) + posterior at all N candidates with K = 100 draws + acquisition +
argmax. Every contestant has the same soft prompts and evidence; medians over rounds, each with one more evaluation,
after compilation. Wall time suffers from other work on the machine, processor time (all threads) does not: ratios are
of processor time.

Run:  python benchmarks/surrogate_cost.py [--peer-python PYTHON_WITH_BOTORCH]
Writes benchmarks/results/surrogate_cost.json section by section, and surrogate_cost.md from it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np

N, D, EVALUATED, ROUNDS = 1000, 50, 300, 15
RESULT = Path(__file__).parent / "results" / "surrogate_cost.md"


def problem(n: int, d: int, evaluated: int) -> tuple[np.ndarray, ...]:
    """Soft prompts (n, d) with PCA-like decaying scales, ``evaluated`` noisy means, and the truth."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((n, d)) / np.sqrt(1.0 + np.arange(d))
    truth = 0.5 + 0.2 * np.tanh(Z @ rng.standard_normal(d))
    counts = np.zeros(n, dtype=np.int64)
    counts[:evaluated] = 1 + rng.integers(3, size=evaluated)
    means = truth + rng.standard_normal(n) * np.sqrt(0.1 / np.maximum(counts, 1))
    return Z, counts, means, np.full(n, 0.1), truth


def error(mean: np.ndarray, counts: np.ndarray, truth: np.ndarray) -> float:
    """Root mean squared error at the unevaluated candidates, in standard deviations of the truth: 1 = knows nothing."""
    unseen = counts == 0
    return float(np.sqrt(np.mean((mean - truth)[unseen] ** 2)) / truth[unseen].std())


def clocks() -> np.ndarray:
    """Wall and processor seconds."""
    return np.array([time.perf_counter(), time.process_time()])


def time_botorch() -> list[float]:
    """Median wall and processor seconds of a BoTorch round: fit a SingleTaskGP to the means, UCB, argmax; the error."""
    import torch
    from botorch.acquisition import UpperConfidenceBound
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    Z, counts, means, noise, truth = problem(N, D, EVALUATED)
    X = torch.tensor((Z - Z.min(0)) / (Z.max(0) - Z.min(0)))
    seconds = []
    for _ in range(5):
        seen = np.flatnonzero(counts)
        begin = clocks()
        y = torch.tensor(means[seen])[:, None]
        variance = torch.tensor(noise[seen] / counts[seen])[:, None]
        model = SingleTaskGP(X[seen], y, variance)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        with torch.no_grad():
            row = int(UpperConfidenceBound(model, beta=2.0)(X[:, None, :]).argmax())
        seconds.append(clocks() - begin)
        counts[row] += 1
    with torch.no_grad():
        mean = model.posterior(X).mean[:, 0].numpy()
    return [*np.median(seconds, axis=0).tolist(), error(mean, counts, truth)]


def time_ask(name: str, options: dict[str, object]) -> list[float]:
    """Median wall and processor seconds of one ask, without the two first rounds, which compile; then the error."""
    from bestprompt.acquisition.functions import ModifiedUCB
    from bestprompt.surrogates.base import make_surrogate
    from bestprompt.types import Evidence

    Z, counts, means, noise, truth = problem(N, D, EVALUATED)
    surrogate, rng, acquisition = make_surrogate(name, **options), np.random.default_rng(1), ModifiedUCB()
    fitted, seconds = None, []
    for _ in range(ROUNDS + 2):
        evidence = Evidence(counts.copy(), means, noise)
        begin = clocks()
        more = {"previous": fitted} if name in ("gp", "bnn", "vae") else {}
        fitted = surrogate.fit(Z, evidence, rng, **more)
        posterior = fitted.posterior(Z)
        row = int(acquisition(posterior, counts, int(counts.sum())).argmax())
        seconds.append(clocks() - begin)
        counts[row] += 1
    return [*np.median(seconds[2:], axis=0).tolist(), error(posterior.mean, counts, truth)]


def time_reinforce(sizes: tuple[int, ...], d: int = 20) -> list[tuple[int, float, float, float, float]]:
    """(N, wall s, processor s, peak MB of the maximiser, MB of the soft prompts) of PR-M-UCB on a BNN posterior."""
    from bestprompt.acquisition.functions import ModifiedUCB
    from bestprompt.acquisition.maximize import Reinforce
    from bestprompt.surrogates.base import make_surrogate
    from bestprompt.types import Evidence

    Z, counts, means, noise, _ = problem(max(sizes), d, EVALUATED)
    first = slice(0, 1000)
    evidence = Evidence(counts[first], means[first], noise[first])
    fitted = make_surrogate("bnn").fit(Z[first], evidence, np.random.default_rng(0))
    acquisition, maximise = ModifiedUCB(), Reinforce(starts=8, iterations=40, samples=8)

    def ask(n: int, seed: int) -> None:
        maximise(
            lambda rows: acquisition(fitted.posterior(Z[rows]), counts[rows], EVALUATED),
            n,
            1,
            np.random.default_rng(seed),
        )

    ask(min(sizes), 0)
    times: dict[int, list[np.ndarray]] = {n: [] for n in sizes}
    for seed in range(9):  # sizes take turns, so that other load on the machine falls on all of them
        for n in sizes:
            begin = clocks()
            ask(n, seed)
            times[n].append(clocks() - begin)
    rows = []
    for n in sizes:
        tracemalloc.start()
        ask(n, 0)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        rows.append((n, *np.median(times[n], axis=0).tolist(), peak, n * d * 8 / 1e6))
    return rows


def peak_of_ask(n: int) -> float:
    """Peak resident MB of a process in which the default network is asked twice at N = ``n``, D = 50."""
    from bestprompt.acquisition.functions import ModifiedUCB
    from bestprompt.surrogates.base import make_surrogate
    from bestprompt.types import Evidence

    Z, counts, means, noise, _ = problem(n, D, EVALUATED)
    fitted = None
    for _ in range(2):
        evidence = Evidence(counts, means, noise)
        fitted = make_surrogate("bnn").fit(Z, evidence, np.random.default_rng(0), previous=fitted)
        row = int(ModifiedUCB()(fitted.posterior(Z), counts, int(counts.sum())).argmax())
        counts[row] += 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def time_rounds(n: int, d: int, maximizer: str) -> list[float]:
    """Median wall and processor seconds of a round of ``Selector`` at N = ``n``: ask for one evaluation, tell it.

    The default network, 300 candidates evaluated before, β given so that nothing is tuned; the first rounds compile.
    """
    from bestprompt.selection import Selector, SelectorConfig
    from bestprompt.types import Observation

    Z, _, means, _, truth = problem(n, d, EVALUATED)
    selector = Selector(Z, SelectorConfig(budget=10**6, surrogate="bnn", maximizer=maximizer, beta=0.5))
    first = [Observation(c, 0, float(means[c])) for c in range(EVALUATED)]
    state, rng, seconds = selector.tell(selector.initial(), first), np.random.default_rng(3), []
    for _ in range(ROUNDS + 2):
        begin = clocks()
        (asked,) = selector.ask(state, 1)
        score = float(truth[asked.candidate] + 0.3 * rng.standard_normal())
        state = selector.tell(state, [Observation(asked.candidate, asked.replication, score)])
        seconds.append(clocks() - begin)
    return [float(x) for x in np.median(seconds[2:], axis=0)]


def time_verdict(n: int) -> list[float]:
    """Median wall and processor seconds of ``recommend`` at N = ``n`` with 3 evaluations of 300 candidates."""
    from bestprompt.selection import Selector, SelectorConfig
    from bestprompt.types import Observation

    Z, _, _, _, truth = problem(n, D, EVALUATED)
    rng = np.random.default_rng(2)
    selector = Selector(Z, SelectorConfig(budget=10 * n, surrogate="average"))
    told = [Observation(c, r, float(rng.random() < truth[c])) for c in range(EVALUATED) for r in range(3)]
    state, seconds = selector.tell(selector.initial(), told), []
    for _ in range(5):
        begin = clocks()
        selector.recommend(state)
        seconds.append(clocks() - begin)
    return [float(x) for x in np.median(seconds, axis=0)]


CONTESTANTS: list[tuple[str, str, dict[str, object]]] = [
    ("BNN by VI, 50-16-1 (default)", "bnn", {}),
    ("BNN by VI, 50-32-32-1", "bnn", {"layers": (32, 32)}),
    ("BNN by mean-field VI, 50-8-1 (paper mode)", "bnn", {"layers": (8,), "output": "mean-field", "steps": 1000}),
    ("VAE", "vae", {}),
    ("exact GP", "gp", {}),
    ("exact GP, mean and std only", "gp", {"n_draws": 0}),
    ("GP of rank 64", "gp-rank", {}),
    ("Bayesian linear regression", "blr", {}),
]


def measure(section: str, peer_python: str | None) -> object:
    """The figures of one section of the page."""
    if section == "botorch":
        if not peer_python:
            return None
        answer = subprocess.run([peer_python, __file__, "--peer"], capture_output=True, text=True, check=True)
        return json.loads(answer.stdout.splitlines()[-1])
    if section == "asks":
        return [[label, *time_ask(name, options)] for label, name, options in CONTESTANTS]
    if section == "reinforce":
        return time_reinforce((10**3, 10**4, 10**5, 10**6))
    if section == "rounds":
        sampled = [["PR-M-UCB", n, *time_rounds(n, 20, "reinforce")] for n in (10**3, 10**4, 10**5, 10**6)]
        return [["argmax", N, *time_rounds(N, D, "argmax")], *sampled]
    if section == "memory":
        found = []
        for n in (1_000, 16_000, 32_000, 64_000):
            command = [sys.executable, __file__, "--peak", str(n)]
            found.append([n, float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)])
        return found
    return time_verdict(N)


def page(found: dict[str, object]) -> str:
    """The results as Markdown."""
    peer: Any = found.get("botorch")
    lines = [
        "# Cost of one ask, of PR-M-UCB and of a verdict",
        "",
        "`python benchmarks/surrogate_cost.py --peer-python …`, on two cores without other work; where there is some,",
        "wall times grow and processor times remain comparable.",
        "",
        f"One ask at N = {N}, D = {D}, {EVALUATED} evaluated, K = 100 draws, after compilation; median of {ROUNDS}.",
        "",
        "| surrogate | wall ms | processor ms | processor, of a BoTorch round | error, in sd of the truth |",
        "| --- | --- | --- | --- | --- |",
    ]
    asks: Any = found.get("asks", [])
    for label, wall, processor, miss in asks:
        ratio = f"{processor / peer[1]:.4f}" if peer else "–"
        lines.append(f"| {label} | {1e3 * wall:.1f} | {1e3 * processor:.1f} | {ratio} | {miss:.2f} |")
    if peer:
        lines.append(
            f"| BoTorch SingleTaskGP fit + UCB | {1e3 * peer[0]:.0f} | {1e3 * peer[1]:.0f} | 1 | {peer[2]:.2f} |"
        )
    lines += [
        "",
        "BNN, VAE and exact GP continue from the last round's fit; the others, BoTorch too, fit afresh each round.",
        "An error of 1 is a flat surface: that surrogate has learnt nothing from these scores.",
        "",
        "PR-M-UCB (8 starts, 40 iterations, 8 samples) on a BNN posterior, D = 20; sizes take turns, median of 9.",
        "",
        "| N | wall ms | processor ms | processor, of N = 1000 | peak MB of the maximiser | MB of the soft prompts |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    rows: Any = found.get("reinforce", [])
    for n, wall, processor, peak, data in rows:
        ratio = processor / rows[0][2]
        lines.append(f"| {n:,} | {1e3 * wall:.0f} | {1e3 * processor:.0f} | {ratio:.2f} | {peak:.1f} | {data:.1f} |")
    lines += [
        "",
        f"A whole round of the ask/tell core, one evaluation asked and told, default network, median of {ROUNDS}.",
        f"D = {D} with argmax, 20 with PR-M-UCB.",
        "",
        "| maximiser | N | wall ms | processor ms |",
        "| --- | --- | --- | --- |",
    ]
    rounds: Any = found.get("rounds", [])
    lines += [f"| {name} | {n:,} | {1e3 * wall:.0f} | {1e3 * cpu:.0f} |" for name, n, wall, cpu in rounds]
    lines += [
        "",
        f"Peak memory of a process that asks the default network twice at N, D = {D}, K = 100 (one process each).",
        "",
        "| N | peak MB | MB of soft prompts and draws |",
        "| --- | --- | --- |",
    ]
    memory: Any = found.get("memory", [])
    lines += [f"| {n:,} | {peak:.0f} | {n * (D + 100) * 8 / 1e6:.1f} |" for n, peak in memory]
    verdict: Any = found.get("verdict")
    if verdict:
        wall, processor = (1e3 * x for x in verdict)
        lines += ["", f"`recommend` at N = {N} (averaged belief): {wall:.0f} ms wall, {processor:.0f} ms processor."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure the sections asked for, keep their figures, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", help="interpreter that has botorch; without it that row is left out")
    parser.add_argument(
        "--sections", default="botorch,asks,reinforce,rounds,memory,verdict", help="which to measure anew"
    )
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        print(json.dumps(time_botorch()))
        return
    if arguments.peak:
        print(peak_of_ask(arguments.peak))
        return
    figures = RESULT.with_suffix(".json")
    found = json.loads(figures.read_text()) if figures.exists() else {}
    for section in arguments.sections.split(","):
        found[section] = measure(section, arguments.peer_python)
        RESULT.parent.mkdir(exist_ok=True)
        figures.write_text(json.dumps(found, indent=1) + "\n")
        RESULT.write_text(page(found))
    print(page(found))


if __name__ == "__main__":
    main()
