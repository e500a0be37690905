"""Which pair and which sampling seed the r-th evaluation of a candidate uses.

``common``: the r-th evaluation of every candidate meets the same pair with the same seed, so comparisons are paired;
each run through the M pairs is a fresh permutation, so no pair is met twice before all were met once.
``independent``: the paper's law, m drawn uniformly for each evaluation.

``repeat_items`` sets a share of the evaluations aside for asking an earlier pair of the same candidate once more, with
another sampling seed: what then differs is the model's own randomness, which nothing else can tell from the
interaction of prompt and item (:mod:`bestprompt.selection.variance_split`). Of each block of k = round(1/share)
evaluations the last meets the pair of the first. Of no use at temperature 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bestprompt.errors import ConfigError
from bestprompt.rng import integer, stream
from bestprompt.types import Proposal


@dataclass(frozen=True, slots=True)
class Schedule:
    """Maps a proposal to (pair index, sampling seed), by seed and mode only.

    Attributes:
        n_pairs: M, the number of pairs to draw from.
        seed: The run's seed.
        pairs: ``"common"`` or ``"independent"``.
        repeat_items: Share of evaluations that ask an earlier pair again, at most ½; 0 for none.
    """

    n_pairs: int
    seed: int
    pairs: Literal["common", "independent"] = "common"
    repeat_items: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.repeat_items <= 0.5:
            raise ConfigError(f"repeat_items must lie between 0 and 0.5, not {self.repeat_items:g}")

    def first(self, replication: int) -> int:
        """The replication whose pair this one meets: itself, unless it is a repetition."""
        if self.repeat_items == 0.0:
            return replication
        block = round(1.0 / self.repeat_items)
        return replication - block + 1 if replication % block == block - 1 else replication

    def pair(self, proposal: Proposal) -> int:
        """Index of the pair, in [0, M)."""
        replication = self.first(proposal.replication)
        if self.pairs == "independent":
            return int(stream(self.seed, "pair", proposal.candidate, replication).integers(self.n_pairs))
        if self.repeat_items > 0.0:  # repetitions use up no pair
            replication -= replication // round(1.0 / self.repeat_items)
        epoch, position = divmod(replication, self.n_pairs)
        return int(stream(self.seed, "pair", epoch).permutation(self.n_pairs)[position])

    def sampling_seed(self, proposal: Proposal) -> int:
        """The seed that the language model samples with."""
        if self.pairs == "independent":
            return integer(self.seed, "sampling", proposal.candidate, proposal.replication)
        return integer(self.seed, "sampling", proposal.replication)
