"""Talks to the peers' own interpreter: one job per line in, one answer per line out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any


class PeerWorker:
    """A worker process in an environment that has the peers installed."""

    def __init__(self, python: str) -> None:
        script = Path(__file__).with_name("selection_peer_worker.py")
        self._process = subprocess.Popen(
            [python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def contestant(self, name: str) -> Callable[[Any, int, int], int]:
        """The peer ``name`` as a function (problem, budget, seed) -> selected candidate."""

        def choose(problem: Any, budget: int, seed: int) -> int:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            job = {"name": name, "family": problem.family, "n": len(problem.truth), "budget": budget, "seed": seed}
            self._process.stdin.write(json.dumps(job) + "\n")
            answer = self._process.stdout.readline()
            if not answer:
                raise RuntimeError(f"the peers' process ended while {name} ran on {job}")
            return int(json.loads(answer)["candidate"])

        return choose
