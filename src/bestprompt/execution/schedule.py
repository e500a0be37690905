"""Which pair and which sampling seed the r-th evaluation of a candidate uses.

``common``: the r-th evaluation of every candidate meets the same pair with the same seed, so comparisons are paired,
and no pair is met twice before all were met once. Which replication is which item is the rotation's matter
(:mod:`bestprompt.selection.core.rotation`); item i is the i-th pair of one permutation.
``independent``: the paper's law, m drawn uniformly for each evaluation.

Some evaluations may ask an earlier pair of the same candidate once more, with another sampling seed
(``Rotation.repeat_every``): what then differs is the model's own randomness, which nothing else can tell from the
interaction of prompt and item (:mod:`bestprompt.selection.belief.variance_split`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bestprompt.choices import Pairs, Repeats
from bestprompt.errors import ConfigError
from bestprompt.rng import integer, stream
from bestprompt.selection.core.rotation import Rotation
from bestprompt.types import IntArray, Proposal

# Replications from here on are the last look at pairs that nothing was chosen on.
HELD_OUT = 10**9


@dataclass(frozen=True, slots=True)
class Schedule:
    """Maps a proposal to (pair index, sampling seed), by seed and mode only.

    Attributes:
        n_pairs: M, the number of pairs to draw from; those held out come after them.
        seed: The run's seed.
        pairs: ``"common"`` or ``"independent"``.
        repeat_every: Of so many evaluations the last asks the pair of the first again; 0 for never.
        repeats: What the run takes evaluations after the M-th for; ``"new-item"`` draws a new permutation each time.
    """

    n_pairs: int
    seed: int
    pairs: Pairs = "common"
    repeat_every: int = 0
    repeats: Repeats = "same-item"

    def __post_init__(self) -> None:
        if self.repeat_every == 1 or self.repeat_every < 0:
            raise ConfigError(f"repeat_every must be 0 or at least 2, not {self.repeat_every}")

    def pair(self, proposal: Proposal) -> int:
        """Index of the pair: in [0, M), or behind them if it was held out."""
        if proposal.replication >= HELD_OUT:
            return self.n_pairs + proposal.replication - HELD_OUT
        if self.pairs == "independent":
            first = self._first(proposal.replication)
            return int(stream(self.seed, "pair", proposal.candidate, first).integers(self.n_pairs))
        if self.repeats == "new-item":
            epoch, position = divmod(self._without_repetitions(proposal.replication), self.n_pairs)
        else:
            rotation = Rotation(1, self.n_pairs, self.repeats, self.repeat_every)
            epoch, position = 0, int(rotation.item(np.array([proposal.replication]))[0])
        return int(_permutation(self.seed, epoch, self.n_pairs)[position])

    def sampling_seed(self, proposal: Proposal) -> int:
        """The seed that the language model samples with."""
        if self.pairs == "independent":
            return integer(self.seed, "sampling", proposal.candidate, proposal.replication)
        return integer(self.seed, "sampling", proposal.replication)

    def _first(self, replication: int) -> int:
        """The replication whose pair this one meets: itself, unless it is a repetition."""
        again = self.repeat_every and replication % self.repeat_every == self.repeat_every - 1
        return replication - self.repeat_every + 1 if again else replication

    def _without_repetitions(self, replication: int) -> int:
        first = self._first(replication)
        return first - first // self.repeat_every if self.repeat_every else first


@lru_cache(64)
def _permutation(seed: int, epoch: int, n_pairs: int) -> IntArray:
    return stream(seed, "pair", epoch).permutation(n_pairs)
