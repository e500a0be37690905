"""The language model's word on a reading: how much likelier it is than what a set of prompts must be.

Notation (symbol → name):
    q(y | c)   mean log-probability per token of text y after context c, under the embedded model
    E          the example prompts, one a line                                  → ``context``
    f          median_k q(e_k | e_1 … e_{k−1}) + ``MARGIN``, k in the second half, at most ``CEILING`` → ``floor``
    m(y)       q(y | E) − f                                                     → ``ContextFluency.margins``

A text that follows from the examples is fluent and about the same thing at once; the model is told nothing else about
the task. The floor is measured on the examples themselves, so it fits any model and language. With too few examples, or
a model that takes no context, m(y) = q(y) − the lowest tenth of the corpus for texts of that length (``filters.py``).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from bestprompt.search.filters import Fluency, fluency_floor, fluency_level
from bestprompt.types import FloatArray

FEWEST, MOST, MOST_CHARACTERS = 4, 12, 800  # examples that make a context, and its length
# Chosen by a reader's verdicts on 180 candidates of the tasks in ``experiments/search_quality/tasks/tuning``: one step
# from an example most words are the example's, so a good reading is much likelier than a new example would be. Of
# those above -1.7 the reader accepted 78 %, of all that an earlier floor (0.6, -2.1) let through 49 %.
MARGIN = 1.6
CEILING = -1.8  # of the floor: examples that nearly foretell each other must not shut out everything else
ENOUGH = 0.5  # a reading this far above the floor is taken without asking about the point's others


@dataclass
class ContextFluency:
    """Judges texts after a context; remembers its answers, because neighbouring points share readings."""

    fluency: Fluency
    context: str
    floor: float
    _known: dict[str, float] = field(default_factory=dict, repr=False)

    @property
    def enough(self) -> float:
        """The margin at which a reading is good enough to ask no further."""
        return ENOUGH if self.context else 0.0

    def margins(self, texts: Sequence[str]) -> FloatArray:
        """(n,) how far each text lies above the floor; a negative one is refused."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._known]
        if fresh:
            self._known.update(zip(fresh, self._measured(fresh).tolist(), strict=True))
        return np.array([self._known[text] for text in texts])

    def _measured(self, texts: list[str]) -> FloatArray:
        if self.context:
            return np.asarray(_after(self.fluency, texts, [self.context] * len(texts)) - self.floor)
        floors = self.floor + np.array([fluency_floor(text) for text in texts])
        return np.asarray(self.fluency(texts) - floors)


@lru_cache(maxsize=8)
def context_fluency(fluency: Fluency, examples: tuple[str, ...]) -> ContextFluency:
    """What the model behind ``fluency`` has to say about texts like ``examples``."""
    lines = [line for k, line in enumerate(examples[:MOST]) if len(_joined(examples[: k + 1])) <= MOST_CHARACTERS]
    if len(lines) < FEWEST or "contexts" not in inspect.signature(fluency).parameters:
        return ContextFluency(fluency, "", fluency_level(fluency))
    later = range((len(lines) + 1) // 2, len(lines))
    values = _after(fluency, [lines[k] for k in later], [_joined(lines[:k]) for k in later])
    return ContextFluency(fluency, _joined(lines), min(float(np.median(values)) + MARGIN, CEILING))


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _after(fluency: Fluency, texts: Sequence[str], contexts: Sequence[str]) -> FloatArray:
    # The line break belongs to the text: a sentence that is not over yet is unlikely to end there.
    return np.asarray(fluency([f"{text}\n" for text in texts], contexts=contexts))  # type: ignore[call-arg]
