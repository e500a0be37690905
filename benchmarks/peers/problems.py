"""A problem of the comparison: a task, the pairs a run may choose on, and the pairs that nobody has seen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from made_tasks import MADE, made_task

from bestprompt.rng import stream
from bestprompt.tasks import Task, names
from bestprompt.types import LanguageModel, Message, Pair, Request

TASKS = (*names(), *MADE)
TEST, POOL, CHOSEN_ON = 100, 100, 50


@cache
def load_task(name: str) -> Task:
    """A task by name: bundled, or made here."""
    return made_task(name) if name in MADE else Task.load(name)


@dataclass(frozen=True)
class Problem:
    """What one run is given.

    The last ``POOL`` of the first ``TEST + POOL`` pairs are to choose on, each seed has half of them; the first
    ``TEST`` are the same for all and kept from every method.
    """

    name: str
    seed: int

    @property
    def task(self) -> Task:
        """The whole task."""
        return load_task(self.name)

    @property
    def pairs(self) -> list[Pair]:
        """To choose on."""
        pool = self.task.pairs[TEST : TEST + POOL]
        return [pool[i] for i in stream(self.seed, "peers", self.name).permutation(len(pool))[:CHOSEN_ON]]

    def as_job(self) -> dict[str, Any]:
        """What a worker is told."""
        return {
            "task": self.name,
            "seed": self.seed,
            "description": self.task.description,
            "examples": list(self.task.examples),
            "pairs": [{"input": pair.input, "answer": pair.reference} for pair in self.pairs],
            "template": self.task.template,
            "max_tokens": self.task.max_tokens,
        }


def request_for(task: Task, prompt: str, demos: list[list[str]], pair: Pair) -> Request:
    """What a user sends who adopts ``prompt``: earlier turns are the demonstrations, each in the same frame."""
    final = task.render(prompt, pair)
    turns = [
        message
        for question, answer in demos
        for message in (*task.render(prompt, Pair(question, (answer,))).messages, Message("assistant", answer))
    ]
    return Request((*turns, *final.messages), final.max_tokens)


def test_score(name: str, lm: LanguageModel, prompt: str, demos: list[list[str]]) -> float:
    """Mean score on the untouched pairs; an answer that cannot be had, as of a prompt too long, scores 0."""
    task = load_task(name)
    pairs = task.pairs[:TEST]
    answers = lm.complete([request_for(task, prompt, demos, pair) for pair in pairs])
    texts = [getattr(answer, "text", "") for answer in answers]
    return sum(scored.value for scored in task.scorer.score(texts, pairs)) / len(pairs)
