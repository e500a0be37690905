"""What asking as answers arrive costs, and how busy it keeps a slow server; a real server on loopback.

Against a server that answers at once: seconds per call of a whole run's evaluations, with q in flight, beside those of
q threads that send the same requests through the same client and do nothing else. The difference is our overhead. The
same in seconds of processor time of this process, which other programs on the machine hardly disturb.
Against a server whose answers take 200 ms on average, some of them several times as long: calls a second beside the
ideal q / mean, in flight and in lock-step, from the first evaluation to the verdict; and in flight also over the middle
four fifths of the answers, without the beginning, the last answers and the verdict, which take as long in longer runs.

    python benchmarks/in_flight.py [--in-flight 64] [--null 3000] [--calls 3200] [--repeats 3]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import bestprompt as bp
from bestprompt.run.settings import load_settings
from bestprompt.types import Completion
from loopback import served
from run_overhead import Stopwatch, recorded_requests

RESULTS = Path(__file__).parent / "results" / "in_flight.md"
MEAN, SPREAD = 0.2, 0.5
PROMPTS = [
    f"Repeat the word {how}." for how in ("exactly", "again", "below", "slowly", "twice", "now", "please", "once")
]


@dataclass(frozen=True)
class Cost:
    """Of one call, in milliseconds: on the clock, and of processor time."""

    clock: float
    processor: float
    middle: float = 0.0  # on the clock, between the first and the last tenth of the answers


class Meter(Stopwatch):
    """Measures the evaluations of a run, from the first on."""

    def __init__(self) -> None:
        super().__init__()
        self._processor = 0.0
        self._answers: list[float] = []

    def stage(self, name: str, total: int | None) -> None:
        """Starts both clocks at the first evaluation stage."""
        super().stage(name, total)
        if self.started and not self._processor:
            self._processor = time.process_time()

    def evaluated(self, entry: object) -> None:
        """Notes when."""
        self._answers.append(time.perf_counter())

    def begin(self) -> None:
        """Starts both clocks now."""
        self.stage("evaluating", None)

    def per_call(self, calls: int) -> Cost:
        """Since then, for each of so many calls."""
        clock, processor = time.perf_counter() - self.started, time.process_time() - self._processor
        tenth = len(self._answers) // 10
        middle = self._answers[tenth : len(self._answers) - tenth]
        between = (middle[-1] - middle[0]) / (len(middle) - 1) if middle else 0.0
        return Cost(1e3 * clock / calls, 1e3 * processor / calls, 1e3 * between)


def through_run(url: str, calls: int, in_flight: int, batch: int | None, folder: Path) -> Cost:
    """A call among the evaluations of one run; in lock-step with a ``batch``."""
    task = bp.Task.from_pairs([(f"word{n}", f"word{n}") for n in range(calls // 8)], PROMPTS, scorer="exact")
    pace = {"selection.in_flight": in_flight} if batch is None else {"selection.batch": batch}
    settings = load_settings(
        None,
        {"budget.calls": calls, "search.source": "examples", "ideas.mode": "off", "selection.stop_gain": 0.0, **pace},
    )
    meter = Meter()
    rec = bp.optimize(task, model(url, in_flight), config=settings, ledger=folder, observer=meter)
    return meter.per_call(rec.calls)


def model(url: str, places: int) -> bp.types.LanguageModel:
    """The client."""
    return bp.lm.openai("m", url, concurrency=places)


def bare(url: str, places: int, folder: Path) -> Cost:
    """A call of as many threads, which send what the run in ``folder`` sent."""
    lm, requests, meter = model(url, places), recorded_requests(folder), Meter()
    with ThreadPoolExecutor(places) as pool:
        meter.begin()
        answers = list(pool.map(lambda request: lm.complete([request])[0], requests))
        cost = meter.per_call(len(requests))
    assert all(isinstance(answer, Completion) for answer in answers)
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--null", type=int, default=3000, help="calls against the server that answers at once")
    parser.add_argument("--calls", type=int, default=3200, help="calls against the slow one")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    q = options.in_flight
    runs, bares, flights, middles, slow, steps = [], [], [], [], [], []
    ideal = 1e3 * MEAN / q
    with tempfile.TemporaryDirectory() as scratch:
        with served(0.0) as url:
            through_run(url, 8 * 40, q, None, Path(scratch) / "warm")  # what is compiled or loaded once is no call's
        for repeat in range(options.repeats):
            with served(0.0) as url:
                folder = Path(scratch) / f"null-{repeat}"
                runs.append(through_run(url, options.null, q, None, folder))
                bares.append(bare(url, q, folder))
            with served(MEAN, SPREAD) as url:
                flight = through_run(url, options.calls, q, None, Path(scratch) / f"f-{repeat}")
                flights.append(ideal / flight.clock)
                middles.append(ideal / flight.middle)
                slow.append(flight.processor)
                steps.append(ideal / through_run(url, options.calls // 4, q, q, Path(scratch) / f"s-{repeat}").clock)
            shares = f"{flights[-1]:.3f} {middles[-1]:.3f} {steps[-1]:.3f}"
            print(f"{repeat}: {runs[-1]} {bares[-1]} {slow[-1]:.2f} {shares}", flush=True)
    command = f"--in-flight {q} --null {options.null} --calls {options.calls} --repeats {options.repeats}"
    lines = [
        "# Evaluations in flight",
        "",
        f"`python benchmarks/in_flight.py {command}`",
        "",
        f"{q} in flight against a real server on loopback in a process of its own; {options.repeats} runs, median and "
        "range.",
        "",
        "| server that answers at once, ms per call | median | range |",
        "| --- | --- | --- |",
        *_costs("a whole run", runs),
        *_costs("as many threads with the same client", bares),
        *_costs(
            "overhead",
            [Cost(a.clock - b.clock, a.processor - b.processor) for a, b in zip(runs, bares, strict=True)],
        ),
        "",
        f"| server of {1e3 * MEAN:.0f} ms (log-normal, coefficient of variation {SPREAD}), share of the ideal rate "
        "| median | range |",
        "| --- | --- | --- |",
        _row("in flight", flights, 3),
        _row("in flight, the middle four fifths of the answers", middles, 3),
        _row(f"lock-step, batch of {q}", steps, 3),
        "",
        "| the same server, ms per call | median | range |",
        "| --- | --- | --- |",
        _row("in flight, processor time", slow, 2),
        "",
    ]
    RESULTS.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


def _costs(name: str, costs: list[Cost]) -> list[str]:
    clock = _row(name, [cost.clock for cost in costs], 2)
    return [clock, _row(f"{name}, processor time", [cost.processor for cost in costs], 2)]


def _row(name: str, values: list[float], digits: int) -> str:
    low, mid, high = (f"{v:.{digits}f}" for v in (min(values), statistics.median(values), max(values)))
    return f"| {name} | {mid} | {low} to {high} |"


if __name__ == "__main__":
    main()
