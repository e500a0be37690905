from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bestprompt.errors import TaskError
from bestprompt.tasks import Task, bundled, floor_warning, names, separation
from bestprompt.types import Message, Pair

PAIRS = [(f"question {n}", f"answer {n}") for n in range(50)]


def test_from_pairs_and_render() -> None:
    task = Task.from_pairs(
        PAIRS, ["Answer."], template="{prompt}\n\nQ: {input}", name="mine", max_tokens=5, stop=["\n"]
    )
    request = task.render(" Do it. ", task.pairs[0], seed=7, temperature=0.5)
    assert request.messages == (Message("user", "Do it.\n\nQ: question 0"),)
    assert (request.max_tokens, request.seed, request.temperature, request.stop) == (5, 7, 0.5, ("\n",))
    assert task.scorer.score(["Answer 0!"], task.pairs[:1])[0].value == 1


def test_render_leaves_braces_alone() -> None:
    task = Task.from_pairs([Pair("{prompt} {x}", ("y",))], template="{prompt}|{input}")
    assert task.render("{a} {prompt}", task.pairs[0]).messages[0].content == "{a} {prompt}|{prompt} {x}"


def test_a_prompt_may_say_where_the_input_goes() -> None:
    task = Task.from_pairs([Pair("tea {prompt}", ("y",))])
    assert task.render("Is {input} hot?", task.pairs[0]).messages[0].content == "Is tea {prompt} hot?"
    framed = dataclasses.replace(task, template="{prompt}|{input}")
    assert framed.render("Is {input} hot?", task.pairs[0]).messages[0].content == "Is tea {prompt} hot?|tea {prompt}"
    before = task.as_proposed(None)  # a run that began before braces in prompts meant anything
    assert before.render("Is {input} hot?", task.pairs[0]).messages[0].content == "Is {input} hot?\n\ntea {prompt}"


def test_the_prompt_may_be_the_system_message() -> None:
    task = Task.from_pairs(PAIRS, template="{input}", system="{prompt}")
    assert task.render("Be brief.", task.pairs[1]).messages == (
        Message("system", "Be brief."),
        Message("user", "question 1"),
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"template": "{input}"}, r"\{prompt\}"),
        ({"template": "{prompt}"}, r"\{input\}"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"examples": ["ok", " "]}, "empty"),
        ({"pairs": []}, "no pairs"),
        ({"pairs": [Pair("x", ())]}, "no reference"),
        ({"pairs": [("x", "1"), ("x", "2")]}, "repeats the input"),
    ],
)
def test_what_a_task_refuses(changes: dict[str, object], said: str) -> None:
    with pytest.raises(TaskError, match=said):
        Task.from_pairs(**({"pairs": PAIRS} | changes))  # type: ignore[arg-type]


@settings(max_examples=30, deadline=None)
@given(n=st.integers(3, 60), seed=st.integers(0, 5))
def test_splits_are_a_seeded_partition(n: int, seed: int) -> None:
    task = Task.from_pairs(PAIRS[:n] if n <= 50 else [(str(i), "x") for i in range(n)])
    splits = task.split(seed)
    together = [*splits.train, *splits.validation, *splits.test]
    assert sorted(pair.input for pair in together) == sorted(pair.input for pair in task.pairs)
    assert all((splits.train, splits.validation, splits.test))
    assert task.split(seed) == splits


def test_split_sizes_and_seeds() -> None:
    task = bundled("first-letter")
    splits = task.split(0)
    assert [len(part) for part in (splits.train, splits.validation, splits.test)] == [300, 100, 100]
    assert task.split(1) != splits
    assert len(task.split(0, (0.8, 0.1, 0.1)).train) == 400
    with pytest.raises(TaskError, match="sum to 1"):
        task.split(0, (0.5, 0.2, 0.2))
    with pytest.raises(TaskError, match="at least 3"):
        Task.from_pairs(PAIRS[:2]).split(0)


def test_fingerprint_follows_content_only() -> None:
    task = Task.from_pairs(PAIRS, ["a"])
    assert dataclasses.replace(task, description="x", measured_on={"m": True}).fingerprint == task.fingerprint
    changes = [
        {"template": "{prompt} {input}"},
        {"max_tokens": 9},
        {"stop": ("x",)},
        {"examples": ("b",)},
        {"system": "s"},
        {"pairs": task.pairs[1:]},
        {"scorer": bundled("first-letter").scorer},
    ]
    prints = {dataclasses.replace(task, **change).fingerprint for change in changes}  # type: ignore[arg-type]
    assert len(prints | {task.fingerprint}) == len(changes) + 1


# ------------------------------------------------------------------------------------------------------------- floor
def test_separation_by_hand() -> None:
    scores = np.array([[0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0]])
    ratio, spread, se = separation(scores)
    assert spread == pytest.approx(0.25 / np.sqrt(2))
    assert se == pytest.approx(np.sqrt((1 / 3 + 1 / 4) / 2 / 4))
    assert ratio == pytest.approx(spread / se)
    assert separation(np.zeros((3, 4)))[0] == 0
    assert separation(np.array([[1.0, 1.0], [0.0, 0.0]]))[0] == float("inf")


def test_equal_prompts_give_a_ratio_near_one() -> None:
    rng = np.random.default_rng(0)
    ratios = [separation(rng.binomial(1, 0.4, size=(12, 50)).astype(float))[0] for _ in range(200)]
    assert np.median(ratios) == pytest.approx(1, abs=0.1)
    assert np.mean(np.array(ratios) >= 2) < 0.01


def test_floor_warning() -> None:
    task = dataclasses.replace(Task.from_pairs(PAIRS, name="t"), measured_on={"weak": False, "strong": True})
    assert floor_warning(task, "strong") is None
    assert floor_warning(task, "unheard of") is None
    assert "it does on strong" in (floor_warning(task, "weak") or "")
    assert "on the floor" in (floor_warning(task, "strong", [[0, 0], [0, 0]]) or "")
    assert "cannot be told apart" in (floor_warning(task, "strong", [[1, 1], [1, 1]]) or "")
    assert "no difference" in (floor_warning(task, "strong", [[1, 0], [0, 1]]) or "")
    assert floor_warning(task, "strong", [[1, 0], [1, 1]]) is None
    assert floor_warning(task, "strong", [[], []]) is None


@pytest.mark.parametrize("name", names())
def test_what_was_measured_holds_for_the_shipped_difficulty_only(name: str) -> None:
    harder = {"first-letter": {"min_length": 5}, "number-words": {"high": 998}}.get(name)
    if harder:
        assert bundled(name, n=100, **harder).measured_on == {}
