"""One run of a method against the proxy, and a record of runs that can be gone on with."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from environments import HERE, HOME, python_of
from methods import METHODS, Method
from proxy import Meter, Proxy

from bestprompt.types import LanguageModel

PATIENCE = 1800.0  # seconds for one run, after which its worker is ended
# One thread each, and nothing but loopback: DSPy would fetch a table of prices when it is loaded.
_SURROUNDINGS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OPENAI_API_KEY": "none",
    "LITELLM_LOCAL_MODEL_COST_MAP": "true",
}


class Record:
    """Rows in a JSON-lines file, each written when its run has ended; ``key`` names the fields that identify one."""

    def __init__(self, path: Path, key: tuple[str, ...]) -> None:
        self.path, self._key = path, key
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if not text.endswith("\n") and text:  # killed in the middle of a line
            text = text[: text.rfind("\n") + 1]
            path.write_text(text, encoding="utf-8")
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
        self._known = {self._of(row) for row in self.rows}

    def __contains__(self, row: Mapping[str, Any]) -> bool:
        return self._of(row) in self._known

    def add(self, row: dict[str, Any]) -> None:
        """Appends a row; a process that is killed loses at most the run under way."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        self.rows.append(row)
        self._known.add(self._of(row))

    def forget(self, which: Callable[[Mapping[str, Any]], bool]) -> None:
        """Takes rows out, so that their runs are made again."""
        self.rows = [row for row in self.rows if not which(row)]
        self._known = {self._of(row) for row in self.rows}
        self.path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows), encoding="utf-8")

    def _of(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self._key)


class Workers:
    """A process for each worker script that was needed so far."""

    def __init__(self) -> None:
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            _end(process)

    def ask(self, method: Method, job: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a job; a worker that says nothing for ``PATIENCE`` seconds is ended, and that is the result."""
        process = self._started(method)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            line = process.stdout.readline() if selector.select(PATIENCE) else ""
        if not line:
            _end(self._processes.pop(method.worker))
            return {"error": f"{method.worker} ended or was silent for {PATIENCE:.0f} s"}
        return dict(json.loads(line))

    def _started(self, method: Method) -> subprocess.Popen[str]:
        if method.worker not in self._processes:
            (HOME / "logs").mkdir(parents=True, exist_ok=True)
            with (HOME / "logs" / f"{method.worker}.txt").open("a", encoding="utf-8") as log:
                self._processes[method.worker] = subprocess.Popen(
                    [str(python_of(method.environment)), str(HERE / "workers" / f"{method.worker}.py")],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1,
                    env={**os.environ, **_SURROUNDINGS},
                )  # fmt: skip
        return self._processes[method.worker]


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    with process:  # waits, and closes the pipes
        pass


def one_run(
    proxy: Proxy,
    workers: Workers,
    lm: LanguageModel,
    run: Mapping[str, Any],
    job: Mapping[str, Any],
    score: Callable[[str, str], float],
    log: bool = False,
) -> dict[str, Any]:
    """What the method of ``run`` chose, and what that took.

    Args:
        proxy: Counts and refuses.
        workers: The methods' processes.
        lm: Answers.
        run: What identifies the run; ``method`` and ``budget`` among it.
        job: What the method is told of the task.
        score: What an answer is worth.
        log: Whether requests and answers are kept.
    """
    name = "-".join(str(value) for value in run.values()).replace(" ", "-").replace("/", "-")
    method = METHODS[run["method"]]
    file = HOME / "logs" / f"{name}.jsonl" if log else None
    if file is not None:
        file.unlink(missing_ok=True)
    draws = "-".join(str(value) for key, value in run.items() if key not in ("method", "budget"))
    meter = Meter(name, int(run["budget"]), lm, score, draws, file)
    url = proxy.open(meter)
    started = time.monotonic()
    result = workers.ask(method, {**job, "budget": run["budget"], "url": url, "options": dict(method.options)})
    seconds = time.monotonic() - started
    proxy.close(name)
    if "error" in result:
        print(f"  {name}: {result['error']}", file=sys.stderr, flush=True)
    return {
        **run,
        **result,
        "calls": meter.calls,
        "refused": meter.refused,
        "unusable": meter.unusable,
        "prompt_tokens": meter.prompt_tokens,
        "completion_tokens": meter.completion_tokens,
        "seconds": round(seconds, 2),
        "own_seconds": round(max(seconds - meter.waited, 0.0), 2),
        "fresh": meter.fresh,
        "served": round(meter.served, 2),
    }
