"""How fast the embedded model answers: many short requests, one at a time, a long one; alone and beside a busy program.

    python benchmarks/lm_throughput.py [--model FILE]... [--repeats 3] [--former SOURCE]

Each engine runs in a process of its own and they take turns, so that a machine that slows down slows them alike.
``--former`` names the source folder of an earlier version; its engines join in. Every pass asks what no pass asked
before, so that only the common beginning of the short requests can come from memory. Where the system says so (Linux),
a pass during which other programs took more than a quarter of a core is repeated, twice at most.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "lm_throughput"
SOURCE = Path(__file__).parent.parent / "src"
INSTRUCTION = "Answer with the first letter of the following word.\nWord: {}"
SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va")
KINDS = {"at once": 48, "one at a time": 6, "long": 1}
FORMER_ENGINES = ("jax", "llama.cpp")
ATTEMPTS, TOLERATED = 3, 0.25


@dataclass(frozen=True)
class Pass:
    """One measured pass: which requests, in which surroundings, how long they took and who else was at work."""

    model: str
    engine: str
    kind: str
    busy: bool
    seconds: float
    cpu: float
    prompt_tokens: int
    answer_tokens: int
    others: float | None


# ---------------------------------------------------------------------------------------------- in the engine's process
def work(path: str, engine: str | None) -> None:
    """Answers each line ``{"kind", "number"}`` on standard input with what that pass took."""
    from bestprompt import lm
    from bestprompt.types import Message, Request

    model = lm.embedded(path or None, **({"engine": engine} if engine else {}))

    def ask(texts: Sequence[str], most: int) -> list[Request]:
        return [Request((Message("user", text),), max_tokens=most) for text in texts]

    model.complete(ask(short_texts(8, 300), 16))  # compiles, warms up
    print(json.dumps({"name": model.name}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        count, number = KINDS[order["kind"]], order["number"]
        requests = ask([long_text(number)], 100) if count == 1 else ask(short_texts(count, number), 16)
        batches = [requests] if order["kind"] == "at once" else [[request] for request in requests]
        started, cpu = time.perf_counter(), time.process_time()
        answers = [answer for batch in batches for answer in model.complete(batch)]
        took = {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}
        took["prompt_tokens"] = sum(answer.usage.prompt_tokens for answer in answers)
        took["answer_tokens"] = sum(answer.usage.completion_tokens for answer in answers)
        took["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "linux" else 1e9)
        print(json.dumps(took), flush=True)


def short_texts(count: int, number: int) -> list[str]:
    """The first-letter task on ``count`` words of its own for each ``number``."""
    words = map("".join, itertools.product(SYLLABLES, repeat=4))
    return [INSTRUCTION.format(word) for word in itertools.islice(words, count * number, count * (number + 1))]


def long_text(number: int) -> str:
    """Some 400 tokens, of its own for each ``number``, that ask for a long answer."""
    words = ["".join(pair) for pair in itertools.product(SYLLABLES, repeat=2)]
    facts = [f"The {words[(7 * number + n) % len(words)]} has {n + 2} legs." for n in range(41)]
    return f"Facts number {number}. {' '.join(facts)} Write a long story about all of them."


# ------------------------------------------------------------------------------------------------ in the first process
class Engine:
    """A process that answers for one model by one engine."""

    def __init__(self, path: str, source: Path, engine: str | None) -> None:
        self.label = f"before: {engine}" if engine else "llama.cpp"
        command = [sys.executable, __file__, "--work", path, *(["--engine", engine] if engine else [])]
        environment = {**os.environ, "PYTHONPATH": str(source)}
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.model = self._read()["name"]
        self.peak = 0.0

    def measure(self, kind: str, number: int, busy: subprocess.Popen[bytes] | None) -> Pass:
        """One pass."""
        assert self._process.stdin is not None
        before, started = _machine_cpu(), time.perf_counter()
        loop = _cpu_of(busy)
        print(json.dumps({"kind": kind, "number": number}), file=self._process.stdin, flush=True)
        took = self._read()
        self.peak = took.pop("peak")
        elapsed, after = time.perf_counter() - started, _machine_cpu()
        others = None if after is None or before is None else after - before - took["cpu"] - (_cpu_of(busy) - loop)
        share = None if others is None else round(max(0.0, others) / elapsed, 3)
        return Pass(self.model, self.label, kind, busy is not None, others=share, **took)

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found


def _machine_cpu() -> float | None:
    """CPU seconds that all programs together have used since the machine started."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    except OSError:
        return None
    user, nice, system, _idle, _waiting, interrupts, more_interrupts = map(int, fields[:7])
    return (user + nice + system + interrupts + more_interrupts) / os.sysconf("SC_CLK_TCK")


def _cpu_of(process: subprocess.Popen[bytes] | None) -> float:
    if process is None or not Path("/proc").exists():
        return 0.0
    user, system = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def busy_program() -> Iterator[subprocess.Popen[bytes]]:
    """A program that keeps one core busy."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def measure(engines: Sequence[Engine], repeats: int) -> list[Pass]:
    """Every engine, every kind of request, ``repeats`` times, alone and beside a busy program."""
    passes = []
    numbers = itertools.count()
    for with_loop in (False, True):
        with busy_program() if with_loop else ExitStack() as loop:
            busy = loop if with_loop else None
            for kind, _, engine in itertools.product(KINDS, range(repeats), engines):
                for _ in range(ATTEMPTS):
                    found = engine.measure(kind, next(numbers), busy)
                    if found.others is None or found.others <= TOLERATED:
                        break
                passes.append(found)
                print(found, flush=True)
    return passes


# ----------------------------------------------------------------------------------------------------------- the table
def table(passes: Sequence[Pass], peaks: dict[tuple[str, str], float], repeats: int) -> str:
    """A Markdown table: medians and spreads."""
    lines = [
        f"{len(os.sched_getaffinity(0))} cores, {repeats} passes each, engines taking turns; median (lowest–highest). "
        f"At once: {KINDS['at once']} short requests, evaluations a second. One at a time: {KINDS['one at a time']} of "
        "them. Long: seconds for one request, with its tokens of prompt + answer. Other programs took "
        f"{_spread([p.others for p in passes if p.others is not None])} of a core meanwhile.",
        "",
        "| model | engine | | at once | one at a time | long | peak memory, GB |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (model, engine), busy in itertools.product(peaks, (False, True)):
        mine = [p for p in passes if (p.model, p.engine, p.busy) == (model, engine, busy)]
        cells = [model, engine, "beside a busy program" if busy else "alone"]
        for kind, count in KINDS.items():
            found = [p for p in mine if p.kind == kind]
            if count > 1:
                cells.append(_spread([count / p.seconds for p in found]))
            else:
                tokens = [statistics.median_low(values) for values in zip(*map(_tokens, found), strict=True)]
                cells.append(f"{_spread([p.seconds for p in found])}; {tokens[0]} + {tokens[1]}")
        lines.append("| " + " | ".join([*cells, "" if busy else f"{peaks[model, engine]:.2f}"]) + " |")
    return "\n".join(lines) + "\n"


def _tokens(found: Pass) -> tuple[int, int]:
    return found.prompt_tokens, found.answer_tokens


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})" if values else "–"


def main() -> None:
    """Measures, prints the table and writes it with the raw timings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", help="a GGUF file; may be repeated (the default weights otherwise)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--former", type=Path, help="source folder of an earlier version, whose engines join in")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where to write, without suffix")
    parser.add_argument("--work", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        work(options.work, options.engine)
        return
    passes: list[Pass] = []
    peaks: dict[tuple[str, str], float] = {}
    for path in options.model or [""]:
        kinds = [(SOURCE, None), *((options.former, e) for e in FORMER_ENGINES if options.former)]
        engines = [Engine(path, source.resolve(), engine) for source, engine in kinds]
        passes += measure(engines, options.repeats)
        peaks |= {(engine.model, engine.label): engine.peak for engine in engines}
        for engine in engines:
            engine.close()
    text = table(passes, peaks, options.repeats)
    print("\n" + text)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.with_suffix(".md").write_text("# The embedded model's engine\n\n" + text)
    record = {"peaks": [[*key, peak] for key, peak in peaks.items()], "passes": [asdict(one) for one in passes]}
    options.output.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
