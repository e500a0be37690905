"""A disk that is really full, in the middle of a run: nothing leaves that is not on record, and all goes on later."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
from bestprompt.errors import LedgerError
from bestprompt.execution import spent
from bestprompt.ledger import Ledger
from bestprompt.run.settings import Settings

BUDGET, ROOM = 60, 160  # calls, kilobytes
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
    asked: Counter[str] = Counter()

    def reply(_attempt: int, body: Any) -> Any:
        text = body["messages"][-1]["content"]
        asked[text] += 1
        return 200, {}, chat_answer(text.split()[-1])

    pairs = [(f"word{n} {'x' * 2000}", "y") for n in range(30)]
    task = bp.Task.from_pairs(pairs, ["Repeat.", "Say it again.", "Echo."], scorer="exact", max_tokens=4)
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
    with Ledger.read(folder) as ledger:
        lost = len(ledger.open_intents())
        # What was found to have cost nothing is on record, too.
        assert sum(entry.usage.calls for entry in ledger.entries()) == rec.calls - lost
    assert sum(asked.values()) - len(asked) <= lost
