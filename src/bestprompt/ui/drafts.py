"""A run that is about to be started from a form: how its pairs, its template and its score will look, and its files."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bestprompt.errors import ConfigError, TaskError
from bestprompt.scoring.build import KINDS
from bestprompt.tasks import Task, names
from bestprompt.tasks.files import describe_table
from bestprompt.tasks.loaders import DATA_SUFFIXES
from bestprompt.types import Pair, Request

MOST_BYTES = 20_000_000
SHOWN = 5
# Scores that call a model, or learn: what they give is seen in the run.
NOT_PREVIEWED = ("judge", "embedding", "word2vec")
SCORES = tuple(KINDS)


@dataclass(frozen=True, slots=True)
class Draft:
    """What the form holds; empty where nothing was entered."""

    task: str = ""
    file: str = ""
    data: bytes = field(default=b"", repr=False)
    prompts: str = ""
    incumbent: str = ""
    template: str = ""
    system: str = ""
    scorer: str = ""
    max_tokens: str = ""
    budget: str = ""
    model: str = ""
    base_url: str = ""
    latent: str = ""
    demos: str = ""
    attempt: str = ""

    def table(self) -> dict[str, Any]:
        """The ``[task]`` table of its settings file.

        Raises:
            ConfigError: There is neither a file nor a bundled task, or no prompt.
        """
        table: dict[str, Any] = {"name": self.task or Path(self.file).stem or "task"}
        if not self.task:
            if not self.data:
                raise ConfigError("Choose a file of pairs, or one of the bundled tasks.")
            table["data"] = f"pairs{self._suffix()}"
        if self.prompts.strip():
            table["prompts"] = "prompts.txt"
        elif not self.task:
            raise ConfigError("Write at least one prompt to choose from; two make a choice.")
        for key in ("template", "system", "scorer"):
            if value := getattr(self, key).strip("\n"):
                table[key] = value
        if self.max_tokens.strip():
            table["max_tokens"] = _whole("Length of an answer", self.max_tokens)
        return table

    def write(self, folder: Path) -> Path:
        """Writes the data and a settings file into ``folder``; the latter's path."""
        table = self.table()
        folder.mkdir(parents=True, exist_ok=True)
        if "data" in table:
            (folder / table["data"]).write_bytes(self.data)
        if "prompts" in table:
            (folder / table["prompts"]).write_text(self.prompts.replace("\r\n", "\n"), "utf-8")
        path = folder / "bestprompt.toml"
        path.write_text("[task]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in table.items()), "utf-8")
        return path

    def options(self) -> list[str]:
        """The options of ``bestprompt run`` besides the file."""
        found = []
        if self.budget.strip():
            found += ["--budget", str(_whole("Budget", self.budget))]
        found += [f"--model={name.strip()}" for name in self.model.split(",") if name.strip()]
        if self.demos.strip():
            found += ["--demos", str(_whole("Pairs shown in a prompt", self.demos))]
        for name in ("base_url", "incumbent"):
            if value := getattr(self, name).strip():
                found += [f"--{name.replace('_', '-')}={value}"]
        return [*found, *(["--latent"] if self.latent else [])]

    def _suffix(self) -> str:
        suffix = Path(self.file).suffix.lower()
        if suffix not in DATA_SUFFIXES:
            raise TaskError(f"unknown kind of file; expected one of: {', '.join(DATA_SUFFIXES)}", file=self.file)
        return suffix


@dataclass(frozen=True, slots=True)
class Look:
    """How a draft will look.

    Attributes:
        pairs: The first of them.
        count: How many there are.
        notes: On what was read.
        prompts: To choose from.
        request: What the model gets for the first prompt and the first pair.
        scores: Answers to the first pair and what each would score; empty where a model is needed to say.
        score: How answers are scored, in words.
    """

    pairs: tuple[Pair, ...]
    count: int
    notes: tuple[str, ...]
    prompts: tuple[str, ...]
    request: Request | None
    scores: tuple[tuple[str, float, str | None], ...]
    score: str


def look(draft: Draft) -> Look:
    """Reads a draft as the run would, and tries its score; nothing is kept and no model is called.

    Raises:
        BestPromptError: As the run would.
    """
    with tempfile.TemporaryDirectory() as scratch:
        path = draft.write(Path(scratch))
        spec = describe_table(draft.table(), path.parent)
    kind = spec.scorer if isinstance(spec.scorer, str) else str(getattr(spec.scorer, "get", lambda _: "")("kind"))
    if kind in NOT_PREVIEWED:
        return Look(spec.pairs[:SHOWN], len(spec.pairs), spec.notes, spec.examples, None, (), kind)
    task = Task.from_spec(spec)
    pair = task.pairs[0]
    right = pair.references[0]
    tries = [right, f"The answer is {right}.", *([draft.attempt] if draft.attempt.strip() else [])]
    scored = task.scorer.score(tries, [pair] * len(tries))
    return Look(
        pairs=task.pairs[:SHOWN],
        count=len(task.pairs),
        notes=task.notes,
        prompts=task.examples,
        request=task.render(task.examples[0], pair) if task.examples else None,
        scores=tuple((said, s.value, s.extracted) for said, s in zip(tries, scored, strict=True)),
        score=task.scored_by,
    )


def toml(value: str | int) -> str:
    """A value as TOML; its basic strings are JSON's but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def bundled() -> list[str]:
    """The tasks that need no file."""
    return list(names())


def _whole(what: str, value: str) -> int:
    if not value.strip().isdecimal() or int(value) < 1:
        raise ConfigError(f"{what}: {value!r} is not a whole number from 1 on.")
    return int(value)
