"""A language model as the author of candidates: paid for from the budget, on the record, never asked twice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Literal

from bestprompt.errors import BudgetExhausted, LMError, LMRefused
from bestprompt.execution.budget import Budget, Price, Spend, spent_writing
from bestprompt.execution.evaluator import HOPELESS
from bestprompt.ledger import WRITTEN, Intent, Ledger
from bestprompt.lm.abilities import in_process
from bestprompt.types import Completion, LanguageModel, Request, Usage


class Writer:
    """A ``LanguageModel`` in front of another one.

    What the ledger holds is looked up: answers and refusals, not the failures that another attempt may mend. All else
    is asked if its worst case fits the budget.

    Args:
        lm: The model that answers.
        ledger: Where each answer is recorded as soon as it is there.
        budget: For these calls alone. What the ledger records of them is charged to it on construction.
        price: Of the model.
        idea: Whether it writes while a run goes on: the budget is then the run's own, which knows the record already.
    """

    def __init__(self, lm: LanguageModel, ledger: Ledger, budget: Budget, price: Price, *, idea: bool = False) -> None:
        self.fingerprint, self.name = lm.fingerprint, lm.name
        self.batch_size, self.concurrency = lm.batch_size, lm.concurrency
        self._lm, self._ledger, self._budget, self._price = lm, ledger, budget, price
        self._idea, self._failures_in_a_row = idea, 0
        self._known: dict[str, Completion | LMError] = {}
        for payload in ledger.payloads(WRITTEN):
            key = json.dumps(payload["request"])
            if payload["status"] == "ok":
                self._known[key] = Completion(payload["output"], Usage(**payload["usage"]))
            elif payload["status"] == "refused":
                self._known[key] = LMRefused(payload["error"])
        if not idea:
            budget.settle(Spend(), spent_writing(ledger))

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        """Answers in the order of the requests; one that did not fit the budget, as others did, holds an error.

        Raises:
            BudgetExhausted: If not one of them fits.
            LMError: If the model is out of reach; what it answered before is recorded.
        """
        missing = [request for request in requests if _key(request) not in self._known]
        # Answers usually need less than was set aside for them, so what did not fit beside the others may fit after.
        while missing and (fitting := self._reserve(missing)):
            self._ask(fitting)
            missing = missing[len(fitting) :]
        left_out = LMError("The budget for writing candidates is used up.")
        if len(missing) == len(requests) > 0:
            raise BudgetExhausted(str(left_out))
        return [self._known.get(_key(request), left_out) for request in requests]

    def max_prompt_tokens(self, request: Request) -> int:
        """As the model says."""
        return self._lm.max_prompt_tokens(request)

    # ------------------------------------------------------------------------------------------------------ internals
    def _reserve(self, requests: Sequence[Request]) -> list[tuple[Request, Usage]]:
        fitting = []
        for request in requests:
            most = Usage(1, self._lm.max_prompt_tokens(request), request.max_tokens)
            try:
                self._budget.reserve(Spend.of(most, self._price))
            except BudgetExhausted:
                break
            fitting.append((request, most))
        return fitting

    def _ask(self, fitting: Sequence[tuple[Request, Usage]]) -> None:
        intents = self._intend(fitting)
        try:
            answers = self._lm.complete([request for request, _ in fitting])
        except BaseException:
            for _, most in fitting:  # nobody knows what became of them: the intents stand, and are charged
                lost = Usage() if in_process(self._lm) else most
                self._budget.settle(Spend.of(most, self._price), Spend.of(lost, self._price))
            raise
        for number, ((request, most), answer) in enumerate(zip(fitting, answers, strict=True)):
            self._record(request, most, answer, intents[number : number + 1])
        for answer in answers:
            failed = isinstance(answer, LMError) and not isinstance(answer, LMRefused)
            self._failures_in_a_row = self._failures_in_a_row + 1 if failed else 0
            if isinstance(answer, LMError) and (answer.systemic or self._failures_in_a_row >= HOPELESS):
                raise answer

    def _intend(self, fitting: Sequence[tuple[Request, Usage]]) -> list[int]:
        """Puts the requests on the record before they leave, unless none leaves this process."""
        if in_process(self._lm):
            return []
        most = ((request, Spend.of(usage, self._price)) for request, usage in fitting)
        purpose: Literal["idea", "writing"] = "idea" if self._idea else "writing"
        return self._ledger.intend([Intent(purpose, request.as_record(), **asdict(spend)) for request, spend in most])

    def _record(self, request: Request, most: Usage, answer: Completion | LMError, intents: Sequence[int]) -> None:
        # Where it is not known what a failed attempt cost, it may have been billed in full.
        usage = most if answer.usage is None else answer.usage
        actual = Spend.of(usage, self._price)
        failure = "refused" if isinstance(answer, LMRefused) else "error"
        written = {
            "request": request.as_record(),
            "status": "ok" if isinstance(answer, Completion) else failure,
            "output": answer.text if isinstance(answer, Completion) else None,
            "error": None if isinstance(answer, Completion) else str(answer),
            "usage": asdict(usage),
            "spend": asdict(actual),
            **({"idea": True} if self._idea else {}),
        }
        self._ledger.record_event(WRITTEN, written, intents)
        self._budget.settle(Spend.of(most, self._price), actual)
        self._known[_key(request)] = answer


def _key(request: Request) -> str:
    """A request as the record writes it."""
    return json.dumps(request.as_record())
