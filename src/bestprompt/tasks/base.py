"""A task: what is asked, how it is put to a model, and how the answer is scored."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from os import PathLike
from typing import Any

from bestprompt.errors import TaskError
from bestprompt.rng import stream
from bestprompt.scoring import ScorerSpec, build_scorer, content_hash
from bestprompt.tasks.files import describe
from bestprompt.tasks.proposing import described_score, former_proposal, resolved
from bestprompt.tasks.spec import DEFAULT_TEMPLATE, Splits, TaskSpec
from bestprompt.types import LanguageModel, Message, Pair, Request, Scorer, is_text

_PLACEHOLDER = re.compile(r"\{(prompt|input)\}")


@dataclass(frozen=True)
class Task:
    """Baseline pairs, example prompts, a score, and the frame in which prompt and input reach the model.

    Attributes:
        name: Short name.
        pairs: All baseline pairs (x_m, y_m), with distinct inputs.
        examples: The prompts a user would bring, good and mediocre.
        scorer: h(ŷ, y) in [0, 1].
        description: One sentence.
        template: The user message, with ``{input}`` and, unless ``system`` has it, ``{prompt}``.
        system: The system message, empty for none; may hold ``{prompt}``.
        max_tokens: Length of an answer.
        stop: Texts that end an answer.
        measured_on: Model name → whether the task was measured to separate prompts on it.
        fixed_splits: Splits the user gave; otherwise :meth:`split` draws them.
        notes: What a user should know about the data, e.g. repeated rows.
        proposed: Score and length of an answer, as far as they were proposed from the pairs and not given.
        fills_prompts: Whether ``{input}`` inside a prompt stands for the input; runs that began before go on without.
    """

    name: str
    pairs: tuple[Pair, ...]
    examples: tuple[str, ...]
    scorer: Scorer
    description: str = ""
    template: str = DEFAULT_TEMPLATE
    system: str = ""
    max_tokens: int = 32
    stop: tuple[str, ...] = ()
    measured_on: Mapping[str, bool] = field(default_factory=dict, compare=False)
    fixed_splits: Splits | None = None
    notes: tuple[str, ...] = field(default=(), compare=False)
    proposed: Mapping[str, Any] = field(default_factory=dict, compare=False)
    fills_prompts: bool = field(default=True, compare=False)

    def __post_init__(self) -> None:
        if not self.pairs:
            raise TaskError(f"task {self.name}: there are no pairs")
        found = set(_PLACEHOLDER.findall(self.template + self.system))
        for placeholder in ("prompt", "input"):
            if placeholder not in found:
                raise TaskError(f"task {self.name}: the template must contain {{{placeholder}}}")
        if self.max_tokens < 1:
            raise TaskError(f"task {self.name}: max_tokens = {self.max_tokens} must be at least 1")
        if any(not prompt.strip() for prompt in self.examples):
            raise TaskError(f"task {self.name}: an example prompt is empty")
        for text in (self.name, self.template, self.system, *self.stop, *self.examples, *self.texts):
            if not isinstance(text, str) or not is_text(text):
                raise TaskError(f"task {self.name}: {text!r:.60} is not text")
        _check_pairs(self.name, self.pairs)

    @classmethod
    def load(
        cls,
        name_or_path: str | PathLike[str],
        *,
        lm: LanguageModel | None = None,
        changes: Mapping[str, Any] | None = None,
    ) -> Task:
        """A bundled task by name, or one from a TOML, CSV, JSONL or JSON file or a folder.

        Args:
            name_or_path: One of :func:`bestprompt.tasks.names`, or a path.
            lm: The model a ``judge`` or ``embedding`` scorer of the task shall use.
            changes: Keys of a ``[task]`` table that outrank what the file says: scorer, template, system, max_tokens.

        Raises:
            TaskError: No such task or file, or a bad row in it, named by file and line.
        """
        return cls.from_spec(describe(name_or_path, changes or {}), lm=lm)

    @classmethod
    def from_spec(cls, spec: TaskSpec, *, lm: LanguageModel | None = None) -> Task:
        """The task that ``spec`` describes; ``lm`` is for a score that needs a model."""
        if not spec.pairs:
            raise TaskError(f"task {spec.name}: there are no pairs")
        _check_pairs(spec.name, spec.pairs)
        score, length, proposed = resolved(spec)
        given = {each.name: getattr(spec, each.name) for each in fields(spec)}
        scorer = build_scorer(score, lm=lm, texts=_texts(spec.pairs))
        return cls(**{**given, "scorer": scorer, "max_tokens": length, "proposed": proposed})

    @classmethod
    def from_pairs(
        cls,
        pairs: Sequence[Pair | tuple[str, str]],
        examples: Sequence[str] = (),
        *,
        scorer: ScorerSpec = "auto",
        template: str = DEFAULT_TEMPLATE,
        name: str = "custom",
        description: str = "",
        system: str = "",
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
        measured_on: Mapping[str, bool] | None = None,
        fixed_splits: Splits | None = None,
        notes: Sequence[str] = (),
        lm: LanguageModel | None = None,
    ) -> Task:
        """A task from pairs in memory; ``scorer`` is anything :func:`~bestprompt.scoring.build_scorer` takes.

        Left out, score and ``max_tokens`` are proposed from the pairs; ``scored_by`` of the task says which it is.
        """
        made = tuple(pair if isinstance(pair, Pair) else Pair(pair[0], (pair[1],)) for pair in pairs)
        spec = TaskSpec(
            name=name,
            pairs=made,
            examples=tuple(dict.fromkeys(examples)),
            scorer=scorer,
            description=description,
            template=template,
            system=system,
            max_tokens=max_tokens,
            stop=tuple(stop),
            measured_on=measured_on or {},
            fixed_splits=fixed_splits,
            notes=tuple(notes),
        )
        return cls.from_spec(spec, lm=lm)

    @property
    def scored_by(self) -> str:
        """How answers are scored, in one sentence."""
        return described_score(self.scorer, self.proposed.get("scorer"), self.pairs)

    def as_proposed(self, recorded: Mapping[str, Any] | None) -> Task:
        """The task with the score and length that were proposed when a run began.

        ``None`` is how tasks were read before anything was proposed.
        """
        then = former_proposal(self.pairs) if recorded is None else recorded
        changes: dict[str, Any] = {"fills_prompts": recorded is not None}
        if "max_tokens" in self.proposed and "max_tokens" in then:
            changes["max_tokens"] = then["max_tokens"]
        if "scorer" in self.proposed and "scorer" in then:
            changes["scorer"] = build_scorer(then["scorer"], texts=self.texts)
        return replace(self, **changes)

    @property
    def texts(self) -> tuple[str, ...]:
        """All inputs and references: what TF-IDF and Word2Vec scores learn from."""
        return _texts(self.pairs)

    @cached_property
    def fingerprint(self) -> str:
        """Depends on everything that changes what is asked or scored, and on nothing else."""
        pairs, examples, scorer, frame, splits = self._parts.values()
        return content_hash([self.name, pairs, examples, scorer, frame, splits])

    @cached_property
    def part_fingerprints(self) -> dict[str, str]:
        """The same of each part, so that it can be said which one changed."""
        return {name: content_hash(part) for name, part in self._parts.items()}

    @property
    def _parts(self) -> dict[str, Any]:
        return {
            "pairs": [[pair.input, pair.references, pair.meta] for pair in self.pairs],
            "examples": self.examples,
            "scorer": self.scorer.fingerprint,
            "frame": [self.template, self.system, self.max_tokens, self.stop],
            "splits": self.fixed_splits and [len(self.fixed_splits.train), len(self.fixed_splits.validation)],
        }

    def split(self, seed: int, fractions: tuple[float, float, float] = (0.6, 0.2, 0.2)) -> Splits:
        """The given splits, or a random partition of the pairs that depends on ``seed`` only.

        Each part holds at least one pair, so a task needs three.
        """
        if self.fixed_splits is not None:
            return self.fixed_splits
        if min(fractions) <= 0 or abs(sum(fractions) - 1) > 1e-9:
            raise TaskError(f"task {self.name}: split fractions {fractions} must be positive and sum to 1")
        n = len(self.pairs)
        if n < 3:
            raise TaskError(f"task {self.name}: {n} pairs cannot be split in three; give at least 3, better 50 or more")
        shuffled = [self.pairs[i] for i in stream(seed, "split").permutation(n)]
        validation, test = (max(1, round(fraction * n)) for fraction in fractions[1:])
        train = max(1, n - validation - test)
        validation = min(validation, n - train - 1)
        return Splits(
            tuple(shuffled[:train]),
            tuple(shuffled[train : train + validation]),
            tuple(shuffled[train + validation :]),
        )

    def held_out(self, share: float, seed: int) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
        """The pairs to choose prompts on, and a ``share`` of all that is kept for a last look.

        With given splits these are ``train`` and, if anything is to be held out, ``test``. Otherwise which pairs are
        held out depends on ``seed`` only.
        """
        if self.fixed_splits is not None:
            return self.fixed_splits.train, self.fixed_splits.test if share else ()
        kept = max(round(share * len(self.pairs)), 1) if share else 0
        if kept >= len(self.pairs):
            raise TaskError(
                f"task {self.name}: of {len(self.pairs)} pairs {kept} would be held out; none is left to choose on"
            )
        last = set(stream(seed, "holdout").permutation(len(self.pairs))[:kept].tolist())
        chosen_on = tuple(pair for n, pair in enumerate(self.pairs) if n not in last)
        return chosen_on, tuple(pair for n, pair in enumerate(self.pairs) if n in last)

    def without(self, count: int, seed: int, usable: Callable[[Pair], bool]) -> tuple[Task, tuple[Pair, ...]]:
        """The task without ``count`` of its ``usable`` pairs, and these: they depend on ``seed`` only.

        Of given splits ``validation`` loses them, on which nothing is chosen, or ``train`` where that has too few.
        """
        splits = self.fixed_splits
        whole = self.pairs if splits is None else splits.validation
        if splits is not None and sum(map(usable, whole)) < count:
            whole = splits.train
        able = [pair for pair in whole if usable(pair)]
        drawn = tuple(able[n] for n in stream(seed, "demonstrations").permutation(len(able))[:count])
        taken = {pair.input for pair in drawn}

        def rest(pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
            return tuple(pair for pair in pairs if pair.input not in taken)

        if splits is not None:
            splits = Splits(rest(splits.train), rest(splits.validation), splits.test)
        return replace(self, pairs=rest(self.pairs), fixed_splits=splits), drawn

    def render(
        self, prompt: str, pair: Pair, *, seed: int = 0, temperature: float = 0.0, top_p: float = 1.0
    ) -> Request:
        """The request that evaluates ``prompt`` on ``pair``.

        ``{input}`` inside a prompt stands for the input, which the default template then does not add once more. All
        other braces inside prompt or input are left alone.
        """
        values, template = {"prompt": prompt.strip(), "input": pair.input}, self.template
        if self.fills_prompts and "{input}" in prompt:
            values["prompt"] = values["prompt"].replace("{input}", pair.input)
            template = "{prompt}" if template == DEFAULT_TEMPLATE else template

        def fill(template: str) -> str:
            return _PLACEHOLDER.sub(lambda match: values[match.group(1)], template)

        system = (Message("system", fill(self.system)),) if self.system else ()
        messages = (*system, Message("user", fill(template)))
        return Request(messages, self.max_tokens, temperature, top_p, seed, self.stop)


def _texts(pairs: Sequence[Pair]) -> tuple[str, ...]:
    return tuple(text for pair in pairs for text in (pair.input, *pair.references))


def _check_pairs(name: str, pairs: Sequence[Pair]) -> None:
    seen: set[str] = set()
    for number, pair in enumerate(pairs, start=1):
        if not pair.references:
            raise TaskError(f"task {name}: pair {number} ({pair.input[:60]!r}) has no reference")
        if pair.input in seen:
            raise TaskError(
                f"task {name}: pair {number} repeats the input {pair.input[:60]!r}; "
                "give several right answers as references of one pair"
            )
        seen.add(pair.input)
