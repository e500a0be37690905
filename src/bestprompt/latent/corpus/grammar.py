"""An own grammar of task instructions, with paraphrase structure.

``frames.txt`` describes what people ask language models to do. One *instance* of a frame fixes the meaning (its ``$``
values); one *form* of an instance is a sentence that expresses it. Forms of one instance are paraphrases, forms of one
frame belong to the same kind of task: the training groups of the autoencoder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files

import numpy as np

_MACRO = re.compile(r"@(\w+)")
_VALUE = re.compile(r"\$(\w+)(?:\.(\d))?")
_CHOICE = re.compile(r"\{([^{}]*)\}")
_ARTICLE = re.compile(r"\b([Aa]) (?=(?:[aeioAEIO]|un(?!i)|hour|honest)\w)")

CASUAL_SHARE = 0.1
LEADS = (
    "your task is to", "your job is to", "you must", "you should", "you need to", "i want you to", "i need you to",
    "try to", "the task is to", "the goal is to", "in this task, you", "in this task, you have to", "remember to",
    "you have to", "i would like you to", "your goal is to", "the aim is to", "you are asked to", "help me", "let us",
)  # fmt: skip
GIVENS = (
    "given",
    "given",
    "given",
    "when given",
    "for",
    "from",
    "you are given",
    "you will be given",
    "you get",
    "here is",
)
ENDS = (
    "Give only {out}.", "Answer with {out} only.", "Write only {out}.", "Return just {out}.", "Output only {out}.",
    "Reply with {out} and nothing else.", "Answer with {out}.", "The answer is {out}.", "Your answer should be {out}.",
    "Do not explain.", "Do not add anything else.", "Think step by step.", "Be brief.", "No explanation is needed.",
    "Give a short answer.", "Do not write anything else.", "Be precise.", "Check your answer.", "Just give the answer.",
    "Respond with {out} only.", "Make sure that it is correct.", "Say nothing else.", "Write nothing but {out}.",
)  # fmt: skip
TAILS = (
    "and write only {out}", "and give only {out}", "and return {out}", "and answer with {out}", "and output {out}",
    "and do not explain", "and nothing else", "without any explanation", "as quickly as you can",
    "and check your answer",
)  # fmt: skip


@dataclass(frozen=True)
class TaskFrame:
    """One kind of task."""

    name: str
    values: Mapping[str, Sequence[str]]
    imperatives: Sequence[str] = field(default_factory=list)
    questions: Sequence[str] = field(default_factory=list)
    requests: Sequence[str] = field(default_factory=list)  # whole, with their marks
    given: str = ""
    out: str = ""
    titles: Sequence[str] = ()
    examples: Sequence[str] = ()


@dataclass(frozen=True)
class Grammar:
    """All frames and the phrase lists they share.

    Attributes:
        macros: The phrase lists.
        frames: The kinds of task.
        casual: Share of the sentences in small letters without an end mark.
    """

    macros: Mapping[str, Sequence[str]]
    frames: Sequence[TaskFrame]
    casual: float = 0.0

    @classmethod
    def bundled(cls) -> Grammar:
        """The grammar in ``frames.txt``, which the shipped weights know."""
        return cls.parse(_file("frames.txt"))

    @classmethod
    def wide(cls) -> Grammar:
        """The bundled frames and those of ``more_frames.txt``, for weights still in training."""
        return replace(cls.parse(_file("frames.txt") + _file("more_frames.txt")), casual=CASUAL_SHARE)

    @classmethod
    def parse(cls, text: str) -> Grammar:
        """Read the notation described at the top of ``frames.txt``."""
        macros: dict[str, list[str]] = {}
        frames: list[TaskFrame] = []
        for line in filter(None, map(str.strip, text.splitlines())):
            kind, _, rest = line.partition(" ")
            if kind == "==":
                frames.append(TaskFrame(rest, {}, [], [], []))
            elif kind.startswith(("@", "$")):
                options = [option.strip() for option in rest.removeprefix("= ").split("|")]
                (macros if kind[0] == "@" else dict_of(frames[-1]))[kind[1:]] = options
            elif kind == "!":
                list_of(frames[-1].imperatives).append(rest)
            elif kind == "?":
                list_of(frames[-1].questions).append(rest)
            elif kind == ".":
                list_of(frames[-1].requests).append(rest)
            elif kind in {"in", "out"}:
                old = frames[-1]
                frames[-1] = replace(old, given=rest) if kind == "in" else replace(old, out=rest)
            elif kind in {":", "eg"}:
                options = [option.strip() for option in rest.split("|")]
                old = frames[-1]
                frames[-1] = replace(old, titles=options) if kind == ":" else replace(old, examples=options)
        return cls(macros, frames)

    def instance(self, frame: TaskFrame, rng: np.random.Generator) -> dict[str, list[str]]:
        """Fix the meaning: one value per slot, with its forms."""
        return {name: options[int(rng.integers(len(options)))].split("/") for name, options in frame.values.items()}

    def form(self, frame: TaskFrame, values: Mapping[str, Sequence[str]], rng: np.random.Generator) -> str:
        """One sentence (or two short ones) that expresses the instance."""
        text = self._written(frame, values, rng)
        return text.rstrip(".?").lower() if self.casual and rng.random() < self.casual else text

    def _written(self, frame: TaskFrame, values: Mapping[str, Sequence[str]], rng: np.random.Generator) -> str:
        if frame.titles and rng.random() < 0.03:
            return _sentence(self._expand(_one(frame.titles, rng), values, rng), ":")
        n_imperatives = len(frame.imperatives)
        index = int(rng.integers(n_imperatives + len(frame.questions) + len(frame.requests)))
        if index >= n_imperatives + len(frame.questions):
            whole = frame.requests[index - n_imperatives - len(frame.questions)]
            return _tidy(_sentence(self._expand(whole, values, rng), ""))
        given, out = self._expand(frame.given, values, rng), self._expand(frame.out, values, rng)
        if index < n_imperatives:
            body = self._imperative(self._expand(frame.imperatives[index], values, rng), given, out, rng)
        else:
            body = self._question(self._expand(frame.questions[index - n_imperatives], values, rng), given, rng)
        if frame.examples and rng.random() < 0.05:
            return _tidy(f"{body[:-1]}, for example: {_one(frame.examples, rng)}")
        if rng.random() < 0.12:
            body += " " + _one(ENDS, rng).format(out=out)
        return _tidy(body)

    def _imperative(self, clause: str, given: str, out: str, rng: np.random.Generator) -> str:
        if rng.random() < 0.12:
            clause += " " + _one(TAILS, rng).format(out=out)
        style = rng.random()
        if style < 0.46:
            return _sentence(clause)
        if style < 0.56:
            return _sentence(f"please {clause}")
        if style < 0.72:
            return _after_given(_one(GIVENS, rng), given, clause, ".")
        if style < 0.88:
            return _sentence(f"{_one(LEADS, rng)} {clause}")
        if style < 0.94:
            return _sentence(f"{_one(('can', 'could', 'would'), rng)} you {_one(('', 'please '), rng)}{clause}", "?")
        return _one(("Task: ", "Instruction: ", "Now ", "First ", "Always "), rng) + clause + "."

    @staticmethod
    def _question(clause: str, given: str, rng: np.random.Generator) -> str:
        style = rng.random()
        if style < 0.75:
            return _sentence(clause, "?")
        if style < 0.9:
            return _after_given(_one(GIVENS, rng), given, clause, "?")
        return _one(("Question: ", "Answer this: ", "Tell me, "), rng) + clause + "?"

    def _expand(self, template: str, values: Mapping[str, Sequence[str]], rng: np.random.Generator) -> str:
        def value(match: re.Match[str]) -> str:
            return values[match[1]][int(match[2] or 1) - 1]

        text = template
        while _CHOICE.search(text):
            text = _CHOICE.sub(lambda match: _one(match[1].split("|"), rng), text)
        text = _MACRO.sub(lambda match: _one(self.macros[match[1]], rng), text)
        return _VALUE.sub(value, text).strip()


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def dict_of(frame: TaskFrame) -> dict[str, list[str]]:
    """The frame's values while it is being read."""
    assert isinstance(frame.values, dict)
    return frame.values


def list_of(forms: Sequence[str]) -> list[str]:
    """A frame's forms while they are being read."""
    assert isinstance(forms, list)
    return forms


def _one(options: Sequence[str], rng: np.random.Generator) -> str:
    return options[int(rng.integers(len(options)))]


def _sentence(clause: str, mark: str = ".") -> str:
    return clause[0].upper() + clause[1:] + mark


def _after_given(lead: str, given: str, clause: str, mark: str) -> str:
    if lead in {"given", "when given", "for", "from"}:
        return _sentence(f"{lead} {given}, {clause}", mark)
    return _sentence(f"{lead} {given}") + " " + _sentence(clause, mark)


def _tidy(text: str) -> str:
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r" ([,.?])", r"\1", text)
    text = re.sub(r"\b([Aa])n (?=[bcdfgjklmnpqrstvwxyzBCDFGJKLMNPQRSTVWXYZ]\w|uni|hu?[a-gi-np-z])", r"\1 ", text)
    text = _ARTICLE.sub(r"\1n ", text)
    return re.sub(r"\bi (want|need|would)\b", r"I \1", text)
