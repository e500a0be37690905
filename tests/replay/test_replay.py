"""Score tables: made from a model's answers, gone on with, and run on as tasks whose best prompt is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bestprompt as bp
from bestprompt.errors import LMError, TaskError
from bestprompt.replay import ScoreTable, TableSize, build_table, union
from bestprompt.replay.table import MISSING
from bestprompt.run.settings import load_settings
from bestprompt.types import Request, SoftPromptSet

WORDS = ("ant", "bee", "cat", "dog", "elk", "fox")
TASK = bp.Task.from_pairs([(word, word[0]) for word in WORDS], ["Say it.", "First letter?"])
SIZE = TableSize(items=6, replicates=2, repeated=2, block=4)


def candidates(prompts=("Say it.", "First letter?", "Initial, please.", "Name it.")) -> SoftPromptSet:
    X = np.linspace(-0.5, 0.5, len(prompts) * 3).reshape(len(prompts), 3) ** 2
    sources = ("example", "example", *("latent" for _ in prompts[2:]))
    return SoftPromptSet(prompts, X[:, :2], X, np.arange(len(prompts)) * 0 - 1, sources)


class Teller:
    """Knows the first letter where it is asked for one; counts, and may stop in the middle."""

    def __init__(self, most: int = 10**9) -> None:
        self.asked: list[Request] = []
        self.most = most

    def __call__(self, request: Request) -> str:
        if len(self.asked) >= self.most:
            raise LMError("out of reach", retryable=False, systemic=True)
        self.asked.append(request)
        prompt, _, word = request.messages[-1].content.partition("\n\n")
        return word[0] if "letter" in prompt or (prompt.startswith("Initial") and word < "d") else word


def built(path: Path, teller: Teller, size: TableSize = SIZE) -> ScoreTable:
    return build_table(path, TASK, bp.lm.function(teller, name="teller"), candidates, TASK.pairs, size)


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> bp.ReplayTask:
    path = tmp_path_factory.mktemp("tables") / "small.npz"
    built(path, Teller())
    return bp.ReplayTask.load(path)


def test_a_table_that_was_stopped_asks_only_what_is_missing_and_is_usable_meanwhile(tmp_path):
    path, whole = tmp_path / "t.npz", tmp_path / "whole.npz"
    first, second, uninterrupted = Teller(most=18), Teller(), Teller()
    with pytest.raises(LMError, match="out of reach"):
        built(path, first)
    partly = bp.ReplayTask.load(path)
    assert len(partly.table.inputs) == 4  # the first block, which every prompt has met
    built(path, second)
    built(whole, uninterrupted)
    repeated = 2 * 6 * 2
    assert len(uninterrupted.asked) == 4 * 6 + repeated
    assert len(first.asked) + len(second.asked) <= len(uninterrupted.asked) + SIZE.block
    one, other = ScoreTable.load(path), ScoreTable.load(whole)
    np.testing.assert_array_equal(one.percents, other.percents)
    np.testing.assert_array_equal(one.answers, other.answers)
    assert one.temperatures == (0.0, 0.7, 0.7)
    assert (one.percents[[0, 3], :, 1:] != MISSING).all()
    assert (one.percents[[1, 2], :, 1:] == MISSING).all()
    assert {request.temperature for request in uninterrupted.asked} == {0.0, 0.7}
    assert len({r.seed for r in uninterrupted.asked if r.temperature}) == repeated


def test_a_table_of_something_else_is_not_gone_on_with(tmp_path):
    path = tmp_path / "t.npz"
    built(path, Teller())
    with pytest.raises(TaskError, match="another task, model or size"):
        built(path, Teller(), replace(SIZE, items=5))
    with pytest.raises(TaskError, match="6 pairs, 7 items"):
        built(path, Teller(), replace(SIZE, items=7))
    with pytest.raises(TaskError, match="holds no score table"):
        bp.ReplayTask.load(tmp_path / "absent.npz")


def test_the_truth_is_the_mean_of_the_table(replay):
    np.testing.assert_allclose(replay.truth, [0.0, 1.0, 0.5, 0.0])
    assert replay.worth("Initial, please.") == 0.5
    with pytest.raises(TaskError, match="does not hold the prompt"):
        replay.worth("Anything else.")


@pytest.mark.parametrize("mode", ["default", "paper"])
def test_a_run_on_a_table_finds_its_best_prompt(replay, mode):
    config = load_settings(None, {"selection.surrogate": "blr", "selection.replications": 2})
    rec = bp.optimize(replay.task, replay.lm, candidates=replay.candidates, budget=24, mode=mode, config=config)
    assert rec.prompt == "First letter?"


def test_the_stand_in_answers_by_the_table_and_refuses_what_is_not_there(replay):
    def asked(prompt, item, **how):
        return replay.lm.complete([replay.task.render(prompt, replay.task.pairs[item], **how)])[0]

    assert [asked("Initial, please.", i).text for i in range(6)] == ["1.00"] * 3 + ["0.00"] * 3
    assert asked("Say it.", 0, temperature=0.7, seed=5).text == "0.00"
    assert isinstance(asked("Something else.", 0), LMError)


def test_scores_for_select_are_those_of_the_table(replay):
    common = replay.score(seed=1, pairs="common")
    assert np.mean([common(2, r) for r in range(6)]) == 0.5
    independent = replay.score(seed=1)
    drawn = [independent(2, r) for r in range(400)]
    assert drawn == [independent(2, r) for r in range(400)]
    assert np.mean(drawn) == pytest.approx(0.5, abs=4 * 0.5 / 20)


def test_some_of_the_prompts_can_be_taken(replay):
    few = replay.sample(3, seed=2, examples=True)
    assert set(few.candidates.prompts) >= {"Say it.", "First letter?"}
    assert few.task.examples == ("Say it.", "First letter?")
    np.testing.assert_allclose(few.truth, [replay.worth(prompt) for prompt in few.candidates.prompts])
    with pytest.raises(TaskError, match="4 prompts, 5"):
        replay.sample(5)


def test_a_vector_means_the_nearest_prompt(replay):
    space = replay.space
    X = space.encode(replay.candidates.prompts)
    assert space.decode(X + 1e-4) == list(replay.candidates.prompts)
    assert space.fine_tune(["Say it."]) is space


def test_two_sets_become_one():
    one = candidates()
    other = replace(candidates(("Say it.", "First letter?", "What is first?")), parents=np.array([-1, -1, 1]))
    both = union([one, other], dim=2)
    assert both.prompts == (*one.prompts, "What is first?")
    assert both.sources.count("example") == 2
    assert both.parents.tolist() == [-1, -1, -1, -1, 1]
    np.testing.assert_array_equal(both.X[4], other.X[2])
