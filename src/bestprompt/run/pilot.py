"""What the first answers of a run show: a few of them as they were read and, if all scored 0, the likely cause."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bestprompt.ledger import Entry
from bestprompt.scoring import Contains
from bestprompt.tasks import Task
from bestprompt.types import Pair

SHOWN = 3


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """One answer beside what was expected, and how the score read it."""

    prompt: str
    input: str
    expected: str
    output: str
    read: str | None
    score: float


@runtime_checkable
class PilotObserver(Protocol):
    """An observer that looks at the first answers, and may decide what becomes of a run in which all scored 0."""

    def pilot(self, answers: Sequence[ReadAnswer]) -> None:
        """A few of the first answers."""
        ...

    def goes_on(self, why: str) -> bool:
        """Whether to go on although every answer scored 0; ``why`` says what the likely cause is."""
        ...


def read_answers(entries: Sequence[Entry], pairs: Sequence[Pair], prompts: Sequence[str]) -> list[ReadAnswer]:
    """Up to three answers to different inputs: a wrong one and a right one first, where there are both."""
    answered = list({e.pair: e for e in reversed(entries) if e.final}.values())[::-1]
    wrong = next((e for e in answered if not e.score), None)
    right = next((e for e in answered if e.score), None)
    chosen = [e for e in (right, wrong) if e is not None]
    chosen += [e for e in answered if e not in chosen][: SHOWN - len(chosen)]
    return [
        ReadAnswer(
            prompts[e.candidate],
            pairs[e.pair].input,
            " | ".join(pairs[e.pair].references),
            e.output or "",
            e.extracted,
            e.score or 0.0,
        )
        for e in chosen
    ]


def likely_cause(entries: Sequence[Entry], pairs: Sequence[Pair], task: Task) -> str:
    """Why every answer scored 0, as far as the answers show, and what mends it."""
    final = [e for e in entries if e.final]
    seen = _Seen([e for e in final if e.status == "ok"], pairs, task)
    if not seen.entries:
        return "The model declined to answer. Try other prompts, or another --model."
    return next(cause for holds, cause in _CAUSES.items() if holds(seen)).format(
        kind=seen.kind, more=max(4 * task.max_tokens, 128), labels=", ".join(seen.labels[:6]), most=task.max_tokens
    )


@dataclass(frozen=True, slots=True)
class _Seen:
    entries: Sequence[Entry]
    pairs: Sequence[Pair]
    task: Task

    @property
    def kind(self) -> str:
        return str(getattr(self.task.scorer, "kind", "your function"))

    @property
    def labels(self) -> Sequence[str]:
        return tuple(getattr(self.task.scorer, "options", ()))

    def share(self, holds: Callable[[Entry], bool]) -> float:
        return sum(map(holds, self.entries)) / len(self.entries)


def _inside(seen: _Seen) -> bool:
    contains = Contains()
    held = seen.share(lambda e: contains.score_one(e.output or "", seen.pairs[e.pair]).value > 0)
    return seen.kind not in ("contains", "label", "choice") and held >= 0.25


def _cut(seen: _Seen) -> bool:
    return seen.share(lambda e: e.usage.completion_tokens >= seen.task.max_tokens) > 0.5


_CAUSES: Mapping[Callable[[_Seen], bool], str] = {
    (lambda seen: seen.share(lambda e: not (e.output or "").strip()) > 0.5): (
        "The answers are empty. A model that thinks first may have used its {most} tokens on that, or a stop text ends "
        "the answer at once: try --max-tokens {more}."
    ),
    _inside: (
        "The right answer stands inside longer answers, and the score {kind} does not look for it there: "
        "try --scorer auto, label or contains."
    ),
    _cut: "The answers are cut off after {most} tokens, before they say what is asked for: try --max-tokens {more}.",
    (lambda seen: bool(seen.labels) and seen.share(lambda e: e.extracted is None) > 0.5): (
        "No answer commits to one of the labels. Name them in the prompts, or for all of them with --system "
        "'Answer with one of: {labels}.'"
    ),
    (lambda seen: seen.kind == "number" and seen.share(lambda e: e.extracted is None) > 0.5): (
        "The answers hold no number. Ask for one in the prompts, or for all of them with --system 'Answer with a "
        "number.'"
    ),
    (lambda seen: True): (
        "The answers can be read and are wrong: the prompts may not say what is wanted, the score {kind} may not fit "
        "(--scorer), or the task may be too hard for this model (--model)."
    ),
}
