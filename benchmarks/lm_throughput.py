"""How many short evaluations a second the embedded engines manage, side by side in one run.

    python benchmarks/lm_throughput.py [--model FILE] [--items 40] [--repeats 5]

The engines take turns, so that a machine that slows down slows them alike; read the ratios, not the absolute figures.
CPU seconds are given beside wall-clock seconds because they mean something on a busy machine too. Every repeat asks
about words that no engine has seen in that run, so that only the common beginning of the prompts can come from a cache.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bestprompt import lm
from bestprompt.errors import LMError
from bestprompt.types import LanguageModel, Message, Request

RESULTS = Path(__file__).parent / "results" / "lm_throughput"
INSTRUCTION = "Answer with the first letter of the following word.\nWord: {}"
SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va")
ENGINES = ("jax", "llama.cpp")


@dataclass(frozen=True)
class Timing:
    """One pass over the items."""

    engine: str
    repeat: int
    items: int
    wall: float
    cpu: float
    tokens: int


def short_evaluation(items: int, repeat: int) -> list[Request]:
    """``items`` requests of the first-letter task, different for each repeat."""
    words = itertools.islice(map("".join, itertools.product(SYLLABLES, repeat=3)), items * repeat, items * (repeat + 1))
    return [Request((Message("user", INSTRUCTION.format(word)),), max_tokens=16) for word in words]


def bare_loop(model: LanguageModel, requests: Sequence[Request]) -> int:
    """Answers all requests with nothing around the model: batches of its own size, one after the other.

    This is what a run is compared with. Returns the answer tokens; raises the first error.
    """
    tokens = 0
    for first in range(0, len(requests), model.batch_size):
        for answer in model.complete(requests[first : first + model.batch_size]):
            if isinstance(answer, LMError):
                raise answer
            tokens += answer.usage.completion_tokens
    return tokens


def measure(path: str | None, items: int, repeats: int) -> list[Timing]:
    """Every engine over every repeat, taking turns, after one pass each that compiles and warms up."""
    models = {engine: lm.embedded(path, engine=engine) for engine in ENGINES}
    for model in models.values():
        bare_loop(model, short_evaluation(8, 500))
    timings = []
    for repeat in range(repeats):
        for engine, model in models.items():
            requests = short_evaluation(items, repeat)
            wall, cpu = time.perf_counter(), time.process_time()
            tokens = bare_loop(model, requests)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            timings.append(Timing(engine, repeat, items, wall, cpu, tokens))
            print(
                f"{engine:10} repeat {repeat}: {items / wall:5.2f} evaluations/s, {items / cpu:5.2f} per CPU second",
                flush=True,
            )
    return timings


def table(timings: Sequence[Timing], cores: int, load: float) -> str:
    """A Markdown table: medians, spreads and the ratio to llama.cpp, repeat by repeat."""
    by = {engine: [t for t in timings if t.engine == engine] for engine in ENGINES}
    lines = [
        f"{cores} core(s); load average before the run {load:.1f}; {len(by['jax'])} repeats of {by['jax'][0].items} "
        "short evaluations, engines taking turns. Median (lowest–highest).",
        "",
        "| engine | evaluations/s | evaluations per CPU second | wall ratio to llama.cpp | CPU ratio to llama.cpp |",
        "| --- | --- | --- | --- | --- |",
    ]
    for engine, runs in by.items():
        pairs = list(zip(runs, by["llama.cpp"], strict=True))
        columns = (
            [t.items / t.wall for t in runs],
            [t.items / t.cpu for t in runs],
            [other.wall / t.wall for t, other in pairs],
            [other.cpu / t.cpu for t, other in pairs],
        )
        lines.append("| " + " | ".join([engine, *(_spread(values) for values in columns)]) + " |")
    return "\n".join(lines) + "\n"


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def main() -> None:
    """Measures, prints the table and writes it with the raw timings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a GGUF file of the llama or qwen2 family (the default weights otherwise)")
    parser.add_argument("--items", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS, help="where to write, without suffix")
    options = parser.parse_args()
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    timings = measure(options.model, options.items, options.repeats)
    text = table(timings, cores, load)
    print("\n" + text)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.with_suffix(".md").write_text("# Throughput of the embedded engines\n\n" + text)
    record = {"cores": cores, "load": load, "timings": [asdict(timing) for timing in timings]}
    options.output.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
