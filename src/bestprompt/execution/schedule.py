"""Which pair and which sampling seed the r-th evaluation of a candidate uses.

``common``: the r-th evaluation of every candidate meets the same pair with the same seed, so comparisons are paired;
each run through the M pairs is a fresh permutation, so no pair is met twice before all were met once.
``independent``: the paper's law, m drawn uniformly for each evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bestprompt.rng import integer, stream
from bestprompt.types import Proposal


@dataclass(frozen=True, slots=True)
class Schedule:
    """Maps a proposal to (pair index, sampling seed), by seed and mode only.

    Attributes:
        n_pairs: M, the number of pairs to draw from.
        seed: The run's seed.
        pairs: ``"common"`` or ``"independent"``.
    """

    n_pairs: int
    seed: int
    pairs: Literal["common", "independent"] = "common"

    def pair(self, proposal: Proposal) -> int:
        """Index of the pair, in [0, M)."""
        if self.pairs == "independent":
            return int(stream(self.seed, "pair", proposal.candidate, proposal.replication).integers(self.n_pairs))
        epoch, position = divmod(proposal.replication, self.n_pairs)
        return int(stream(self.seed, "pair", epoch).permutation(self.n_pairs)[position])

    def sampling_seed(self, proposal: Proposal) -> int:
        """The seed that the language model samples with."""
        if self.pairs == "independent":
            return integer(self.seed, "sampling", proposal.candidate, proposal.replication)
        return integer(self.seed, "sampling", proposal.replication)
