"""The six bundled tasks: which generator, which score, which frame, which prompts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from bestprompt.errors import TaskError
from bestprompt.tasks import generators
from bestprompt.tasks.spec import DEFAULT_TEMPLATE, TaskSpec
from bestprompt.types import Pair


@dataclass(frozen=True, slots=True)
class TaskRecipe:
    """How a bundled task is made; its example prompts stand in ``data/prompts/<name>.txt``."""

    description: str
    generate: Callable[..., tuple[Pair, ...]]
    scorer: Mapping[str, Any]
    max_tokens: int
    template: str = DEFAULT_TEMPLATE


RECIPES: Mapping[str, TaskRecipe] = {
    "word-sorting": TaskRecipe(
        "Put a list of words into alphabetical order.", generators.word_sorting, {"kind": "positions"}, 32
    ),
    "rhymes": TaskRecipe(
        "Choose from a list the word that rhymes with a given one.", generators.rhymes, {"kind": "choice"}, 20
    ),
    "first-letter": TaskRecipe("Name the first letter of a word.", generators.first_letter, {"kind": "letter"}, 16),
    "largest-animal": TaskRecipe(
        "Choose the largest animal from a list.", generators.largest_animal, {"kind": "choice"}, 16
    ),
    "number-words": TaskRecipe("Write a number in words.", generators.number_words, {"kind": "number-words"}, 20),
    "counting-objects": TaskRecipe(
        "Count the things mentioned in a sentence.", generators.counting_objects, {"kind": "number"}, 24
    ),
}


def names() -> tuple[str, ...]:
    """The bundled tasks."""
    return tuple(RECIPES)


def described(name: str, n: int = 500, *, seed: int = 0, **difficulty: Any) -> TaskSpec:
    """A bundled task, by default as measured; ``difficulty`` goes to its generator.

    Raises:
        TaskError: No bundled task has this name; the nearest one is suggested.
    """
    if name not in RECIPES:
        near = get_close_matches(name, RECIPES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"bundled tasks: {', '.join(RECIPES)}"
        raise TaskError(f"there is no bundled task {name!r}; {hint}")
    recipe = RECIPES[name]
    return TaskSpec(
        name=name,
        pairs=recipe.generate(n, seed=seed, **difficulty),
        examples=tuple(dict.fromkeys(example_prompts(name))),
        scorer=recipe.scorer,
        template=recipe.template,
        description=recipe.description,
        max_tokens=recipe.max_tokens,
        measured_on={} if difficulty else measured(name),
    )


@cache
def example_prompts(name: str) -> tuple[str, ...]:
    """Prompts a user might bring, good and mediocre mixed; the first six are a typical handful."""
    text = (files("bestprompt.tasks") / "data" / "prompts" / f"{name}.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line)


@cache
def measured(name: str) -> Mapping[str, bool]:
    """Model name → whether the task was measured to separate prompts on it (``experiments/task_signal``)."""
    table = json.loads((files("bestprompt.tasks") / "data" / "signal.json").read_text(encoding="utf-8"))
    return {model: bool(separates) for model, separates in table.get(name, {}).items()}
