"""What a run costs beside its model calls: evaluations a second through ``optimize``, against a bare loop.

The bare loop sends the requests that the run sent, in the run's order and in full batches, to the same model object.
Both are timed several times in one process, in alternating order, because the second pass may find warm caches.

    python benchmarks/run_overhead.py [--task first-letter] [--budget 120] [--repeats 3] [--model FILE.gguf]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import bestprompt as bp
from bestprompt.ledger import Ledger
from bestprompt.run.settings import load_settings
from bestprompt.types import LanguageModel, Message, Request

RESULTS = Path(__file__).parent / "results" / "run_overhead.md"


class Stopwatch:
    """An observer that notes when the evaluations begin: searching and loading are not what is measured."""

    def __init__(self) -> None:
        self.started = 0.0

    def stage(self, name: str, total: int | None) -> None:
        """Starts the clock at the first evaluation stage."""
        if name == "evaluating" and not self.started:
            self.started = time.perf_counter()

    def advance(self, done: int) -> None: ...
    def evaluated(self, entry: object) -> None: ...
    def warn(self, message: str) -> None: ...


def through_run(task: bp.Task, lm: LanguageModel, budget: int, folder: Path) -> float:
    """Seconds of the evaluation stage of a whole run."""
    watch = Stopwatch()
    settings = load_settings(None, {"budget.calls": budget, "search.source": "examples", "ideas.mode": "off"})
    bp.optimize(task, lm, config=settings, ledger=folder, observer=watch)
    return time.perf_counter() - watch.started


def recorded_requests(folder: Path) -> list[Request]:
    """The requests of a run, in the order in which they were recorded."""
    requests = []
    with Ledger.read(folder) as ledger:
        for entry in ledger.entries():
            values = dict(entry.request)
            values["messages"] = tuple(Message(**m) for m in values["messages"])
            values["stop"] = tuple(values["stop"])
            requests.append(Request(**values))
    return requests


def bare_loop(lm: LanguageModel, requests: list[Request], batch: int) -> float:
    """Seconds to send ``requests`` in batches."""
    started = time.perf_counter()
    for at in range(0, len(requests), batch):
        lm.complete(requests[at : at + batch])
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="first-letter")
    parser.add_argument("--budget", type=int, default=120)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--model", default=None)
    options = parser.parse_args()
    lm = bp.lm.embedded(options.model)
    task = bp.Task.load(options.task)
    run_times, bare_times = [], []
    with tempfile.TemporaryDirectory() as scratch:
        through_run(task, lm, options.budget, Path(scratch) / "warm-up")
        requests = recorded_requests(Path(scratch) / "warm-up")
        for repeat in range(options.repeats):
            passes = [
                lambda repeat=repeat: run_times.append(
                    through_run(task, lm, options.budget, Path(scratch) / f"run-{repeat}")
                ),
                lambda: bare_times.append(bare_loop(lm, requests, lm.batch_size)),
            ]
            for one in passes if repeat % 2 == 0 else passes[::-1]:
                one()
    rates = [options.budget / t for t in run_times], [options.budget / t for t in bare_times]
    ratios = [bare / run for run, bare in zip(run_times, bare_times, strict=True)]
    command = f"--task {options.task} --budget {options.budget} --repeats {options.repeats}"
    lines = [
        "# Overhead of a run",
        "",
        f"`python benchmarks/run_overhead.py {command}`",
        "",
        f"Model {lm.name}, {options.budget} evaluations, {options.repeats} passes each, alternating.",
        "",
        "| | evaluations a second, median | spread |",
        "| --- | --- | --- |",
        f"| through `bestprompt run` | {statistics.median(rates[0]):.1f} | {min(rates[0]):.1f}–{max(rates[0]):.1f} |",
        f"| bare loop, same requests | {statistics.median(rates[1]):.1f} | {min(rates[1]):.1f}–{max(rates[1]):.1f} |",
        f"| ratio run ÷ bare, pass by pass | {statistics.median(ratios):.2f} | {min(ratios):.2f}–{max(ratios):.2f} |",
        "",
    ]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))
    print(json.dumps({"run_seconds": run_times, "bare_seconds": bare_times}))


if __name__ == "__main__":
    main()
