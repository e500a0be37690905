"""Runs that are killed again and again, with SIGKILL, while a real server counts what it is asked.

    python benchmarks/torture/kills.py [--kills 100]

For each number of requests in flight, with a healthy server and with one that fails three times in ten, in forty ways.
Of each run it is checked that

- requests that may have been billed, as the server counts them, are no more than the budget and than the record says;
- what is recorded is what an uninterrupted run against a healthy server records, in the same order, and shorter at its
  end by no more than the requests that were lost or failed;
- nothing that is recorded was asked again;
- the winner is the best prompt.

Each run is a process of its own, forked from one that has imported the package, so that a kill takes a moment only.
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
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults import REJECTIONS
from server import QUALITY, WELL

from bestprompt.cli import app, session  # noqa: F401  imported before anything is forked
from bestprompt.execution import spent
from bestprompt.ledger import TURNED_AWAY, Ledger
from results import record, recorded

BUDGET, BATCH, PAIRS = 64, 8, 40
BEST = max(QUALITY, key=lambda prompt: QUALITY[prompt])
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


@dataclass
class Trial:
    """One run and all its kills."""

    kills: int = 0
    ended: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    billed: int = 0
    lost: int = 0


def lines(log: Path) -> list[tuple[str, str]]:
    """What the server was asked, and what it did."""
    whole = log.read_text().split("\n")[:-1] if log.exists() else []
    return [tuple(json.loads(line)) for line in whole]


def killed_run(flight: int, faults: float, seed: int, kills: int, rng: random.Random) -> tuple[Trial, list[Any]]:
    """A run to its end, with so many kills on the way: what was found, and its evaluations as they are recorded."""
    trial = Trial()
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
                if trial.kills < kills:
                    _kill_later(pid, log, rng, flight)
                _, status = os.waitpid(pid, 0)
                code = os.waitstatus_to_exitcode(status)
                trial.kills += code == -signal.SIGKILL
                trial.ended += [code] if code >= 0 else []
                if code == 0 or len(trial.ended) > 20:
                    break
                _check(trial, folder, log)
                begun = (folder / "run" / "ledger.db").exists()
                command = ["resume", "run"] if begun and _recorded(folder) is not None else command
            _check(trial, folder, log)
        return trial, _finished(trial, folder)


def _kill_later(pid: int, log: Path, rng: random.Random, flight: int) -> None:
    """Kills the process at a random moment after some further requests, if it has not ended by itself."""
    goal = len(lines(log)) + rng.randint(0, max(6, flight // 2))
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        if len(lines(log)) >= goal:
            time.sleep(rng.uniform(0.0, 0.05))
            break
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)


def _recorded(folder: Path) -> float | None:
    try:
        with Ledger.read(folder / "run") as ledger:
            return spent(ledger).calls
    except Exception:
        return None


def _check(trial: Trial, folder: Path, log: Path) -> None:
    """The budget, at any moment at which nothing runs."""
    trial.billed = sum(kind not in REJECTIONS for _, kind in lines(log))
    calls = _recorded(folder) or 0
    if trial.billed > BUDGET:
        trial.problems.append(f"{trial.billed} requests may have been billed")
    if not trial.billed <= calls <= BUDGET:
        trial.problems.append(f"{trial.billed} requests at the server, {calls} on record")


def _finished(trial: Trial, folder: Path) -> list[Any]:
    with Ledger.read(folder / "run") as ledger:
        entries, lost = list(ledger.entries()), len(ledger.open_intents())
        finished, away = ledger.finished(), len(ledger.payloads(TURNED_AWAY))
    trial.lost = lost
    if finished is None:
        trial.problems.append(f"not finished: {trial.ended}")
    elif finished["prompt"] != BEST:
        trial.problems.append(f"chose {finished['prompt']!r}")
    well = Counter(question for question, kind in lines(folder / "log") if kind == WELL)
    again = sum(n - 1 for n in well.values())
    if again > lost:
        trial.problems.append(f"{again} answers were asked for again, {lost} were lost")
    rejected = sum(kind in REJECTIONS for _, kind in lines(folder / "log"))
    if away > rejected or rejected - away > lost + trial.kills * 32:
        trial.problems.append(f"{rejected} rejections, {away} on record")
    return [(e.candidate, e.replication, e.pair, e.score) for e in entries if e.final]


def out_of_order(evaluations: list[Any], whole: list[Any]) -> str | None:
    """What is wrong with ``evaluations``, if they are not the beginning of the ``whole``, in its order.

    Within a batch the order of the record is that of the answers, so a place may differ by less than a batch; and what
    failed in the last batch may have found no budget to be asked again, beside others that were answered.
    """
    place = {evaluation: n for n, evaluation in enumerate(whole)}
    places = [place.get(evaluation, -1) for evaluation in evaluations]
    if -1 in places or not set(places) >= set(range(len(places) - BATCH)) or max(places) >= len(places) + BATCH:
        return "other evaluations than without a kill"
    return "another order" if any(abs(at - n) >= BATCH for n, at in enumerate(places)) else None


def main() -> None:
    """All combinations; results are recorded after each, and kept if it is started again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="at least so many for each combination")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    os.environ["OPENAI_API_KEY"] = "sk-torture-0123456789"
    rows = [row for row in recorded().get("kills", {}).get("rows", []) if row["kills"] >= arguments.kills]
    done = {(row["in flight"], row["faults"]) for row in rows}
    for faults in (0.0, 0.3):
        for flight in (1, 8, 32):
            if (flight, faults) in done:
                continue
            rows.append(_combination(flight, faults, arguments.kills, arguments.seed))
            print(json.dumps(rows[-1]), flush=True)
            record("kills", {"budget": BUDGET, "rows": rows})
    sys.exit(any(row["problems"] for row in rows))


def _combination(flight: int, faults: float, wanted: int, seed: int) -> dict[str, Any]:
    rng, started = random.Random(f"{seed} {flight} {faults}"), time.monotonic()
    _, whole = killed_run(1, 0.0, seed, 0, rng)  # one at a time, so that the record is in the order of asking
    kills, runs, most, lost, failed, problems = 0, 0, 0, 0, 0, []
    while kills < wanted:
        trial, evaluations = killed_run(flight, faults, seed + runs, min(rng.randint(2, 8), wanted - kills), rng)
        kills, runs, most = kills + trial.kills, runs + 1, max(most, trial.billed)
        lost, failed = lost + trial.lost, failed + BUDGET - trial.lost - len(evaluations)
        if wrong := out_of_order(evaluations, whole):
            trial.problems.append(wrong)
        if faults == 0.0 and len(whole) - len(evaluations) > trial.lost:
            trial.problems.append(f"{len(evaluations)} of {len(whole)} evaluations, {trial.lost} lost")
        problems += [f"run {runs}: {problem}" for problem in dict.fromkeys(trial.problems)]
    return {
        "in flight": flight, "faults": faults, "kills": kills, "runs": runs, "most billed": most, "lost": lost,
        "failed attempts": failed, "problems": problems, "seconds": round(time.monotonic() - started),
    }  # fmt: skip


if __name__ == "__main__":
    main()
