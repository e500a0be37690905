"""``ReplayTask``: a score table as a task with a language model, whose best prompt is known.

>>> replay = bp.ReplayTask.load("experiments/tables/counting-objects-smollm2.npz")
>>> rec = bp.optimize(replay.task, replay.lm, candidates=replay.candidates, budget=300)
>>> replay.truth.max() - replay.worth(rec.prompt)        # the regret

The model answers with the score that the table has for the question, the task's score reads it. ``space`` stands in for
the text autoencoder: vectors of the table's prompts are known, and any other vector means the prompt nearest to it, so
refinement and direct search run on a table too, over all of its prompts instead of all texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from bestprompt.errors import LMError, TaskError
from bestprompt.kriging.kernels import squared_distances
from bestprompt.latent import SoftSpace, TextAutoencoder, TuningProgress
from bestprompt.lm.function import FunctionModel
from bestprompt.replay.table import MISSING, ScoreTable
from bestprompt.rng import stream
from bestprompt.scoring import FunctionScorer
from bestprompt.tasks import Task
from bestprompt.types import FloatArray, Pair, Request, SoftPromptSet


def _stored_score(output: str, _pair: Pair) -> float:
    return float(output)


@dataclass(frozen=True)
class ReplayTask:
    """A table ready to be run on.

    Attributes:
        name: Of the table.
        table: The scores; every prompt has met every item.
        candidates: The prompts a run chooses among: all of the table's, or some (:meth:`sample`).
    """

    name: str
    table: ScoreTable
    candidates: SoftPromptSet

    @classmethod
    def load(cls, path: str | Path) -> ReplayTask:
        """The table in a file, also one that is still being made: items that some prompt has not met are left out.

        Raises:
            TaskError: There is no such file, it holds no score table, or no item was met by every prompt.
        """
        table = ScoreTable.load(path).complete()
        if not table.inputs:
            raise TaskError(f"{path}: there is no item yet that every prompt has met")
        return cls(Path(path).stem, table, table.candidates)

    @cached_property
    def truth(self) -> FloatArray:
        """(N,) mean scores of ``candidates`` over all items at the first temperature."""
        return np.array([self.worth(prompt) for prompt in self.candidates.prompts])

    def worth(self, prompt: str) -> float:
        """The mean score of a prompt of the table over all items."""
        return float(self.table.percents[self._row(prompt), :, 0].mean() / 100.0)

    @cached_property
    def task(self) -> Task:
        """The table's items, with the prompts that were examples as examples."""
        pairs = [Pair(text, ("1.00",)) for text in self.table.inputs]
        known = zip(self.candidates.prompts, self.candidates.sources, strict=True)
        examples = [prompt for prompt, source in known if source == "example"]
        scorer = FunctionScorer(_stored_score, name="stored")
        return Task.from_pairs(pairs, examples, scorer=scorer, name=self.name, description=f"Replayed: {self.name}.")

    @cached_property
    def lm(self) -> FunctionModel:
        """Answers every question of :attr:`task` with its stored score; above temperature 0 a replicate by the seed."""
        asked = {
            self.task.render(prompt, pair).messages[-1].content: (row, item)
            for row, prompt in enumerate(self.table.candidates.prompts)
            for item, pair in enumerate(self.task.pairs)
        }

        def answer(request: Request) -> str:
            cell = asked.get(request.messages[-1].content)
            if cell is None:
                raise LMError(f"the table {self.name} does not hold this question", retryable=False, systemic=True)
            drawn = self.table.percents[cell]
            drawn = drawn[drawn != MISSING]
            return f"{drawn[request.seed % drawn.size if request.temperature > 0 else 0] / 100:.2f}"

        return FunctionModel(
            answer, name=f"table {self.name}", concurrency=1, deterministic=len(self.table.temperatures) == 1
        )

    def score(self, seed: int = 0, pairs: str = "independent") -> Callable[[int, int], float]:
        """``score(candidate, replication)`` for :func:`bestprompt.select`.

        ``"common"`` goes through the items in an order that ``seed`` decides, ``"independent"`` draws one each time.
        """
        rows = [self._row(prompt) for prompt in self.candidates.prompts]
        items = len(self.table.inputs)
        order = stream(seed, "items").permutation(items)

        def observed(candidate: int, replication: int) -> float:
            if pairs == "common":
                item = order[replication % items]
            else:
                item = stream(seed, "item", candidate, replication).integers(items)
            return float(self.table.percents[rows[candidate], item, 0] / 100.0)

        return observed

    def sample(self, n: int, seed: int = 0, examples: bool = False) -> ReplayTask:
        """The same table with ``n`` of its prompts, drawn at random, as the candidates.

        Args:
            n: How many.
            seed: Decides which.
            examples: Whether the examples are among them for certain.
        """
        whole = self.table.candidates
        if not 1 <= n <= len(whole.prompts):
            raise TaskError(f"the table {self.name} has {len(whole.prompts)} prompts, {n} were asked for")
        order = stream(seed, "prompts", n).permutation(len(whole.prompts))
        if examples:
            order = np.array(sorted(order.tolist(), key=lambda row: whole.sources[row] != "example"))
        return self.only(np.sort(order[:n]).tolist())

    def only(self, rows: Sequence[int]) -> ReplayTask:
        """The same table with the prompts ``rows`` as the candidates, and a projection of their own."""
        whole, kept = self.table.candidates, list(rows)
        X = None if whole.X is None else whole.X[kept]
        Z = whole.Z[kept] if X is None else SoftSpace.fit(X, whole.Z.shape[1]).to_soft(X)
        sources = tuple(whole.sources[row] for row in kept)
        prompts = tuple(whole.prompts[row] for row in kept)
        places = {row: place for place, row in enumerate(kept)}
        parents = np.array([places.get(int(whole.parents[row]), -1) for row in kept], dtype=np.int64)
        return replace(self, candidates=SoftPromptSet(prompts, Z, X, parents, sources))

    @cached_property
    def space(self) -> TextAutoencoder:
        """The autoencoder's stand-in.

        Raises:
            TaskError: The table has no latent vectors.
        """
        if self.table.candidates.X is None:
            raise TaskError(f"the table {self.name} has no latent vectors")
        return TableSpace(self.table.candidates.prompts, self.table.candidates.X)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {prompt: row for row, prompt in enumerate(self.table.candidates.prompts)}

    def _row(self, prompt: str) -> int:
        if prompt not in self._rows:
            raise TaskError(f"the table {self.name} does not hold the prompt {prompt[:60]!r}")
        return self._rows[prompt]


@dataclass(frozen=True)
class TableSpace:
    """Latent vectors ↔ the prompts of a table; a vector that is none of theirs means the nearest prompt.

    Attributes:
        prompts: (P,)
        X: (P, D~)
    """

    prompts: tuple[str, ...]
    X: FloatArray
    max_tokens: int = 10**6

    @property
    def latent_dim(self) -> int:
        """D~."""
        return int(self.X.shape[1])

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """(n, D~) latent vectors of prompts of the table."""
        return self.X[[self.prompts.index(text) for text in texts]]

    def decode(self, X: FloatArray) -> list[str]:
        """The prompt nearest to each row of ``X`` (n, D~)."""
        return [texts[0] for texts in self.hypotheses(X)]

    def hypotheses(self, X: FloatArray) -> list[list[str]]:
        """The three nearest prompts of each row."""
        nearest = np.argsort(squared_distances(X, self.X), axis=1, kind="stable")[:, :3]
        return [[self.prompts[i] for i in row] for row in nearest.tolist()]

    def paraphrases(self) -> tuple[FloatArray, FloatArray]:
        """(0, D~) twice: there is no corpus."""
        return self.X[:0], self.X[:0]

    def fits(self, text: str) -> bool:
        """Whether the table holds it."""
        return text in self.prompts

    def fine_tune(self, texts: Sequence[str], progress: TuningProgress | None = None) -> TableSpace:
        """Itself: every prompt is given back exactly as it is."""
        return self
