"""What a number of items can show at all, however many calls are spent on them.

Notation (symbol → name):
    M        items at hand                                             → ``items``
    σ_d²     variance, over items, of the difference of two candidates' mean scores on an item → ``spread`` squared
    δ_M      smallest difference whose sign M items show with probability p: z_p σ_d / √M      → ``Reach.difference``
    M*       items that would show the difference of the two best: (z_p σ_d / gap)²            → ``Reach.needed``

An item's difficulty is the same for both candidates and cancels; what does not is how well each candidate suits the
item. Repeating a question says nothing about that.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

from scipy.stats import norm

PROBABILITY = 0.9
MOST_ITEMS = 10_000  # more than this is no advice


@dataclass(frozen=True, slots=True)
class Reach:
    """What the items at hand can show.

    Attributes:
        items: How many there are.
        difference: Smallest difference in mean score they put in the right order with probability 0.9.
        needed: Items needed to put the two best candidates in the right order as surely; ``None`` where that is more
            than ten thousand, or where there is no other candidate.
    """

    items: int
    difference: float
    needed: int | None

    @property
    def sentence(self) -> str:
        """The same in words."""
        text = f"{self.items} pairs cannot show differences below {in_points(self.difference)}, whatever is spent."
        if self.needed is None:
            return text
        if self.needed <= self.items:
            return f"{text} That is enough to tell the two best apart."
        return f"{text} To tell the two best apart, some {_rounded(self.needed)} pairs would be needed."


def reach(items: int, spread: float, gap: float | None = None) -> Reach:
    """What ``items`` items can show where differences vary by ``spread``; ``gap`` is that of the two best."""
    z = float(norm.ppf(PROBABILITY))
    needed = None if gap is None or gap <= 0.0 else ceil((z * spread / gap) ** 2)
    return Reach(items, z * spread / sqrt(items), needed if needed is not None and needed <= MOST_ITEMS else None)


def in_points(difference: float) -> str:
    """A difference of scores as people say it."""
    points = round(100.0 * difference)
    return f"{points} point{'' if points == 1 else 's'}"


def _rounded(number: int) -> int:
    """Two significant digits: the rest is not known."""
    return int(float(f"{number:.2g}"))
