"""Whether what a server was asked and what is on record of a killed run fit together, question by question."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults import REJECTIONS
from server import QUALITY, WELL

from bestprompt.execution import Schedule, spent
from bestprompt.ledger import TURNED_AWAY, Ledger
from bestprompt.ledger.files import holds_a_run
from bestprompt.types import Proposal

BEST = max(QUALITY, key=lambda prompt: QUALITY[prompt])
_SEEDS = Schedule(n_pairs=1, seed=0)
Question = tuple[str, int]
"""What a request can be known by at the server: the prompt, and the seed that belongs to the replication."""


def requests_in(log: Path) -> int:
    """How many requests the server has received."""
    return log.read_bytes().count(b"\n") if log.exists() else 0


def _asked(log: Path) -> list[tuple[Question, str]]:
    """What the server was asked, and what it did."""
    whole = log.read_text().split("\n")[:-1] if log.exists() else []
    return [((text.partition("\n\n")[0], seed), kind) for text, kind, seed in map(json.loads, whole)]


def _question(ledger: Ledger, candidate: int, replication: int) -> Question:
    candidates = ledger.candidates()
    assert candidates is not None, "nothing is asked before there are prompts"
    return candidates.prompts[candidate], _SEEDS.sampling_seed(Proposal(candidate, replication))


@dataclass
class Trial:
    """One run and all its kills."""

    budget: int
    kills: int = 0
    ended: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    billed: int = 0
    lost: int = 0
    failed: int = 0
    unanswered: set[tuple[int, int]] = field(default_factory=set)

    def look_at(self, run: Path, log: Path) -> None:
        """The budget, at any moment at which nothing runs."""
        asked = _asked(log)
        self.billed = sum(kind not in REJECTIONS for _, kind in asked)
        if not holds_a_run(run):
            if asked:
                self.problems.append(f"{len(asked)} requests and no record")
            return
        with Ledger.read(run) as ledger:
            calls = spent(ledger).calls
            if not self.billed <= calls <= self.budget:
                self.problems.append(f"{self.billed} requests may have been billed, {calls} are on record")
            self.lost = len(ledger.open_intents())
            self._question_by_question(ledger, asked)

    def _question_by_question(self, ledger: Ledger, asked: list[tuple[Question, str]]) -> None:
        """What is on record as answered was asked; what may be billed besides is on record as failed or lost."""
        entries, open_intents = list(ledger.entries()), ledger.open_intents()
        lost = Counter(_question(ledger, i.what["candidate"], i.what["replication"]) for i in open_intents)
        well = Counter(question for question, kind in asked if kind == WELL)
        worked_on = Counter(question for question, kind in asked if kind not in REJECTIONS)
        answered = Counter(_question(ledger, e.candidate, e.replication) for e in entries if e.status == "ok")
        charged = Counter(_question(ledger, e.candidate, e.replication) for e in entries if e.usage.calls)
        if not answered <= well:
            self.problems.append(f"answers that nobody gave: {answered - well}")
        if not worked_on <= charged + lost:
            self.problems.append(f"asked and not on record: {worked_on - charged - lost}")

    def conclude(self, run: Path, log: Path) -> list[Any]:
        """The evaluations of a run that should have come to its end."""
        with Ledger.read(run) as ledger:
            entries, lost = list(ledger.entries()), ledger.open_intents()
            finished, away = ledger.finished(), len(ledger.payloads(TURNED_AWAY))
        failed = [e for e in entries if e.status == "error" and e.usage.calls]
        self.failed = len(failed)
        self.unanswered = {(e.candidate, e.replication) for e in failed}
        self.unanswered |= {(i.what["candidate"], i.what["replication"]) for i in lost}
        if finished is None:
            self.problems.append(f"not finished: {self.ended}")
        elif finished["prompt"] != BEST:
            self.problems.append(f"chose {finished['prompt']!r}")
        rejected = sum(kind in REJECTIONS for _, kind in _asked(log))
        if away > rejected or rejected - away > self.lost + self.kills * 32:
            self.problems.append(f"{rejected} rejections, {away} on record")
        return [(e.candidate, e.replication, e.pair, e.score) for e in entries if e.final]

    def compare(self, evaluations: list[Any], whole: list[Any], batch: int) -> None:
        """That ``evaluations`` are the beginning of the ``whole``, which is in the order of asking.

        The next batch is asked for when all of the one before is answered. So before the last batch nothing is missing,
        and in it only what was lost or failed, and found no budget to be asked again. Within a batch the order of the
        record is that of the answers.
        """
        if len(whole) - len(evaluations) > self.lost + self.failed:
            self.problems.append(f"{len(evaluations)} of {len(whole)}, {self.lost} lost, {self.failed} failed")
        place = {evaluation: n for n, evaluation in enumerate(whole)}
        places = [place.get(evaluation, -1) for evaluation in evaluations]
        missing = sorted(set(range(max(places, default=-1) + 1)) - set(places))
        if -1 in places or len(places) != len(set(places)):
            self.problems.append("other evaluations than without a kill")
        elif missing and max(places) - missing[0] >= batch:
            self.problems.append(f"went on without {whole[missing[0]]}")
        elif not all(whole[n][:2] in self.unanswered for n in missing):
            self.problems.append(f"{[whole[n] for n in missing]} are missing, and were not lost")
        elif missing and len(evaluations) + self.lost + self.failed < self.budget:
            self.problems.append("something is missing, and there was budget left for it")
        if any(abs(at - n) >= batch for n, at in enumerate(places)):
            self.problems.append("another order")
