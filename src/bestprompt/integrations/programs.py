"""A program that another tool runs, as a task and a model: one evaluation of it on one example is one call.

A candidate is a text for each of the program's components (DSPy: the instructions of a predictor; GEPA: a named text).
Candidates of one component are that text; of several, all texts under headings, chosen jointly, since what is best for
one component depends on the others. What the program answers and how the other tool scores that come back together, so
that the record, the budget, the verdict and the report are those of any run.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from bestprompt.errors import ConfigError, LMError
from bestprompt.run.api import optimize
from bestprompt.run.observer import Observer
from bestprompt.run.result import Recommendation
from bestprompt.run.settings import Settings, changed, load_settings
from bestprompt.scoring import TextScorer
from bestprompt.tasks import Task
from bestprompt.types import Completion, Pair, Request, Scored, Usage

Candidate = Mapping[str, str]
_HEADING = re.compile(r"^=== (.+) ===$", re.MULTILINE)
# A run puts the input where a prompt says {input}; a program's own texts are left as they are.
_INPUT, _KEPT = "{input}", "{\u2060input}"
_GIVEN_ONLY: Mapping[str, object] = {"search.source": "examples", "search.rewrites": 0, "refinement.mode": "off"}
# Demonstrations are pairs as text, and a program's examples are known here by their words alone; nor does a program
# write prompts.
_NEVER: Mapping[str, object] = {"search.demos": 0, "ideas.mode": "off"}


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One evaluation: the other tool's score, and what is worth showing of the output."""

    score: float
    output: str


class Program(Protocol):
    """What another tool runs."""

    def evaluate(self, candidate: Candidate, examples: Sequence[int]) -> list[Evaluated | LMError]:
        """The program with the texts of ``candidate`` on these examples, by number; an error stays in its place."""
        ...


@dataclass(frozen=True)
class ReportedScore(TextScorer):
    """The score that came with the answer, moved from ``lowest`` … ``highest`` to [0, 1]."""

    kind: ClassVar[str] = "reported"
    lowest: float = 0.0
    highest: float = 1.0
    metric: str = ""

    def score_one(self, output: str, pair: Pair) -> Scored:
        """As reported."""
        said = json.loads(output)
        return Scored((said["score"] - self.lowest) / (self.highest - self.lowest), str(said["output"]))


def joined(candidate: Candidate) -> str:
    """A candidate as one text.

    Raises:
        ConfigError: A text holds what would be taken for a heading.
    """
    for name, text in candidate.items():
        if len(candidate) > 1 and _HEADING.search(text):
            raise ConfigError(f"The text of {name!r} has a line “=== … ===”, which separates texts here.")
        if not text.strip():
            raise ConfigError(f"The text of {name!r} is empty.")
    texts = {name: text.strip().replace(_INPUT, _KEPT) for name, text in candidate.items()}
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "\n\n".join(f"=== {name} ===\n{text}" for name, text in texts.items())


def parted(text: str, names: Sequence[str]) -> dict[str, str]:
    """The candidate that was joined to ``text``."""
    text = text.replace(_KEPT, _INPUT)
    if len(names) == 1:
        return {names[0]: text}
    found = _HEADING.split(text)
    return {name: part.strip() for name, part in zip(found[1::2], found[2::2], strict=True)}


@dataclass
class ProgramModel:
    """A program in the place of a language model.

    Attributes:
        program: What is run.
        names: Of its components.
        numbers: Text of an example → its number.
        name: Shown in reports.
        fingerprint: Identifies the program apart from its texts.
        range: Lowest and highest score that there may be.
        deterministic: Whether the same question has the same answer.
        batch_size: Examples worth evaluating together.
        concurrency: Evaluations worth having under way at once.
        writer: Answers what is no evaluation of the program: requests to write further candidates.
    """

    program: Program
    names: tuple[str, ...]
    numbers: Mapping[str, int]
    name: str
    fingerprint: str
    range: tuple[float, float] = (0.0, 1.0)
    deterministic: bool = False
    batch_size: int = 1
    concurrency: int = 1
    writer: Callable[[Request], str] | None = field(default=None, repr=False)

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        """One evaluation for each request; those of one candidate are made together."""
        answers: dict[int, Completion | LMError] = {}
        groups: dict[str, list[tuple[int, int]]] = {}
        for place, request in enumerate(requests):
            number = self.numbers.get(request.messages[-1].content) if len(request.messages) == 2 else None
            if number is None:
                answers[place] = self._written(request)
            else:
                groups.setdefault(request.messages[0].content, []).append((place, number))
        for text, members in groups.items():
            began = time.perf_counter()
            found = self.program.evaluate(parted(text, self.names), [number for _, number in members])
            each = (time.perf_counter() - began) / len(members)
            for (place, _), one in zip(members, found, strict=True):
                answers[place] = one if isinstance(one, LMError) else self._completion(one, each)
        return [answers[place] for place in range(len(requests))]

    def max_prompt_tokens(self, request: Request) -> int:
        """Unknown: the program asks its model by itself, so that limits in tokens cannot be kept."""
        return 0

    def _completion(self, found: Evaluated, seconds: float) -> Completion | LMError:
        low, high = self.range
        if not low <= found.score <= high:  # nor if it is no number
            return LMError(
                f"The metric returned {found.score!r}, which is not from {low:g} to {high:g}. Say what it may return: "
                "score_range=(lowest, highest).",
                retryable=False,
                systemic=True,
            )
        text = json.dumps({"score": found.score, "output": found.output}, ensure_ascii=False)
        return Completion(text, Usage(calls=1), seconds)

    def _written(self, request: Request) -> Completion | LMError:
        if self.writer is None:
            return LMError("A program that is judged writes no prompts.", retryable=False, systemic=True)
        try:
            return Completion(self.writer(request), Usage(calls=1))
        except Exception as error:  # whatever the other tool raises belongs to this request alone
            return LMError(f"{self.name} raised {type(error).__name__}: {error}")


def choose(
    model: ProgramModel,
    pairs: Sequence[Pair],
    candidates: Sequence[Candidate],
    *,
    name: str,
    metric: str,
    budget: int,
    seed: int | None = None,
    ledger: str | Path | None = None,
    config: Settings | str | Path | None = None,
    observer: Observer | None = None,
) -> tuple[dict[str, str], Recommendation]:
    """The candidate to use, and the recommendation behind it.

    Args:
        model: The program.
        pairs: Its examples, in words that tell them apart.
        candidates: What to choose from, the one in use first.
        name: Of the task.
        metric: Identifies the other tool's metric.
        budget: Evaluations of the program allowed.
        seed: Decides every random choice.
        ledger: Folder of the run; one that is there is continued.
        config: Settings, e.g. to search for further candidates; without them there are the given ones only.
        observer: Is told how the run goes.
    """
    texts = {joined(candidate): dict(candidate) for candidate in candidates}
    incumbent = next(iter(texts))
    settings = config if isinstance(config, Settings) else load_settings(Path(config) if config else None)
    invents = settings.search.source == "latent" or settings.search.rewrites or settings.refining != "off"
    if config is not None and invents and len(model.names) > 1:
        raise ConfigError(
            f"This program has {len(model.names)} components ({', '.join(model.names)}), and the search invents single "
            'texts. Give candidates instead, with [search] source = "examples".'
        )
    given = {"selection.incumbent": incumbent, "model.temperature": 0.0 if model.deterministic else 1.0}
    given |= {} if settings.search.source != "auto" else {"search.source": "examples"}
    settings = changed(settings, {**({} if config is not None else _GIVEN_ONLY), **_NEVER, **given})
    task = Task.from_pairs(
        pairs,
        tuple(texts),
        scorer=ReportedScore(*model.range, metric),
        template="{input}",
        system="{prompt}",
        name=name,
        max_tokens=1,
    )
    found = optimize(task, model, budget=budget, seed=seed, ledger=ledger, config=settings, observer=observer)
    chosen = found.prompt_to_use
    return texts.get(chosen) or parted(chosen, model.names), found


def numbered(pairs: Sequence[tuple[str, str]]) -> tuple[list[Pair], dict[str, int]]:
    """Pairs from (input, expected) in words, and the number of each; inputs that repeat are told apart."""
    made: list[Pair] = []
    numbers: dict[str, int] = {}
    for number, (asked, expected) in enumerate(pairs):
        text = asked.strip() or "(nothing)"
        while text in numbers:
            text = f"{asked.strip()} (#{number + 1})"
        numbers[text] = number
        made.append(Pair(text, (expected.strip() or "(not given)",)))
    return made, numbers


def in_words(values: Mapping[str, Any]) -> str:
    """Named values as text: one alone without its name."""
    if len(values) == 1:
        return str(next(iter(values.values())))
    return "\n".join(f"{name}: {value}" for name, value in values.items())
