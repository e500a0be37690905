"""Every peer in an environment of its own, made with pinned versions; how long that took and how large it is.

    python benchmarks/peers/environments.py          # makes those that are missing

Seconds, by the clock and of the processor, are those of ``pip install`` with an empty cache, from whatever index is set
up; megabytes are what it added.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results"
# Environments, answers and logs; kept out of the repository.
HOME = Path(os.environ.get("BESTPROMPT_PEERS", HERE.parents[1] / ".cache" / "peers"))
RECORD = RESULTS / "peers_environments.json"


def python_of(environment: str) -> Path:
    """Its interpreter; the environment is made when missing, and again when its file of versions was changed."""
    folder = HOME / "environments" / environment
    wanted = (HERE / "requirements" / f"{environment}.txt").read_text(encoding="utf-8")
    stamp = folder / "requirements.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        _make(environment, folder)
        stamp.write_text(wanted, encoding="utf-8")
    return folder / "bin" / "python"


def _make(environment: str, folder: Path) -> None:
    print(f"making the environment of {environment} in {folder}", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    before, started, computed = _megabytes(folder), time.monotonic(), _computed()
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-cache-dir", "-r"]
    subprocess.run([*command, str(HERE / "requirements" / f"{environment}.txt")], check=True, cwd=HERE / "requirements")
    seconds, computed = time.monotonic() - started, _computed() - computed
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    record[environment] = {
        "seconds": round(seconds, 1),
        "processor_seconds": round(computed, 1),
        "megabytes": round(_megabytes(folder) - before, 1),
        "versions": _versions(folder),
        "date": time.strftime("%Y-%m-%d"),
    }
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _computed() -> float:
    """Processor seconds of processes that ended, which a busy machine lengthens less than the clock's."""
    used = os.times()
    return used.children_user + used.children_system


def _megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def _versions(folder: Path) -> dict[str, str]:
    """The products inside, as far as they are compared."""
    listed = subprocess.run(
        [str(folder / "bin" / "python"), "-m", "pip", "list", "--format", "json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    wanted = {"gepa", "dspy", "promptolution", "optuna", "bestprompt"}
    return {each["name"]: each["version"] for each in json.loads(listed.stdout) if each["name"].lower() in wanted}


def main() -> None:
    """Makes what is missing."""
    for file in sorted((HERE / "requirements").glob("*.txt")):
        python_of(file.stem)


if __name__ == "__main__":
    main()
