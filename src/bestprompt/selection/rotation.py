"""In which order a candidate meets the common items.

Were the r-th evaluation of everybody item r, all candidates that were looked at once would have been looked at through
one item. Prompts that are alike answer one item alike, so their answers would agree without saying much about the
prompts, and a belief that lets neighbours speak for one another would trust them too far. So the items come in blocks,
and within a block each candidate begins at another place: candidate n meets

    b, b + 1, …, b + B − 1   rotated by n,   for the blocks b = 0, B, 2B, …

After B evaluations two candidates have met the same items, and any item of a block is met by many before it ends, so
its effect can still be told from theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from bestprompt.types import IntArray

BLOCK = 10
AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Rotation:
    """Orders of the replications, one per candidate.

    Attributes:
        block: Replications that are rotated together, B; 1 leaves them in their order.
        items: Number of items where it is known: they come again after so many, and no block reaches beyond.
    """

    block: int = 1
    items: int | None = None

    def order(self, candidate: int) -> Iterator[int]:
        """The replications of ``candidate``, first to last."""
        for start in count(0, AT_ONCE):
            yield from self._turned(np.arange(start, start + AT_ONCE), np.full(AT_ONCE, candidate)).tolist()

    def following(self, candidates: IntArray, replications: IntArray, n_candidates: int) -> IntArray:
        """(N,) the first replication in each candidate's order that is not among those (t,) it has met."""
        places = self._turned(replications, -candidates)
        by_candidate = np.lexsort((places, candidates))
        who, places = candidates[by_candidate], places[by_candidate]
        rank = np.arange(who.size) - np.searchsorted(who, who)
        # Sorted distinct places are their own ranks up to the first gap, and never again.
        met = np.bincount(who[places == rank], minlength=n_candidates)
        return self._turned(met, np.arange(n_candidates))

    def _turned(self, numbers: IntArray, by: IntArray) -> IntArray:
        """(t,) where ``numbers`` (t,) come to stand when every block is rotated ``by`` (t,)."""
        epoch = numbers - numbers % self.items if self.items else np.zeros_like(numbers)
        start = numbers - (numbers - epoch) % self.block
        size = np.minimum(self.block, epoch + self.items - start) if self.items else self.block
        return np.asarray(start + (numbers - start + by) % size, dtype=np.int64)


IN_ORDER = Rotation()
