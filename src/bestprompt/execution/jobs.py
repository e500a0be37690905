"""One attempt at one evaluation: what is set aside for it, and what is recorded of how it ended."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bestprompt.errors import LMError, LMRefused
from bestprompt.execution.budget import Price, Spend
from bestprompt.ledger import Entry, Intent
from bestprompt.types import Completion, Proposal, Request, Scored, Usage


@dataclass(frozen=True, slots=True)
class Prices:
    """What the answering model and the judging model (if any) charge; ``by_name`` where several models answer."""

    model: Price = Price()
    judge: Price = Price()
    by_name: Mapping[str, Price] = field(default_factory=dict)

    def of(self, request: Request) -> Price:
        """What the model that ``request`` asks charges."""
        return self.by_name.get(request.model, self.model)


@dataclass(frozen=True, slots=True)
class Job:
    """A proposal that has to be paid for.

    Attributes:
        proposal: What is to be evaluated.
        attempt: How often that was tried before.
        pair: The pair's number.
        request: What is asked.
        answering: The most that the answer may need.
        judging: The most that its score may need.
        prices: For the dollars.
    """

    proposal: Proposal
    attempt: int
    pair: int
    request: Request
    answering: Usage
    judging: Usage
    prices: Prices

    @property
    def reserved(self) -> Spend:
        """What is set aside."""
        return Spend.of(self.answering, self.prices.of(self.request)) + Spend.of(self.judging, self.prices.judge)

    def lost(self, in_process: bool) -> Spend:
        """What is charged if nobody learns how the attempt ended; the answer is free if the model is ``in_process``."""
        answering = Usage() if in_process else self.answering
        return Spend.of(answering, self.prices.of(self.request)) + Spend.of(self.judging, self.prices.judge)

    def intent(self, in_process: bool) -> Intent | None:
        """What is recorded before a request leaves; ``None`` where none does."""
        most = self.lost(in_process)
        what = {**dataclasses.asdict(self.proposal), "attempt": self.attempt}
        return Intent("evaluation", what, most.calls, most.tokens, most.dollars) if most.calls else None

    def success(self, answer: Completion, scored: Scored) -> Entry:
        """The attempt was answered, and the answer scored."""
        return Entry(
            **self._identity(),
            status="ok",
            output=answer.text,
            extracted=scored.extracted,
            score=float(scored.value),
            usage=answer.usage + scored.usage,
            cost=self._cost(answer.usage, scored.usage),
            latency=answer.latency,
        )

    def unscored(self, answer: Completion, error: BaseException, judged: Usage) -> Entry:
        """The attempt was answered, but scoring the answer failed after it had used ``judged``."""
        return Entry(
            **self._identity(),
            status="unscored",
            output=answer.text,
            error=f"{type(error).__name__}: {error}",
            usage=answer.usage + judged,
            cost=self._cost(answer.usage, judged),
            latency=answer.latency,
        )

    def failure(self, error: LMError) -> Entry:
        """The attempt failed; where it is not known what that cost, it may have been billed in full."""
        refused = isinstance(error, LMRefused)
        usage = self.answering if error.usage is None else error.usage
        return Entry(
            **self._identity(),
            status="refused" if refused else "error",
            score=0.0 if refused else None,
            error=str(error),
            usage=usage,
            cost=self._cost(usage, Usage()),
        )

    def _cost(self, answering: Usage, judging: Usage) -> float:
        return self.prices.of(self.request).dollars(answering) + self.prices.judge.dollars(judging)

    def _identity(self) -> dict[str, Any]:
        return {
            "candidate": self.proposal.candidate,
            "replication": self.proposal.replication,
            "attempt": self.attempt,
            "pair": self.pair,
            "request": self.request.as_record(),
        }
