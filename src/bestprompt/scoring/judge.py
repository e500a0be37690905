"""A language model as judge: it grades each output from 0 to 10, and its calls are counted like any other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from bestprompt.errors import ConfigError, LMError
from bestprompt.lm.abilities import patience
from bestprompt.lm.patience import Patience
from bestprompt.scoring.base import content_hash
from bestprompt.types import Completion, LanguageModel, Message, Pair, Request, Scored, Usage

JUDGE_PROMPT = """You grade an answer. Compare it with the right answer and give a whole number from 0 to 10: \
10 when it says the same, 0 when it is wrong or empty. Ignore style and length.

Question:
{input}

Right answer:
{reference}

Answer to grade:
{output}

Reply with the grade only, in the form "Grade: N"."""

_PLACEHOLDERS = re.compile(r"\{(input|reference|output)\}")
_LABELLED = re.compile(r"grade\s*(?:is|:|=)?\s*\**\s*(\d+(?:\.\d+)?)", re.IGNORECASE)
_BARE = re.compile(r"^\W*(\d+(?:\.\d+)?)(?:\s*/\s*10)?\W*$")


def parse_grade(text: str) -> float | None:
    """The grade in [0, 10]: after the word *grade*, or the whole reply; ``None`` when there is no such number."""
    match = _LABELLED.search(text) or _BARE.match(text.strip())
    grade = float(match.group(1)) if match else None
    return grade if grade is not None and 0 <= grade <= 10 else None


@dataclass(frozen=True)
class Judge:
    """Grade/10 by a language model.

    Attributes:
        lm: The judging model; its fingerprint is part of this scorer's.
        prompt: The question put to it, with ``{input}``, ``{reference}`` and ``{output}``.
        max_tokens: Length of its reply.
        attempts: How often an unreadable reply is asked for again, each time with another seed, before giving up.
        temperature: Of the first attempt; later ones use at least 0.7, or they would repeat the same reply.
    """

    kind: ClassVar[str] = "judge"
    lm: LanguageModel
    prompt: str = JUDGE_PROMPT
    max_tokens: int = 12
    attempts: int = 3
    temperature: float = 0.0

    def __post_init__(self) -> None:
        if missing := {"input", "reference", "output"} - set(_PLACEHOLDERS.findall(self.prompt)):
            raise ConfigError(f"scorer judge: prompt lacks {', '.join('{' + name + '}' for name in sorted(missing))}")
        if self.attempts < 1:
            raise ConfigError(f"scorer judge: attempts = {self.attempts} must be at least 1")

    @property
    def fingerprint(self) -> str:
        """Settings and the judging model."""
        settings = [self.prompt, self.max_tokens, self.attempts, self.temperature, self.lm.fingerprint]
        return f"{self.kind}:{content_hash(settings)}"

    @property
    def patience(self) -> Patience | None:
        """The judging model's."""
        return patience(self.lm)

    def _request(self, output: str, pair: Pair) -> Request:
        values = {"input": pair.input, "reference": " or ".join(pair.references), "output": output.strip()}
        question = _PLACEHOLDERS.sub(lambda match: values[match.group(1)], self.prompt)
        return Request((Message("user", question),), max_tokens=self.max_tokens, temperature=self.temperature)

    def score(self, outputs: Sequence[str], pairs: Sequence[Pair]) -> list[Scored]:
        """Grades divided by ten, each with the usage of all its attempts.

        Raises:
            LMError: The judging model failed, or gave no readable grade in ``attempts`` replies.
        """
        requests = [self._request(output, pair) for output, pair in zip(outputs, pairs, strict=True)]
        usage = [Usage() for _ in requests]
        scores: dict[int, Scored] = {}
        for attempt in range(self.attempts):
            open_ = [index for index in range(len(requests)) if index not in scores]
            if not open_:
                break
            warmth = self.temperature if attempt == 0 else max(self.temperature, 0.7)
            asked = [replace(requests[index], seed=attempt, temperature=warmth) for index in open_]
            replies = self.lm.complete(asked)
            for index, request, reply in zip(open_, asked, replies, strict=True):
                usage[index] += self._most(request) if reply.usage is None else reply.usage
            for index, reply in zip(open_, replies, strict=True):
                grade = None if isinstance(reply, LMError) else parse_grade(reply.text)
                if grade is not None and not isinstance(reply, LMError):
                    scores[index] = Scored(grade / 10, reply.text.strip(), usage[index])
                elif attempt == self.attempts - 1 or _final(reply):
                    raise self._failed(reply, sum(usage, Usage()))
        return [scores[index] for index in range(len(requests))]

    def _most(self, request: Request) -> Usage:
        return Usage(1, self.lm.max_prompt_tokens(request), request.max_tokens)

    def _failed(self, reply: Completion | LMError, used: Usage) -> LMError:
        """What ends the scoring, and what that has used so far."""
        if isinstance(reply, LMError):
            reply.usage = used
            return reply
        return LMError(
            f"the judge {self.lm.name} gave no grade from 0 to 10 in {self.attempts} replies; "
            f"the last was {reply.text.strip()[:80]!r}. Use a stronger judge or another prompt.",
            usage=used,
        )

    def max_usage(self, pair: Pair, max_output_tokens: int) -> Usage:
        """All attempts at full length; the output is part of the judge's own prompt."""
        per_call = self.lm.max_prompt_tokens(self._request("", pair)) + max_output_tokens
        return Usage(self.attempts, self.attempts * per_call, self.attempts * self.max_tokens)


def _final(reply: Completion | LMError) -> bool:
    """Whether another attempt is of no use, or was made already, as often as it may, by the model itself."""
    return isinstance(reply, LMError) and (reply.systemic or not reply.retryable or reply.unbilled)
