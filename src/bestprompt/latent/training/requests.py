"""What the language models are asked for: kind of task, subject, register and opening, in even rotation.

A block is a run of requests that begin with the same written examples, so that a model reads these once. Blocks
of one model are numbered from 0; everything about a request follows from the model's name, its block and its number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from bestprompt.rng import integer, stream

KIND_LINES_SHOWN, REGISTER_LINES_SHOWN, GROUPS_SHOWN = 4, 5, 3
OPENED_SHARE = 0.35  # of the lines in registers that do not depend on their opening
OWN_SUBJECT_SHARE = 0.5  # of the lines without an opening: the model also chooses the subject
LINES_PER_BLOCK, GROUPS_PER_BLOCK = 64, 16
GROUP_BLOCKS = 10  # in a round of blocks, beside one for each register
GROUP_LABELS = ("plain", "reworded", "shorter", "question", "polite", "exact")
LINE_HEAD = "Prompts that people wrote for a language model, with the task and the subject in brackets.\n\n"
GROUP_HEAD = (
    "Prompts for a language model, each worded in six ways that mean the same; at the end one like these: {}\n\n"
)
SEED = 0
T = TypeVar("T")


@dataclass(frozen=True)
class WritingRequest:
    """One call: the model continues ``prompt`` up to one of ``stop``.

    The prompt ends with ``opening``, the given beginning of a line; if that is None, the model first writes a subject
    and closes the bracket.
    """

    prompt: str
    opening: str | None
    stop: tuple[str, ...]
    max_tokens: int
    seed: int
    kind: str
    register: str  # of a paraphrase group's first line
    mode: str  # "line" or "group"
    group: str


@dataclass
class Kind:
    """A kind of task: what it can be about, and examples behind their subjects in brackets."""

    subjects: list[str]
    lines: list[str] = field(default_factory=list)


@dataclass
class Register:
    """A way of speaking; ``finish`` is how its lines end, see ``cleaning.clean``."""

    finish: str
    always_opened: bool = False
    openings: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


@dataclass
class Catalogue:
    """The written material of ``requests.txt``."""

    kinds: dict[str, Kind] = field(default_factory=dict)
    registers: dict[str, Register] = field(default_factory=dict)
    groups: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def load(cls) -> Catalogue:
        """Read the file beside this module; its first lines explain the format."""
        read, name, section = cls(), "", ""
        for line in Path(__file__).with_name("requests.txt").read_text(encoding="utf-8").splitlines():
            if not line or line.startswith("# "):
                continue
            mark, _, rest = line.partition(" ")
            if mark in {"==", "@@", "%%"}:
                section, (name, _, more) = mark, rest.partition(" | ")
                if section == "==":
                    read.kinds[name] = Kind(more.split(", "))
                elif section == "@@":
                    read.registers[name] = Register(more)
                else:
                    read.groups[name] = {}
            elif section == "==":
                subject, _, text = line.partition(": ")
                read.kinds[name].lines.append(f"[{name}: {subject}] {text}")
            elif mark in {">", "~"}:
                read.registers[name].always_opened, read.registers[name].openings = mark == ">", rest.split(" | ")
            elif section == "@@":
                read.registers[name].lines.append(line)
            else:
                label, _, text = line.partition(": ")
                read.groups[name][label] = text
        return read

    def examples(self) -> Iterator[str]:
        """Every written example: a model that repeats one has written nothing new."""
        lines = [kind.lines for kind in self.kinds.values()] + [register.lines for register in self.registers.values()]
        yield from (line.partition("] ")[2] for some in lines for line in some)
        for group in self.groups.values():
            yield from group.values()

    def block(self, model: str, number: int) -> list[WritingRequest]:
        """The requests of one block: a kind of task in one register, or in groups of paraphrases.

        Of ``len(kinds)`` successive blocks each kind has one; of ``len(registers) + GROUP_BLOCKS`` successive blocks
        each register has one and the groups have the others.
        """
        turns = [*self.registers, *[""] * GROUP_BLOCKS]
        register = _shuffled(turns, "turns", model, number // len(turns))[number % len(turns)]
        kind = _shuffled([*self.kinds], "kinds", model, number // len(self.kinds))[number % len(self.kinds)]
        return self._lines(model, number, kind, register) if register else self._groups(model, number, kind)

    def _lines(self, model: str, number: int, kind: str, register: str) -> list[WritingRequest]:
        of_kind = _shuffled(self.kinds[kind].lines, "kind lines", model, number)[:KIND_LINES_SHOWN]
        of_register = _shuffled(self.registers[register].lines, "register lines", model, number)[:REGISTER_LINES_SHOWN]
        head = LINE_HEAD + "".join(f"{line}\n" for line in of_kind + of_register)
        requests = []
        for index in range(LINES_PER_BLOCK):
            rng = stream(SEED, "line", model, number, index)
            opening: str | None = self._opening(register, rng)
            prompt = f"{head}[{kind}: {self._subject(kind, rng)}] {opening}".rstrip()
            if opening == "" and rng.random() < OWN_SUBJECT_SHARE:
                prompt, opening = f"{head}[{kind}:", None
            seed, group = integer(SEED, "line", model, number, index), f"{model}-{number}"
            requests.append(WritingRequest(prompt, opening, ("\n",), 64, seed, kind, register, "line", group))
        return requests

    def _groups(self, model: str, number: int, kind: str) -> list[WritingRequest]:
        like = _shuffled(self.kinds[kind].lines, "kind lines", model, number)[:2]
        head = GROUP_HEAD.format(" ".join(line.partition("] ")[2] for line in like))
        for tag, wordings in _shuffled([*self.groups.items()], "groups", model, number)[:GROUPS_SHOWN]:
            head += f"[{tag}]\n" + "".join(f"{label}: {wordings[label]}\n" for label in GROUP_LABELS) + "\n"
        requests = []
        for index in range(GROUPS_PER_BLOCK):
            rng = stream(SEED, "group", model, number, index)
            opening = self._opening("plain", rng)
            prompt = f"{head}[{kind}: {self._subject(kind, rng)}]\nplain: {opening}".rstrip()
            seed, group = integer(SEED, "group", model, number, index), f"{model}-{number}-{index}"
            requests.append(WritingRequest(prompt, opening, ("\n\n", "\n["), 150, seed, kind, "plain", "group", group))
        return requests

    def _subject(self, kind: str, rng: np.random.Generator) -> str:
        subjects = self.kinds[kind].subjects
        return subjects[int(rng.integers(len(subjects)))]

    def _opening(self, register: str, rng: np.random.Generator) -> str:
        openings = self.registers[register].openings
        opened = self.registers[register].always_opened or rng.random() < OPENED_SHARE
        return openings[int(rng.integers(len(openings)))] if opened else ""


def block_number(group: str) -> tuple[str, int]:
    """The model and block that a record's group belongs to."""
    model, number = group.split("-")[:2]
    return model, int(number)


def _shuffled(items: list[T], what: str, model: str, number: int) -> list[T]:
    return [items[i] for i in stream(SEED, what, model, number).permutation(len(items))]
