"""Tasks about words: the first letter, sorting, rhymes."""

from __future__ import annotations

import numpy as np

from bestprompt.errors import TaskError
from bestprompt.rng import stream
from bestprompt.tasks.generators import facts
from bestprompt.types import Pair


def first_letter(n: int = 500, *, min_length: int = 3, max_length: int = 12, seed: int = 0) -> tuple[Pair, ...]:
    """A word; its first letter.

    Args:
        n: Number of pairs.
        min_length: Shortest word.
        max_length: Longest word.
        seed: Order and choice of the words.
    """
    fitting = [word for word in facts.words() if min_length <= len(word) <= max_length]
    order = iter(stream(seed, "order", "first-letter").permutation(len(fitting)))

    def draw(_: np.random.Generator, __: int) -> Pair | None:
        index = next(order, None)
        return None if index is None else Pair(fitting[index], (fitting[index][0],))

    return facts.distinct_pairs("first-letter", n, seed, draw)


def word_sorting(n: int = 500, *, length: int = 4, distinct_initials: bool = True, seed: int = 0) -> tuple[Pair, ...]:
    """A list of words; the same words in alphabetical order.

    Neither the input nor its reverse has more than one word where it belongs, so that copying earns nothing.

    Args:
        n: Number of pairs.
        length: Words in a list, at least 3.
        distinct_initials: Whether the first letters all differ, which is easier.
        seed: Choice of the words.
    """
    if length < 3:
        raise TaskError(f"word-sorting: length = {length} must be at least 3, or copying backwards would be right")
    words = facts.words()

    def draw(rng: np.random.Generator, _: int) -> Pair | None:
        chosen = [words[index] for index in rng.choice(len(words), size=length, replace=False)]
        in_order = sorted(chosen)
        if distinct_initials and len({word[0] for word in chosen}) < length:
            return None
        if any(sum(map(str.__eq__, copied, in_order)) > 1 for copied in (chosen, chosen[::-1])):
            return None
        return Pair(", ".join(chosen), (" ".join(in_order),), {"options": in_order})

    return facts.distinct_pairs("word-sorting", n, seed, draw)


def rhymes(n: int = 500, *, options: int = 4, same_spelling: bool = True, seed: int = 0) -> tuple[Pair, ...]:
    """A word and a list of words; the one of the list that rhymes with it.

    Args:
        n: Number of pairs.
        options: Words in the list, one of which rhymes.
        same_spelling: Whether the rhyming word also ends in the same two letters, which is easier.
        seed: Choice of the words.
    """
    families = facts.rhyme_families()

    def draw(rng: np.random.Generator, index: int) -> Pair | None:
        family, *others = rng.choice(len(families), size=options, replace=False)
        word, answer = (str(word) for word in rng.choice(families[family], size=2, replace=False))
        wrong = [str(rng.choice(families[other])) for other in others]
        if same_spelling and word[-2:] != answer[-2:]:
            return None
        if same_spelling and any(word[-2:] == other[-2:] for other in wrong):
            return None
        listed = facts.place(answer, wrong, index % options)
        return Pair(f"Word: {word}\nList: {', '.join(listed)}", (answer,), {"options": listed, "word": word})

    return facts.distinct_pairs("rhymes", n, seed, draw)
