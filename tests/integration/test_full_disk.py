"""A disk that is really full, in the middle of a run: nothing leaves that is not on record, and all goes on later."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
from bestprompt.errors import LedgerError
from bestprompt.execution import Schedule, spent
from bestprompt.ledger import Ledger
from bestprompt.run.settings import Settings
from bestprompt.types import Proposal

BUDGET, ROOM = 60, 160  # calls, kilobytes
PROMPTS = ["Repeat.", "Say it again.", "Echo."]
SCHEDULE = Schedule(n_pairs=30, seed=0)
ON_THE_FLOOR = Settings(all_zero="continue")  # no answer is right here


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}k", "tmpfs", str(disk)], check=False)
    if mounted.returncode:
        pytest.skip("only root may mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.slow
def test_a_full_disk_loses_and_overspends_nothing(
    small_disk: Path, serve_requests: Any, chat_answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    asked: Counter[tuple[str, int]] = Counter()

    def reply(_attempt: int, body: Any) -> Any:
        prompt, _, text = body["messages"][-1]["content"].partition("\n\n")
        asked[prompt, body["seed"]] += 1
        return 200, {}, chat_answer(text.split()[-1])

    def question(candidate: int, replication: int) -> tuple[str, int]:
        """What identifies it at the server."""
        return PROMPTS[candidate], SCHEDULE.sampling_seed(Proposal(candidate, replication))

    pairs = [(f"word{n} {'x' * 2000}", "y") for n in range(30)]
    task = bp.Task.from_pairs(pairs, PROMPTS, scorer="exact", max_tokens=4)
    folder, full = small_disk / "run", 0
    with serve_requests(reply) as (url, seen):
        lm = bp.lm.openai("m", url, concurrency=8)
        for more in range(1, 20):
            try:
                rec = bp.optimize(task, lm, budget=BUDGET, ledger=folder, config=ON_THE_FLOOR)
                break
            except LedgerError as error:
                full += "full" in str(error)
                with Ledger.read(folder) as ledger:
                    assert len(seen) <= spent(ledger).calls <= BUDGET
            subprocess.run(["mount", "-o", f"remount,size={ROOM * (1 + more)}k", str(small_disk)], check=True)
    assert full == more - 1 >= 2
    assert len(seen) <= rec.calls <= BUDGET
    with closing(sqlite3.connect(folder / "ledger.db")) as db:
        intents = db.execute("SELECT what, id IN (SELECT intent FROM outcome) FROM intent").fetchall()
        entries = db.execute("SELECT candidate, replication, attempt, calls, error FROM evaluation").fetchall()
    # An entry for each request of which the end is known, and for no other.
    ended, still_open = ([json.loads(what) for what, known in intents if known == kind] for kind in (True, False))
    assert Counter((w["candidate"], w["replication"], w["attempt"]) for w in ended) == Counter(e[:3] for e in entries)
    # One that says that it cost nothing had not left when the run was stopped.
    assert all(calls == 1 or "was not asked" in error for *_, calls, error in entries)
    # Question by question: what is on record as answered was asked, and what was asked besides is on record as lost.
    billed = Counter(question(e[0], e[1]) for e in entries if e[3])
    lost = Counter(question(w["candidate"], w["replication"]) for w in still_open)
    assert billed <= asked <= billed + lost
    assert billed.total() + lost.total() == rec.calls
