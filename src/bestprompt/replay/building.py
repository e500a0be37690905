"""Making a score table: every prompt is asked every question once, some are asked again at a higher temperature.

Items are asked in blocks, each of all prompts before the next is begun, so that a table is of use before it is
finished; within a prompt's block the questions share their beginning, which a local model reads once. What was asked is
in the file at most ``SAVED_EVERY`` seconds later, and after Ctrl-C; a second call goes on where the file ends.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bestprompt.errors import LMError, TaskError
from bestprompt.latent import SoftSpace
from bestprompt.replay.table import MISSING, ScoreTable
from bestprompt.rng import integer
from bestprompt.tasks import Task
from bestprompt.types import LanguageModel, Pair, SoftPromptSet

SAVED_EVERY = 20.0
Progress = Callable[[int, int], None]
"""Called with (asked, all) questions."""


@dataclass(frozen=True, slots=True)
class TableSize:
    """How much is asked.

    Attributes:
        items: Questions that every prompt gets at temperature 0.
        replicates: Further answers of the repeated prompts to each of their questions.
        repeated: Prompts that are repeated, spread evenly over the set.
        temperature: Of the further answers.
        block: Items asked of all prompts before the next are begun.
    """

    items: int = 40
    replicates: int = 2
    repeated: int = 20
    temperature: float = 0.7
    block: int = 20


def union(sets: Sequence[SoftPromptSet], dim: int) -> SoftPromptSet:
    """The distinct prompts of ``sets``, which share a latent space, with one projection for all."""
    first = {prompt: (s, n) for s in reversed(sets) for n, prompt in reversed(list(enumerate(s.prompts)))}
    prompts = tuple(dict.fromkeys(prompt for s in sets for prompt in s.prompts))
    places = {prompt: place for place, prompt in enumerate(prompts)}
    found = [first[prompt] for prompt in prompts]
    X = np.array([np.asarray(s.X)[n] for s, n in found])
    parents = [places[s.prompts[s.parents[n]]] if s.parents[n] >= 0 else -1 for s, n in found]
    sources = tuple(s.sources[n] for s, n in found)
    return SoftPromptSet(prompts, SoftSpace.fit(X, dim).to_soft(X), X, np.array(parents, dtype=np.int64), sources)


def build_table(
    path: Path,
    task: Task,
    lm: LanguageModel,
    candidates: Callable[[], SoftPromptSet],
    pairs: tuple[Pair, ...],
    size: TableSize,
    progress: Progress = lambda _done, _all: None,
) -> ScoreTable:
    """The table at ``path``, begun or gone on with until every question is answered.

    Args:
        path: The file.
        task: Renders and scores the questions.
        lm: Answers them. A request that failed for good scores 0, as it would in a run.
        candidates: Makes the prompts; asked only where there is no file yet.
        pairs: At least ``size.items`` of them; the first are used.
        size: How much is asked.
        progress: Is told how many questions are answered.

    Raises:
        TaskError: The file is a table of another task, model or size.
        LMError: The model cannot be used. What was answered is in the file.
    """
    if len(pairs) < size.items:
        raise TaskError(f"task {task.name} has {len(pairs)} pairs, {size.items} items were asked for")
    items = pairs[: size.items]
    facts = {"task": task.name, "task_fingerprint": task.fingerprint, "model": lm.name, "fingerprint": lm.fingerprint}
    table = ScoreTable.load(path) if path.exists() else _empty(candidates(), items, size, facts)
    if (table.facts, table.inputs, len(table.temperatures)) != (facts, tuple(p.input for p in items), _depth(size)):
        raise TaskError(f"{path} is a table of another task, model or size: remove it to start anew")
    table.save(path)  # the prompts took minutes to find
    jobs = [job for job in _jobs(table, size) if (_cells(table, job) == MISSING).any()]
    asked, total, saved = 0, sum(len(job[1]) for job in jobs), time.monotonic()
    try:
        for job in jobs:
            _ask(table, job, task, lm, items)
            asked += len(job[1])
            progress(asked, total)
            if time.monotonic() - saved > SAVED_EVERY:
                table.save(path)
                saved = time.monotonic()
    finally:
        table.save(path)
    return table


Job = tuple[int, range, int]  # prompt, items, replicate


def _depth(size: TableSize) -> int:
    return 1 + (size.replicates if size.repeated else 0)


def _empty(candidates: SoftPromptSet, items: tuple[Pair, ...], size: TableSize, facts: dict[str, str]) -> ScoreTable:
    shape = (len(candidates.prompts), len(items), _depth(size))
    # Coordinates as the file keeps them, so that a table that is gone on with has the same numbers.
    X = None if candidates.X is None else candidates.X.astype(np.float16).astype(np.float64)
    return ScoreTable(
        replace(candidates, X=X),
        tuple(pair.input for pair in items),
        np.full(shape, MISSING, np.uint8),
        np.zeros(shape, np.uint64),
        (0.0, *[size.temperature] * (shape[2] - 1)),
        facts,
    )


def _jobs(table: ScoreTable, size: TableSize) -> Iterator[Job]:
    prompts, items, depth = table.percents.shape
    blocks = [range(start, min(start + size.block, items)) for start in range(0, items, size.block)]
    for block in blocks:
        for n in range(prompts):
            yield n, block, 0
    for n in np.unique(np.linspace(0, prompts - 1, min(size.repeated, prompts)).round().astype(int)).tolist():
        for r in range(1, depth):
            for block in blocks:
                yield n, block, r


def _cells(table: ScoreTable, job: Job) -> np.ndarray:
    n, block, r = job
    return table.percents[n, block.start : block.stop, r]


def _ask(table: ScoreTable, job: Job, task: Task, lm: LanguageModel, items: tuple[Pair, ...]) -> None:
    n, block, r = job
    prompt, pairs = table.candidates.prompts[n], items[block.start : block.stop]
    temperature = table.temperatures[r]
    requests = [
        task.render(prompt, pair, seed=integer(0, "table", n, i, r) if r else 0, temperature=temperature)
        for i, pair in zip(block, pairs, strict=True)
    ]
    answers = lm.complete(requests)
    for answer in answers:
        if isinstance(answer, LMError) and answer.systemic:
            raise answer
    texts = ["" if isinstance(answer, LMError) else answer.text for answer in answers]
    scored = task.scorer.score(texts, pairs)
    _cells(table, job)[:] = [round(100 * each.value) for each in scored]
    hashes = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") for text in texts]
    table.answers[n, block.start : block.stop, r] = np.array(hashes, np.uint64)
