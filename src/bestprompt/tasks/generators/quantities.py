"""Tasks about quantities: body mass, number words, counting."""

from __future__ import annotations

import numpy as np

from bestprompt.errors import TaskError
from bestprompt.rng import stream
from bestprompt.tasks.generators import facts
from bestprompt.types import Pair

_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def spell(number: int) -> str:
    """A whole number from 0 to 999,999 in English words: ``thirty-two``, ``one hundred and five``."""
    if not 0 <= number < 1_000_000:
        raise TaskError(f"{number} is outside 0 … 999,999")
    if number < 20:
        return _SMALL[number]
    if number < 100:
        tens, rest = divmod(number, 10)
        return _TENS[tens] + (f"-{_SMALL[rest]}" if rest else "")
    unit, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    count, rest = divmod(number, unit)
    joint = " and " if 0 < rest < 100 else " "
    return f"{spell(count)} {name}" + (joint + spell(rest) if rest else "")


def number_words(n: int = 500, *, low: int = 1, high: int = 999, seed: int = 0) -> tuple[Pair, ...]:
    """A number in digits; the same in words.

    Args:
        n: Number of pairs.
        low: Smallest number.
        high: Largest number.
        seed: Choice of the numbers.
    """
    if high - low + 1 < n:
        raise TaskError(f"number-words: there are not {n} different numbers from {low} to {high}")
    chosen = stream(seed, "order", "number-words").choice(np.arange(low, high + 1), size=n, replace=False)
    return tuple(Pair(str(number), (spell(int(number)),)) for number in chosen)


def counting_objects(
    n: int = 500, *, kinds: int = 2, most: int = 9, in_words: bool = True, seed: int = 0
) -> tuple[Pair, ...]:
    """A sentence listing things with their quantities; how many things there are.

    The total is larger than any number in the sentence, so copying one earns nothing.

    Args:
        n: Number of pairs.
        kinds: Different things in the sentence, at least 2.
        most: Largest quantity of one thing.
        in_words: Quantities as words (*two*, *a* for one) or digits.
        seed: Choice of things and quantities.
    """

    def draw(rng: np.random.Generator, _: int) -> Pair:
        things = [facts.objects()[i] for i in rng.choice(len(facts.objects()), size=kinds, replace=False)]
        counts = [int(count) for count in rng.integers(1, most, size=kinds, endpoint=True)]
        listed = [_some(count, thing, in_words) for count, thing in zip(counts, things, strict=True)]
        sentence = f"I have {', '.join(listed[:-1])} and {listed[-1]}."
        return Pair(sentence, (str(sum(counts)), spell(sum(counts))), {"counts": counts})

    return facts.distinct_pairs("counting-objects", n, seed, draw)


def _some(count: int, thing: tuple[str, str], in_words: bool) -> str:
    singular, plural = thing
    noun = singular if count == 1 else plural
    if not in_words:
        return f"{count} {noun}"
    article = "an" if singular[0] in "aeiou" else "a"
    return f"{article if count == 1 else spell(count)} {noun}"


def largest_animal(n: int = 500, *, options: int = 3, ratio: float = 10.0, seed: int = 0) -> tuple[Pair, ...]:
    """A list of animals; the largest of them, by body mass.

    Args:
        n: Number of pairs.
        options: Animals in the list.
        ratio: The largest weighs at least this many times as much as any other, so there is no doubt.
        seed: Choice of the animals.
    """
    masses = facts.animal_masses()
    names = list(masses)

    def draw(rng: np.random.Generator, index: int) -> Pair | None:
        chosen = [names[i] for i in rng.choice(len(names), size=options, replace=False)]
        largest = max(chosen, key=masses.__getitem__)
        others = [name for name in chosen if name != largest]
        if any(masses[largest] < ratio * masses[name] for name in others):
            return None
        if any(one != other and one in other for one in chosen for other in chosen):
            return None  # "bear" in "polar bear" would make an answer ambiguous
        listed = facts.place(largest, others, index % options)
        return Pair(", ".join(listed), (largest,), {"options": listed})

    return facts.distinct_pairs("largest-animal", n, seed, draw)
