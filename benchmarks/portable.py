"""Does the outcome of any test hang on last bits? The whole suite, on older instruction sets, threads and other seeds.

    python benchmarks/portable.py                                        # results/portable.md, continued where it ended
    python benchmarks/portable.py --tests tests/selection --only sse4_2   # a part, printed and not recorded

An instruction set changes the order of additions and which products are fused, hence the last bits of every sum. XLA is
held to it by a flag; OpenBLAS and NumPy, which choose at run time, are told to take the code of a processor that has
no more. ``--reseed`` (tests/conftest.py) gives every test that draws other draws.

A configuration that passed is not run again unless ``--again`` is given; one that failed always is.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
# What each level is called by XLA and by OpenBLAS, which names processors.
INSTRUCTION_SETS = {"SSE4_2": "NEHALEM", "AVX": "SANDYBRIDGE", "AVX2": "HASWELL", "AVX512": "SKYLAKEX"}
SEEDS = (1, 2, 3)

HEAD = """# The test suite on other instruction sets, threads and seeds

Command: `make test-portable`. Each row is the whole suite. *Instruction set*: the most that XLA, OpenBLAS and NumPy may
use. *Threads*: of each of them, in each of the two processes that share the tests. *Seed*: 0 is the one in the tests'
text, any other changes every draw (`pytest --reseed`); tests that compare with recorded values are left out there.
*Minutes*: of a machine that had other work as well.

| instruction set | threads | seed | passed | skipped | failed | minutes | commit | failures |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Configuration:
    """How one run of the suite goes."""

    instructions: str | None
    threads: int
    seed: int = 0

    @property
    def name(self) -> str:
        """Key of the record, and what ``--only`` matches."""
        return f"{self.instructions or 'native'}-{self.threads}-{self.seed}".lower()

    def environment(self) -> dict[str, str]:
        """Variables that hold XLA, OpenBLAS and NumPy to this configuration, in child processes too."""
        variables = dict.fromkeys(("NPROC", "BESTPROMPT_THREADS", "OPENBLAS_NUM_THREADS"), str(self.threads))
        if self.instructions is None:
            return variables
        variables["XLA_FLAGS"] = f"--xla_cpu_max_isa={self.instructions}"
        variables["OPENBLAS_CORETYPE"] = INSTRUCTION_SETS[self.instructions]
        variables["NPY_DISABLE_CPU_FEATURES"] = " ".join(_numpy_features_above(self.instructions))
        return variables


@dataclass(frozen=True)
class Outcome:
    """What one run of the suite ended with."""

    passed: int
    skipped: int
    failed: int
    minutes: float
    failures: list[str]
    commit: str


def configurations() -> list[Configuration]:
    """All that this machine can run."""
    levels = [level for level in INSTRUCTION_SETS if level != "AVX512" or _has_avx512()]
    return [
        *(Configuration(level, threads) for threads in (1, 2) for level in levels),
        *(Configuration(None, 1, seed) for seed in SEEDS),
    ]


def _has_avx512() -> bool:
    processor = Path("/proc/cpuinfo")
    return processor.exists() and "avx512f" in processor.read_text()


def _numpy_features_above(level: str) -> list[str]:
    """Names of what NumPy would choose at run time beyond ``level``: its own groups, which differ between versions."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    present = [feature for feature in __cpu_dispatch__ if __cpu_features__[feature]]
    if level == "AVX512":
        return []
    return [f for f in present if level != "AVX2" or f.startswith("AVX512") or f == "X86_V4"]


def run(configuration: Configuration, tests: list[str]) -> Outcome:
    """Runs the tests; their output goes to the terminal."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-n2", "--dist", "worksteal", "-q", f"--junitxml={report}", *tests]
        command += ["--reseed", str(configuration.seed)] if configuration.seed else []
        start = time.perf_counter()
        subprocess.run(command, cwd=ROOT, env={**os.environ, **configuration.environment()}, check=False)
        minutes = (time.perf_counter() - start) / 60
        return _read(report, minutes)


def _read(report: Path, minutes: float) -> Outcome:
    cases = list(ElementTree.parse(report).iter("testcase"))
    failures = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
    skipped = sum(c.find("skipped") is not None for c in cases)
    names = [f"{c.get('classname', '').removeprefix('tests.')}::{c.get('name')}" for c in failures]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    passed = len(cases) - skipped - len(failures)
    return Outcome(passed, skipped, len(failures), round(minutes, 1), names, commit.stdout.strip())


def table(record: dict[str, dict[str, object]]) -> str:
    """The Markdown table of all configurations that have run."""
    lines = []
    for configuration in configurations():
        if configuration.name in record:
            o = Outcome(**record[configuration.name])  # type: ignore[arg-type]
            columns = (configuration.instructions or "all", configuration.threads, configuration.seed, o.passed)
            columns += (o.skipped, o.failed, o.minutes, o.commit)
            columns += ("<br>".join(f"`{name}`" for name in o.failures) or "–",)
            lines.append("| " + " | ".join(str(column) for column in columns) + " |")
    return HEAD + "\n".join(lines) + "\n"


def main() -> None:
    """Runs what is missing and writes the table after each configuration."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="configurations whose name contains this, e.g. avx512-1 or native")
    parser.add_argument("--tests", nargs="+", default=[], help="these tests only; nothing is recorded")
    parser.add_argument("--again", action="store_true", help="run also what passed before")
    options = parser.parse_args()
    stored = RESULTS / "portable.json"
    record = json.loads(stored.read_text()) if stored.exists() else {}
    for configuration in (c for c in configurations() if options.only.lower() in c.name):
        known = record.get(configuration.name)
        if known and not known["failed"] and not options.again and not options.tests:
            continue
        print(f"== {configuration.name}", flush=True)
        outcome = run(configuration, options.tests)
        if options.tests:
            print(asdict(outcome))
            continue
        record[configuration.name] = asdict(outcome)
        stored.write_text(json.dumps(record, indent=1) + "\n")
        (RESULTS / "portable.md").write_text(table(record), encoding="utf-8")
    sys.exit(any(row["failed"] for row in record.values()))


if __name__ == "__main__":
    main()
