"""Ten thousand small runs with budgets, prices, faults and crashes drawn at random: none may be overspent.

    python benchmarks/torture/budgets.py [--trials 10000] [--seed 0]

The server is a model in this process that counts each request it is given before it answers, fails or takes the program
down with it (an exception that nothing catches, at any moment; the evaluator is then made anew from the record, as
after a kill). Counted there, and by its own prices, no limit on calls, tokens or dollars may ever be exceeded.
"""

from __future__ import annotations

import argparse
import atexit
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from bestprompt.errors import BudgetExhausted, LMError, LMRefused, LMTimeout
from bestprompt.execution import Budget, Evaluator, Price, Prices, Schedule, Spend
from bestprompt.ledger import Ledger
from bestprompt.scoring import build_scorer
from bestprompt.types import Completion, LanguageModel, Message, Pair, Proposal, Request, Scorer, SoftPromptSet, Usage
from results import record

PROMPTS = ("Say.", "Tell.", "Echo.")
FAST = "/dev/shm" if Path("/dev/shm").is_dir() else None  # commits wait for the disk
PAIRS = [Pair(f"word{n}", (f"word{n}",)) for n in range(6)]


class Crash(BaseException):
    """The program dies here."""


class Counting:
    """A model that counts what may be billed, and fails as the dice say."""

    def __init__(self, rng: random.Random, price: Price, concurrency: int, batch_size: int, answer: str) -> None:
        self.name = self.fingerprint = "m"
        self.batch_size, self.concurrency = batch_size, concurrency
        self._rng, self._price, self._answer, self._lock = rng, price, answer, threading.Lock()
        self.failing, self.crashing = rng.choice([0.0, 0.3, 0.7]), rng.choice([0.0, 0.02, 0.1])
        self.used = Spend()

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        """One after the other; a crash takes those behind it along unsent."""
        return [self._one(request) for request in requests]

    def max_prompt_tokens(self, request: Request) -> int:
        """An upper bound, as a server's tokeniser would keep to."""
        return sum(len(message.content) for message in request.messages)

    def _one(self, request: Request) -> Completion | LMError:
        with self._lock:
            fails, crashes = self._rng.random() < self.failing, self._rng.random() < self.crashing
            kind = self._rng.choice(["turned away", "late", "odd", "refused"])
            prompt = self._rng.randint(1, self.max_prompt_tokens(request))
            usage = Usage(1, prompt, self._rng.randint(1, request.max_tokens))
            if not fails or kind != "turned away":
                self.used += Spend.of(usage, self._price)
        if crashes:
            raise Crash
        if not fails:
            return Completion(self._answer, usage)
        if kind == "turned away":
            return LMError("not now", usage=Usage())
        if kind == "refused":
            return LMRefused("no", usage=usage)
        return LMTimeout("late") if kind == "late" else LMError("odd")


def trial(rng: random.Random, folder: Path) -> tuple[str | None, bool]:
    """One run to its end: what was overspent, if anything; and whether it crashed on the way."""
    price = Price(rng.choice([0.0, 1.0, 30.0]), rng.choice([0.0, 5.0]))
    limits = Spend(
        rng.choice([float("inf"), rng.randint(1, 30)]),
        rng.choice([float("inf"), rng.randint(10, 2000)]),
        rng.choice([float("inf"), rng.randint(1, 2000) / 1e5]),
    )
    concurrency, batch = rng.choice([1, 1, 4, 16]), rng.choice([1, 3])
    model = Counting(rng, price, concurrency, batch, "word1")
    judge = Counting(rng, price, concurrency, 1, rng.choice(["Grade: 7", "Grade: 7", "no idea"]))
    scorer = build_scorer("judge", lm=judge) if rng.random() < 0.4 else build_scorer("exact")
    proposals = [Proposal(rng.randrange(3), n) for n in range(rng.randint(1, 40))]
    crashed = False
    shutil.copytree(_template(), folder)
    for _ in range(12):
        with Ledger.open(folder) as ledger:
            try:
                _evaluator(model, scorer, ledger, limits, Prices(price, price)).evaluate(proposals)
                break
            except BudgetExhausted:
                break
            except LMError:
                continue
            except Crash:
                crashed = True
    used = model.used + judge.used
    for name in ("calls", "tokens", "dollars"):
        if getattr(used, name) > getattr(limits, name) * (1 + 1e-9):
            return f"{getattr(used, name):g} {name} of {getattr(limits, name):g}", crashed
    return None, crashed


@cache
def _template() -> str:
    """A folder with a record of three candidates and nothing else: copying it is faster than making one."""
    folder = tempfile.mkdtemp(dir=FAST)
    atexit.register(shutil.rmtree, folder)
    with Ledger.create(Path(folder), {}) as ledger:
        ledger.set_candidates(SoftPromptSet(PROMPTS, np.zeros((3, 1)), None, np.full(3, -1), ("example",) * 3))
    return folder


def _evaluator(lm: LanguageModel, scorer: Scorer, ledger: Ledger, limits: Spend, prices: Prices) -> Evaluator:
    return Evaluator(
        prompts=PROMPTS,
        pairs=PAIRS,
        render=lambda prompt, pair, seed: Request((Message("user", f"{prompt} {pair.input}"),), 8, seed=seed),
        lm=lm,
        scorer=scorer,
        ledger=ledger,
        budget=Budget(limits),
        schedule=Schedule(len(PAIRS), 0, repeats="same-item"),
        prices=prices,
    )


def main() -> None:
    """All trials; what was overspent is shown with its seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    started, overspent, crashes = time.monotonic(), 0, 0
    for number in range(arguments.trials):
        with tempfile.TemporaryDirectory(dir=FAST) as name:
            wrong, crashed = trial(random.Random(f"{arguments.seed} {number}"), Path(name) / "run")
        crashes += crashed
        if wrong is not None:
            overspent += 1
            print(f"trial {number}: {wrong}", flush=True)
        if (number + 1) % 250 == 0:
            seconds = round(time.monotonic() - started)
            found = {"trials": number + 1, "crashed": crashes, "overspent": overspent, "seconds": seconds}
            print(found, flush=True)
            record("budgets", {"seed": arguments.seed, **found})
    sys.exit(bool(overspent))


if __name__ == "__main__":
    main()
