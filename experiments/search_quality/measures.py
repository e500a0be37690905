"""What is counted as a good decode, and how the search stage's decodes are counted.

A *point* is an example's vector plus one step. Its decode is
  * ``used``: what ``default`` mode would take there, of the beam's readings that pass its filters and have a latent
    vector of their own the one that follows best from the examples; the likeliest reading if none passes;
  * ``greedy``: Dec(X') as the paper has it.
A decode counts when it is inside the box, *distinct* (its words differ from those of every example and of every earlier
decode), *whole* (``filters.looks_whole``), *fluent* (mean log-probability per token under the embedded model within
the corpus's own range, above its lowest fiftieth) and *on-task*: it names the task's objects and what to do with them,
and nothing that only other tasks have (``ON_TASK``). The last is a rough reader; ``reading.md`` has a reader's verdicts
on more than 100 of them.

How different the members of a set are is measured by ``variety``: first words, likeness, and how many are an example
with one word changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from other_tasks import ON_TASK as OTHERS_ON_TASK
from rapidfuzz.distance import Levenshtein

from bestprompt.latent import Autoencoder
from bestprompt.search import growth
from bestprompt.search.filters import Fluency, fluency_floor, looks_whole, plain, word_similarity, words
from bestprompt.types import BoolArray, FloatArray, IntArray

# From the lowest tenth of the corpus, where the search stage's floor lies, to its lowest fiftieth.
CORPUS_RANGE = 0.7
# Beginnings of words: one of each group must occur, none of the last, after the bar.
ON_TASK = {
    "word-sorting": "sort order alphabet arrang organi dictionary rank rewrite reverse first ascending"
    " & word list alphabet term name noun dictionary item letter a_to_z"
    " | animal sentence number digit rhym integer total",
    "first-letter": "letter initial start begin character spell abbreviat first"
    " & word letter initial character abbreviat noun verb name | second third last vowel many rhym animal middle end",
    "largest-animal": "animal creature beast species"
    " & larg big heav size weigh mass great rank compar pick choose select wins body | small light least number countr",
    "number-words": "number digit numeral figure quantity integer convert"
    " & word text english spell written writ pronounc say said string letter convert describe what explain translat"
    " transform"
    " | sum total add round sort larger even odd animal",
    "rhymes": "rhym sound ending ends pronunciation pronounc last_letters match similar belong alike compare"
    " & word rhym sound list option | number animal sentence many sort",
    "counting-objects": "count many total number sum add quantit amount"
    " & object item thing total quantit sum many product person mentioned list number"
    " | letter word animal even odd prime",
}  # fmt: skip


def on_its_task(text: str, task: str) -> bool:
    """Whether the task's words occur, and none of another task's."""
    lower = text.lower()

    def has(stems: str) -> bool:
        return any(re.search(rf"\b{stem.replace('_', ' ')}", lower) for stem in stems.split())

    groups, _, barred = (ON_TASK | OTHERS_ON_TASK)[task].partition("|")
    return all(map(has, groups.split("&"))) and not has(barred)


@dataclass(frozen=True)
class Yield:
    """Decodes of some points and which of them count.

    Attributes:
        texts: (k,) the decodes.
        table: (5, k) one row per requirement.
        taken: (k,) whether the search stage would put the decode into the set.
    """

    texts: list[str]
    table: BoolArray
    taken: BoolArray

    @property
    def good(self) -> BoolArray:
        """(k,) all requirements at once."""
        return np.asarray(self.table.all(axis=0))

    def cells(self) -> str:
        """Shares of the points, for a row of the report."""
        shares = [*self.table.mean(axis=1), self.good.mean()]
        return " | ".join(f"{share:.0%}" for share in shares)


def within_range(texts: Sequence[str], fluency: Fluency) -> BoolArray:
    """(k,) whether each text lies within the corpus's own range of fluency."""
    floors = np.array([fluency_floor(text) - CORPUS_RANGE for text in texts])
    return np.asarray(fluency([text or "." for text in texts]) >= floors)


def judge(
    texts: Sequence[str],
    examples: Sequence[str],
    inside: BoolArray,
    task: str,
    fluency: Fluency,
    taken: BoolArray | None = None,
) -> Yield:
    """Apply the five requirements."""
    distinct, seen = [], {plain(text) for text in examples}
    for text in texts:
        distinct.append(bool(plain(text)) and plain(text) not in seen)
        seen.add(plain(text))
    on_task = [on_its_task(text, task) for text in texts]
    whole, fluent = [looks_whole(text) for text in texts], within_range(texts, fluency)
    everything = np.ones(len(texts), bool) if taken is None else taken
    return Yield(list(texts), np.array([inside, distinct, whole, fluent, on_task]), everything)


@dataclass(frozen=True)
class Variety:
    """How different new candidates are from each other and from the examples.

    Attributes:
        first_words: Different first words among them.
        likeness: Mean of ``filters.word_similarity`` over all pairs.
        one_edit: Share that is an example with one word put in, left out or replaced, marks and case aside.
    """

    first_words: int
    likeness: float
    one_edit: float

    def cells(self) -> str:
        """For a row of the report."""
        return f"{self.first_words} | {self.likeness:.2f} | {self.one_edit:.0%}"


def variety(texts: Sequence[str], examples: Sequence[str]) -> Variety:
    """Measure new candidates against each other and the examples they come from."""
    starts, found = [words(text) for text in examples], [words(text) for text in texts]
    alike = [word_similarity(a, b) for a, b in combinations(texts, 2)]
    near = [min(Levenshtein.distance(each, start, score_cutoff=2) for start in starts) <= 1 for each in found]
    return Variety(len({each[0] for each in found if each}), float(np.mean(alike)), float(np.mean(near)))


@dataclass(frozen=True)
class Start:
    """A fine-tuned autoencoder and the examples it was tuned on."""

    autoencoder: Autoencoder
    examples: list[str]
    X: FloatArray
    state: growth.Growth

    @classmethod
    def of(cls, base: Autoencoder, examples: Sequence[str]) -> Start:
        """Tune ``base`` on ``examples``."""
        tuned = base.fine_tune(examples)
        state = growth.begin(tuned, examples, "default")
        return cls(tuned, list(examples), state.X, state)

    def default_points(self, parents: IntArray, step: float, rng: np.random.Generator) -> FloatArray:
        """(k, D~) one ``default`` step from each parent."""
        return self.X[parents] + step * growth.propose_steps(self.state, parents, rng)

    def used(self, moved: FloatArray, parents: IntArray, fluency: Fluency) -> tuple[list[str], BoolArray]:
        """(k,) what ``default`` mode takes at each point, else its likeliest reading; and whether it is taken."""
        readings = self.autoencoder.hypotheses(moved)
        chosen, _ = growth.choose_readings(readings, parents, self.state, growth.Rules("default", fluency))
        exact = growth.exact_vectors(self.autoencoder, moved, chosen)
        texts = [chosen[at] if at in exact else next(iter(found), "") for at, found in enumerate(readings)]
        return texts, np.array([at in exact for at in range(len(readings))])
