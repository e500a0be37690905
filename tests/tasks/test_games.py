"""On the bundled tasks as they are shipped, tricks earn no more than guessing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from bestprompt.tasks import Task, bundled, names
from bestprompt.types import Pair

CHANCE = {
    "word-sorting": 0.125,
    "rhymes": 0.25,
    "first-letter": 0.06,
    "largest-animal": 1 / 3,
    "number-words": 0.01,
    "counting-objects": 0.12,
}
GAMES: dict[str, Callable[[Pair], str]] = {
    "copy the input": lambda pair: pair.input,
    "copy it twice": lambda pair: f"{pair.input}\n{pair.input}",
    "copy it backwards": lambda pair: " ".join(reversed(pair.input.replace(",", " ").split())),
    "echo the options": lambda pair: ", ".join(pair.meta.get("options", ["a"])) if "word" in pair.meta else pair.input,
    "stray letters": lambda pair: "a a a",
    "the alphabet": lambda pair: " ".join("abcdefghijklmnopqrstuvwxyz"),
    "spell the input": lambda pair: "-".join(pair.input),
    "all numbers": lambda pair: " ".join(map(str, range(1, 31))),
    "all number words": lambda pair: "one two three four five six seven eight nine ten eleven twelve twenty hundred",
    "one number": lambda pair: "8",
    "nothing": lambda pair: "",
}


@pytest.fixture(scope="module")
def tasks() -> dict[str, Task]:
    return {name: bundled(name) for name in names()}


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("game", GAMES)
def test_a_game_does_not_win(name: str, game: str, tasks: dict[str, Task]) -> None:
    task = tasks[name]
    outputs = [GAMES[game](pair) for pair in task.pairs]
    mean = np.mean([scored.value for scored in task.scorer.score(outputs, task.pairs)])
    assert mean <= CHANCE[name] + 0.005


@pytest.mark.parametrize("name", names())
def test_the_references_win_plain_and_in_a_sentence(name: str, tasks: dict[str, Task]) -> None:
    task = tasks[name]
    for frame in ("{}", "The answer is {}.", "**{}**", "Answer: {}\n"):
        outputs = [frame.format(pair.reference) for pair in task.pairs]
        assert all(scored.value == 1 for scored in task.scorer.score(outputs, task.pairs)), frame
