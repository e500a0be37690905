"""The facts behind the bundled tasks, read from small files in the package, and the loop all generators share."""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache
from importlib.resources import files

import numpy as np

from bestprompt.errors import TaskError
from bestprompt.rng import stream
from bestprompt.types import Pair

# A generator that cannot find new inputs after this many tries in a row has run out of them.
_PATIENCE = 1000


def _text(name: str) -> str:
    return (files("bestprompt.tasks") / "data" / name).read_text(encoding="utf-8")


def _rows(name: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(line.split()) for line in _text(name).splitlines() if line and not line.startswith("#"))


@cache
def words() -> tuple[str, ...]:
    """Common nouns, every letter but x."""
    return tuple(word for row in _rows("words.txt") for word in row)


@cache
def rhyme_families() -> tuple[tuple[str, ...], ...]:
    """Sets of words that rhyme with each other and with no word of another set."""
    return _rows("rhymes.txt")


@cache
def animal_masses() -> dict[str, float]:
    """Typical adult body mass in kilograms."""
    return {row["name"]: float(row["mass_kg"]) for row in csv.DictReader(_text("animals.csv").splitlines())}


@cache
def objects() -> tuple[tuple[str, str], ...]:
    """Everyday things: (singular, plural)."""
    return tuple((row["singular"], row["plural"]) for row in csv.DictReader(_text("objects.csv").splitlines()))


def distinct_pairs(
    task: str, n: int, seed: int, draw: Callable[[np.random.Generator, int], Pair | None]
) -> tuple[Pair, ...]:
    """``n`` pairs with distinct inputs.

    Args:
        task: Name, part of the random key.
        n: How many.
        seed: Root of the randomness.
        draw: Makes a pair from a generator and the index the pair will have; ``None`` when the draw did not work out.

    Raises:
        TaskError: There are not so many different inputs at this difficulty.
    """
    made: dict[str, Pair] = {}
    failures = 0
    rng = stream(seed, "generate", task)
    while len(made) < n:
        pair = draw(rng, len(made))
        if pair is None or pair.input in made:
            failures += 1
            if failures > _PATIENCE:
                raise TaskError(f"{task}: there are not {n} different inputs at this difficulty (found {len(made)})")
        else:
            failures = 0
            made[pair.input] = pair
    return tuple(made.values())


def place(answer: str, others: list[str], position: int) -> list[str]:
    """The options with the answer at ``position``."""
    return [*others[:position], answer, *others[position:]]
