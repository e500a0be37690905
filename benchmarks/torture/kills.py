"""Runs that are killed again and again, with SIGKILL, while a real server counts what it is asked.

    python benchmarks/torture/kills.py [--kills 100] [--minutes 10]

For each number of requests in flight, with a healthy server and with one that fails three times in ten, in forty ways.
Of each run it is checked (``inspection.py``) that

- requests that may have been billed, as the server counts them, are no more than the budget and than the record says,
  in all and question by question, so that nothing that is recorded was asked again;
- what is recorded is what an uninterrupted run against a healthy server records, in the same order, and shorter at its
  end by no more than the requests that were lost or failed;
- the winner is the best prompt: a run is left alone once kills have cost it a quarter of its budget.

Each run is a process of its own, forked from one that has imported the package, so that a kill takes a moment only.
What was found is recorded after each run, and gone on from when it is started again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inspection import Trial, requests_in
from server import QUALITY

from bestprompt.cli import app, session  # noqa: F401  imported before anything is forked
from bestprompt.ledger.files import holds_a_run
from bestprompt.lm import openai
from results import record, recorded

BUDGET, BATCH, PAIRS = 96, 8, 40
LOST = BUDGET // 4  # requests, after which a run is left alone: what was lost is paid for, and the best must be found
TOML = """
[task]
data = "pairs.csv"
examples = {prompts}
max_tokens = 4
[model]
kind = "openai"
name = "m"
base_url = "http://127.0.0.1:{port}/v1"
concurrency = {flight}
timeout = 1.0
max_retries = 8
[budget]
calls = {budget}
[selection]
batch = {batch}
stop_gain = 0.0
[ideas]
mode = "off"
"""


@contextmanager
def counting(log: Path, faults: float, seed: int) -> Iterator[int]:
    """The server; its port."""
    command = [sys.executable, str(Path(__file__).with_name("server.py")), str(log), "--seconds", "0.02"]
    process = subprocess.Popen(
        [*command, "--faults", str(faults), "--seed", str(seed)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def forked(arguments: list[str], folder: Path) -> int:
    """A command in a process of its own; its number."""
    pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        os.chdir(folder)
        printed = os.open(folder / "printed", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        sys.argv = ["bestprompt", *arguments, "--quiet", "--json"]
        app.main()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0
    finally:
        os._exit(status)


def killed_run(flight: int, faults: float, seed: int, kills: int, rng: random.Random) -> tuple[Trial, list[Any]]:
    """A run to its end, with so many kills on the way: what was found, and its evaluations as they are recorded."""
    trial = Trial(BUDGET)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        folder = Path(name)
        log = folder / "log"
        (folder / "pairs.csv").write_text("input,output\n" + "\n".join(f"word{n},word{n}" for n in range(PAIRS)))
        with counting(log, faults, seed) as port:
            shown = {
                "port": port,
                "flight": flight,
                "budget": BUDGET,
                "batch": BATCH,
                "prompts": json.dumps(list(QUALITY)),
            }
            (folder / "t.toml").write_text(TOML.format(**shown))
            command = ["run", "t.toml", "-o", "run"]
            while True:
                pid = forked(command, folder)
                if trial.kills < kills and trial.lost < LOST:
                    _kill_later(pid, log, rng, flight)
                _, status = os.waitpid(pid, 0)
                code = os.waitstatus_to_exitcode(status)
                trial.kills += code == -signal.SIGKILL
                trial.ended += [code] if code >= 0 else []
                if code == 0 or len(trial.ended) > 20:
                    break
                trial.look_at(folder / "run", log)
                command = ["resume", "run"] if holds_a_run(folder / "run") else command
            trial.look_at(folder / "run", log)
        return trial, trial.conclude(folder / "run", log)


def _kill_later(pid: int, log: Path, rng: random.Random, flight: int) -> None:
    """Kills the process at a random moment after some further requests, if it has not ended by itself."""
    goal = requests_in(log) + rng.randint(0, max(6, flight // 2))
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        if requests_in(log) >= goal:
            time.sleep(rng.uniform(0.0, 0.05))
            break
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)


def main() -> None:
    """All combinations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="at least so many for each combination")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run after so many")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    os.environ["OPENAI_API_KEY"] = "sk-torture-0123456789"
    openai("m", "http://127.0.0.1:1/v1")  # loads what each process would have to load for itself
    warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)  # JAX is loaded here, and not used
    until = time.monotonic() + 60.0 * arguments.minutes
    former = recorded().get("kills", {})
    rows = {(row["in flight"], row["faults"]): row for row in former["rows"]} if former.get("budget") == BUDGET else {}
    for faults in (0.0, 0.3):
        for flight in (1, 8, 32):
            row = rows.setdefault((flight, faults), _nothing_yet(flight, faults, arguments.seed))
            whole: list[Any] = []
            while row["kills"] < arguments.kills and time.monotonic() < until:
                if not whole:  # one at a time, so that the record is in the order of asking
                    _, whole = killed_run(1, 0.0, row["seed"], 0, random.Random(0))
                _one_more(row, whole)
                record("kills", {"budget": BUDGET, "rows": list(rows.values())})
    sys.exit(any(row["problems"] or row["kills"] < arguments.kills for row in rows.values()))


def _nothing_yet(flight: int, faults: float, seed: int) -> dict[str, Any]:
    return {
        "in flight": flight, "faults": faults, "seed": seed, "kills": 0, "runs": 0, "most billed": 0, "lost": 0,
        "failed attempts": 0, "problems": [], "seconds": 0.0,
    }  # fmt: skip


def _one_more(row: dict[str, Any], whole: list[Any]) -> None:
    """Adds a run to the ``row`` of its combination."""
    number, started = row["runs"], time.monotonic()
    rng = random.Random(f"{row['seed']} {row['in flight']} {row['faults']} {number}")
    trial, evaluations = killed_run(row["in flight"], row["faults"], row["seed"] + number, rng.randint(4, 10), rng)
    trial.compare(evaluations, whole, BATCH)
    row["runs"], row["kills"] = number + 1, row["kills"] + trial.kills
    row["most billed"] = max(row["most billed"], trial.billed)
    row["lost"], row["failed attempts"] = row["lost"] + trial.lost, row["failed attempts"] + trial.failed
    row["problems"] += [f"run {number}: {problem}" for problem in dict.fromkeys(trial.problems)]
    row["seconds"] = round(row["seconds"] + time.monotonic() - started, 1)
    shown = {name: row[name] for name in ("in flight", "faults", "kills", "runs", "problems", "seconds")}
    print(json.dumps(shown), flush=True)


if __name__ == "__main__":
    main()
