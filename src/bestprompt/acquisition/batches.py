"""Batches of proposals by whatever maximiser a user names or hands in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np

from bestprompt.acquisition.maximize import Reinforce, batch_argmax
from bestprompt.acquisition.sampled_batch import PosteriorAt, one_by_one, sampled_batch
from bestprompt.choices import MAXIMIZERS, named_class
from bestprompt.errors import ConfigError
from bestprompt.types import Acquisition, FloatArray, IntArray, Maximizer, Posterior


@dataclass(frozen=True, slots=True)
class Field:
    """The candidates among which a batch is found.

    Attributes:
        everywhere: The posterior at all N candidates; found when asked for.
        at: The posterior at some of them.
        acquisition: What to maximise.
        counts: (N,) finished evaluations.
        noise: (N,) variance of one evaluation.
        step: t, finished evaluations in all.
        pending: (N,) evaluations under way.
    """

    everywhere: Callable[[], Posterior]
    at: PosteriorAt
    acquisition: Acquisition
    counts: IntArray
    noise: FloatArray
    step: int
    pending: IntArray


class BatchMaximizer(Protocol):
    """Finds batches."""

    def batch(self, field: Field, n: int, rng: np.random.Generator) -> IntArray:
        """(n,) candidates to evaluate; one may be proposed more than once."""
        ...


class MadeFromOptions(Protocol):
    """What the table of maximisers holds: classes that make themselves."""

    @classmethod
    def of(cls, options: Mapping[str, object], paper: bool) -> BatchMaximizer:
        """With these options, in the paper's form or in ours."""
        ...


@dataclass(frozen=True, slots=True)
class Exhaustive:
    """Looks at all candidates."""

    @classmethod
    def of(cls, options: Mapping[str, object], paper: bool) -> Exhaustive:
        """It has no options."""
        return cls()

    def batch(self, field: Field, n: int, rng: np.random.Generator) -> IntArray:
        """The best, then the best once that is under way, and so on."""
        f = field
        return batch_argmax(f.everywhere(), f.acquisition, f.counts, f.noise, f.step, n, rng, f.pending)


@dataclass(frozen=True, slots=True)
class Sampled:
    """PR-M-UCB: looks only where it samples."""

    search: Reinforce

    @classmethod
    def of(cls, options: Mapping[str, object], paper: bool) -> Sampled:
        """With fields of :class:`bestprompt.acquisition.maximize.Reinforce` as options."""
        search = Reinforce.paper() if paper else Reinforce()
        allowed = [field.name for field in fields(search)]
        if unknown := sorted(set(options) - set(allowed)):
            raise ConfigError(f"maximizer reinforce has no option {unknown[0]!r}: choose from {', '.join(allowed)}")
        given: dict[str, Any] = dict(options)
        return cls(replace(search, **given))

    def batch(self, field: Field, n: int, rng: np.random.Generator) -> IntArray:
        """One search serves the whole batch, or one each where the answer is a draw."""
        f = field
        return sampled_batch(self.search, f.at, f.acquisition, f.counts, f.noise, f.step, n, rng, f.pending)


@dataclass(frozen=True, slots=True)
class OneByOne:
    """Any maximiser: a search for each proposal."""

    search: Maximizer

    def batch(self, field: Field, n: int, rng: np.random.Generator) -> IntArray:
        """Each search counts the proposals before it."""
        f = field
        return one_by_one(self.search, f.at, f.acquisition, f.counts, f.noise, f.step, n, rng, f.pending)


def make_maximizer(part: str | Maximizer, options: Mapping[str, object], paper: bool = False) -> BatchMaximizer:
    """The maximiser of that name with these options; an object is used as it is.

    Raises:
        ConfigError: Unknown name or option.
    """
    if not isinstance(part, str):
        return OneByOne(part)
    kind: type[MadeFromOptions] = named_class("maximizer", MAXIMIZERS, part)
    return kind.of(options, paper)
