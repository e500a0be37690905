"""A run whose answers a former engine gave goes on with the present one; other weights are another run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
from bestprompt.errors import LedgerError
from bestprompt.types import Completion, Request


class Echo:
    """Says the word; stands for a model whose fingerprint is given."""

    name, batch_size, concurrency = "echo", 4, 1

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        self.asked = 0

    def complete(self, requests: list[Request]) -> list[Any]:
        self.asked += len(requests)
        return [Completion(request.messages[-1].content.split()[-1]) for request in requests]

    def max_prompt_tokens(self, request: Request) -> int:
        return 1


class Listener:
    """Keeps what a run warns of."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def warn(self, message: str) -> None:
        self.said.append(message)

    def stage(self, name: str, total: int | None) -> None: ...
    def advance(self, done: int) -> None: ...
    def evaluated(self, entry: object) -> None: ...


def _optimize(lm: Echo, folder: Path, budget: int, listener: Listener | None = None) -> Any:
    task = bp.Task.from_pairs([(f"w{n}", f"w{n}") for n in range(8)], ["Repeat.", "Say it again."], scorer="exact")
    return bp.optimize(task, lm, budget=budget, ledger=folder, observer=listener)


@pytest.mark.parametrize("former", ["jax1:0a1b:context=1024", "llama.cpp:0a1b:context=1024:batch=8"])
def test_the_same_weights_go_on(tmp_path: Path, former: str) -> None:
    first, listener = Listener(), Listener()
    _optimize(Echo(former), tmp_path, 8, first)
    present = Echo("llama.cpp:0a1b:context=1024")
    rec = _optimize(present, tmp_path, 12, listener)
    assert rec.calls == 12
    assert present.asked == 4
    assert not any("earlier engine" in message for message in first.said)
    assert any("earlier engine" in message for message in listener.said)


def test_other_weights_are_another_run(tmp_path: Path) -> None:
    _optimize(Echo("jax1:0a1b:context=1024"), tmp_path, 8)
    with pytest.raises(LedgerError, match="the model changed"):
        _optimize(Echo("llama.cpp:ffff:context=1024"), tmp_path, 12)
