"""In which order a candidate meets the common items.

If the r-th evaluation of every candidate were item r, all candidates with one evaluation would have met the same single
item. Prompts that are alike answer one item alike, so their answers would agree without saying much about the
prompts, and a belief that lets neighbours speak for one another would trust them too far. So the items come in blocks,
and within a block each candidate begins at another place: candidate n meets

    b, b + 1, …, b + B − 1   rotated by n,   for the blocks b = 0, B, 2B, …

After B evaluations two candidates have met the same items, and any item of a block is met by many before it ends, so
its effect can still be told from theirs.

Where there are M items and no more, what comes after the M-th replication is a repetition: the item of replication r is
r mod M. Whether it may be asked for, and what it then says, is a matter of ``repeats``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import count, islice

import numpy as np

from bestprompt.choices import Repeats
from bestprompt.types import FloatArray, IntArray

BLOCK = 10
AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Rotation:
    """Orders of the replications, one per candidate.

    Attributes:
        block: Replications that are rotated together, B; 1 leaves them in their order.
        items: Number of items, M, where it is known: no block reaches beyond.
        repeats: What a replication after the M-th is: there is none (``"never"``), another answer on an item that was
            met before (``"same-item"``), or one that counts as a further item (``"new-item"``).
        repeat_every: Of so many replications the last asks the item of the first again; 0 for never.
        telling: Whether candidates are asked what tells most about them, and keep to this order only where nothing does
            (:mod:`bestprompt.selection.strategies.next_item`).
        barred: (candidate, items) for candidates that must not be judged by some items, because these had a part in
            making them.
    """

    block: int = 1
    items: int | None = None
    repeats: Repeats = "new-item"
    repeat_every: int = 0
    telling: bool = False
    barred: tuple[tuple[int, frozenset[int]], ...] = ()

    def barring(self, candidate: int, items: frozenset[int]) -> Rotation:
        """The same, but ``candidate`` never meets ``items``."""
        return replace(self, barred=(*self.barred, (candidate, items))) if items else self

    def closed_to(self, candidate: int) -> frozenset[int]:
        """The items that ``candidate`` must not meet."""
        return next((items for who, items in self.barred if who == candidate), frozenset())

    @property
    def most(self) -> float:
        """Evaluations a candidate can have."""
        return float(self.items) if self.items is not None and self.repeats == "never" else np.inf

    def left(self, counts: IntArray) -> FloatArray:
        """(N,) evaluations that candidates with ``counts`` (N,) of them can still have."""
        most = np.full(counts.size, self.most)
        for candidate, items in self.barred:
            most[candidate] -= len(items)
        return np.asarray(np.maximum(most - counts, 0.0))

    def item(self, replications: IntArray) -> IntArray:
        """(t,) the items of these replications."""
        if self.items is None or self.repeats == "new-item":
            return replications
        if self.repeat_every:
            blocks, place = np.divmod(replications, self.repeat_every)
            replications = blocks * (self.repeat_every - 1) + place % (self.repeat_every - 1)
        return replications % self.items

    def order(self, candidate: int) -> Iterator[int]:
        """The replications of ``candidate``, first to last."""
        closed = self.closed_to(candidate)
        for start in count(0, AT_ONCE):
            numbers = np.arange(start, min(start + AT_ONCE, self.most), dtype=np.int64)
            if numbers.size == 0:
                return
            turned = self._turned(numbers, np.full(numbers.size, candidate))
            open_ones = zip(turned.tolist(), self.item(turned).tolist(), strict=True)
            yield from (number for number, item in open_ones if item not in closed)

    def shared(self, one: int, other: int, most: int) -> list[int]:
        """The first replications, ``most`` of them at most, that both candidates may have."""
        closed = self.closed_to(one) | self.closed_to(other)
        numbers = range(int(self.most)) if np.isfinite(self.most) else count()
        return list(islice((r for r in numbers if int(self.item(np.array([r]))[0]) not in closed), most))

    def first_unmet(self, candidate: int, met: Collection[int]) -> int | None:
        """The first replication in the order of ``candidate`` that is not among the ``met``; none if it has met all."""
        if self.closed_to(candidate):
            return next((r for r in self.order(candidate) if r not in met), None)
        numbers = np.fromiter(met, dtype=np.int64, count=len(met))
        places = np.sort(self._turned(numbers, np.full(numbers.size, -candidate)))
        # Sorted distinct places are their own ranks up to the first gap.
        place = np.count_nonzero(np.logical_and.accumulate(places == np.arange(places.size)))
        if place >= self.most:
            return None
        return int(self._turned(np.array([place]), np.array([candidate]))[0])

    def following(self, candidates: IntArray, replications: IntArray, n_candidates: int) -> IntArray:
        """(N,) the first replication in each candidate's order that is not among those (t,) it has met."""
        places = self._turned(replications, -candidates)
        beyond = int(places.max(initial=0)) + 1
        # One sort of numbers: candidate first, then place.
        who, places = np.divmod(np.sort(candidates * beyond + places), beyond)
        rank = np.arange(who.size) - np.searchsorted(who, who)
        # Sorted distinct places are their own ranks up to the first gap, and never again.
        met = np.bincount(who[places == rank], minlength=n_candidates)
        found = self._turned(met, np.arange(n_candidates))
        for candidate, _ in self.barred:
            following = self.first_unmet(candidate, set(replications[candidates == candidate].tolist()))
            # One that has met all it may has nothing to follow; ``left`` says so, and any number will do.
            found[candidate] = found[candidate] if following is None else following
        return found

    def _turned(self, numbers: IntArray, by: IntArray) -> IntArray:
        """(t,) where ``numbers`` (t,) come to stand when every block is rotated ``by`` (t,)."""
        epoch = numbers - numbers % self.items if self.items else np.zeros_like(numbers)
        start = numbers - (numbers - epoch) % self.block
        size = np.minimum(self.block, epoch + self.items - start) if self.items else self.block
        return np.asarray(start + (numbers - start + by) % size, dtype=np.int64)


IN_ORDER = Rotation()
