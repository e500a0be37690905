"""Tasks of our own that the package does not hold: small tables, right answers, scores that cannot be gamed by echoing.

Each function returns all its pairs in an order that is drawn once. The example prompts stand in ``prompts/``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bestprompt.rng import stream
from bestprompt.tasks import Task
from bestprompt.tasks.generators.facts import animal_masses
from bestprompt.types import Pair

HERE = Path(__file__).parent
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MOVED = (
    "The {what} planned for {old} will now be on {new}.",
    "Please note that the {what} is on {new} and no longer on {old}.",
    "We have moved the {what} from {old} to {new}.",
    "The {what} cannot be held on {old}; come on {new} instead.",
)
EVENTS = ("meeting", "exam", "concert", "dinner", "match", "lesson", "party", "interview")
FACTORS = (("kilometres", "metres", 1000), ("hours", "minutes", 60), ("weeks", "days", 7), ("minutes", "seconds", 60),
           ("metres", "centimetres", 100), ("days", "hours", 24), ("dozens", "pieces", 12), ("years", "months", 12),
           ("kilograms", "grams", 1000))  # fmt: skip


def _lines(name: str) -> list[str]:
    return (HERE / "tables" / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def sentiment() -> Iterable[Pair]:
    """A short review; positive or negative."""
    parts = {key: text.split("; ") for key, text in (line.split(": ", 1) for line in _lines("sentiment"))}
    for label in ("positive", "negative"):
        for subject in parts["subject"]:
            for opinion in parts[label]:
                yield Pair(f"{subject} {opinion}.", (label,))


def language() -> Iterable[Pair]:
    """A sentence; the language it is in."""
    for line in _lines("language"):
        name, subjects, predicates = line.split(" | ")
        for subject in subjects.split("; "):
            for predicate in predicates.split("; "):
                yield Pair(f"{subject[0].upper()}{subject[1:]} {predicate}.", (name,))


def category() -> Iterable[Pair]:
    """A thing; what kind of thing it is."""
    for line in _lines("category"):
        kind, things = line.split(": ")
        yield from (Pair(thing, (kind,)) for thing in things.split())


def antonym() -> Iterable[Pair]:
    """A word; its opposite."""
    for line in _lines("antonym"):
        one, other = line.split()
        yield from (Pair(one, (other,)), Pair(other, (one,)))


def plural() -> Iterable[Pair]:
    """A noun; its plural."""
    for line in _lines("plural"):
        one, many = line.split()
        yield Pair(one, (many,))


def moved_day() -> Iterable[Pair]:
    """A message that moves something to another day; the new day."""
    rng = stream(0, "moved-day")
    for event in EVENTS:
        for sentence in MOVED:
            for old in DAYS:
                new = str(rng.choice([day for day in DAYS if day != old]))
                yield Pair(sentence.format(what=event, old=old, new=new), (new,))


def yes_no() -> Iterable[Pair]:
    """A question about a capital or about which of two animals is heavier; yes or no, equally often."""
    rng = stream(0, "yes-no")
    known = [line.split() for line in _lines("capital")]
    for number, (country, city) in enumerate(known):
        other = known[(number + 1 + int(rng.integers(len(known) - 1))) % len(known)][1]
        yield Pair(f"Is {city} the capital of {country}?", ("yes",))
        yield Pair(f"Is {other} the capital of {country}?", ("no",))
    masses = animal_masses()
    names = sorted(masses)
    for number in range(300):
        one, other = (str(name) for name in rng.choice(names, 2, replace=False))
        light, heavy = sorted((one, other), key=masses.__getitem__)
        if masses[heavy] < 8 * masses[light]:
            continue
        first, second, answer = (heavy, light, "yes") if number % 2 else (light, heavy, "no")
        yield Pair(f"Is the {first} heavier than the {second}?", (answer,))


def units() -> Iterable[Pair]:
    """A quantity in one unit; the number of another."""
    for number in range(2, 31):
        for one, other, factor in FACTORS:
            yield Pair(f"{number} {one} in {other}", (str(number * factor),))


@dataclass(frozen=True)
class Made:
    """How a task is made, scored and how long its answers may be."""

    description: str
    pairs: Callable[[], Iterable[Pair]]
    max_tokens: int
    scorer: Mapping[str, Any] = field(default_factory=dict)


MADE = {
    "sentiment": Made(
        "Say whether a review is positive or negative.",
        sentiment,
        16,
        {"kind": "label", "options": ["positive", "negative"]},
    ),
    "language": Made(
        "Name the language of a sentence.",
        language,
        16,
        {"kind": "label", "options": ["English", "French", "German", "Spanish", "Italian"]},
    ),
    "category": Made(
        "Say whether a thing is an animal, a fruit, a vehicle, clothing or furniture.",
        category,
        16,
        {"kind": "label", "options": ["animal", "fruit", "vehicle", "clothing", "furniture"]},
    ),
    "antonym": Made("Give the opposite of a word.", antonym, 12, {"kind": "contains"}),
    "plural": Made("Give the plural of a noun.", plural, 12, {"kind": "contains"}),
    "moved-day": Made(
        "Name the day to which something was moved.", moved_day, 16, {"kind": "label", "options": list(DAYS)}
    ),
    "yes-no": Made(
        "Answer a question about capitals or animals with yes or no.",
        yes_no,
        16,
        {"kind": "label", "options": ["yes", "no"]},
    ),
    "units": Made("Convert a quantity into another unit.", units, 20, {"kind": "number"}),
}


def made_task(name: str) -> Task:
    """The task with all its pairs in an order drawn once."""
    recipe = MADE[name]
    pairs = list({pair.input: pair for pair in recipe.pairs()}.values())
    order = stream(0, "order", name).permutation(len(pairs))
    prompts = (HERE / "prompts" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return Task.from_pairs(
        [pairs[i] for i in order],
        prompts,
        scorer=recipe.scorer,
        max_tokens=recipe.max_tokens,
        name=name,
        description=recipe.description,
    )
