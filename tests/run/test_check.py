"""Is a new prompt worse than the one in use: what is said, at how many calls, and that nothing is paid twice."""

from __future__ import annotations

import numpy as np
import pytest

import bestprompt as bp
from bestprompt.choices import IncumbentCheck
from bestprompt.errors import ConfigError
from bestprompt.rng import stream
from bestprompt.run.settings import Settings
from bestprompt.selection import Selector, SelectorConfig
from bestprompt.selection.conclusion.against_incumbent import side_by_side
from bestprompt.types import Observation, Proposal

SKILL = {"good": 0.9, "as good": 0.9, "bad": 0.3}
TASK = bp.Task.from_pairs([(f"w{i}", f"w{i}") for i in range(60)], ["another"], scorer="exact")


class Model:
    """Right as often as its prompt is good, and on the same words under any prompt that is as good; counts calls."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def __call__(self, request: bp.types.Request) -> str:
        prompt, word = request.messages[-1].content.split("\n\n")
        self.asked.append((prompt, word))
        return word if stream(0, "skill", word).random() < SKILL[prompt] else "no"


@pytest.fixture
def model():
    return Model()


def checked(model, incumbent, new, **options):
    return bp.check(TASK, bp.lm.function(model, deterministic=True), incumbent=incumbent, new=new, **options)


def test_a_worse_prompt_is_found_with_few_calls_on_shared_pairs(model):
    found = checked(model, "good", "bad")
    assert (found.outcome, found.passed) == ("worse", False)
    assert found.probability_worse >= 0.95
    assert found.interval[0] < found.difference < 0
    assert found.calls == len(model.asked) == 2 * found.shared < 60
    words = [{word for prompt, word in model.asked if prompt == each} for each in ("good", "bad")]
    assert words[0] == words[1]
    assert "is worse than the one in use with probability" in found.verdict


def test_a_better_prompt_passes_and_is_said_to_be_not_worse(model):
    found = checked(model, "bad", "good", if_undecided="fail")
    assert (found.outcome, found.passed) == ("not worse", True)


def test_an_equal_prompt_ends_undecided_before_everything_is_asked(model):
    found = checked(model, "good", "as good")
    assert (found.outcome, found.passed) == ("undecided", True)
    assert len(model.asked) < 120
    assert "would show the new prompt to be worse" in found.recommendation.stopped_because


def test_what_is_undecided_fails_where_that_is_asked_for(model):
    assert not checked(model, "good", "as good", if_undecided="fail").passed


def test_a_margin_forgives(model):
    assert checked(model, "good", "bad", margin=0.9, if_undecided="fail").outcome == "not worse"


def test_the_budget_is_kept_and_little_evidence_is_no_verdict(model):
    found = checked(model, "good", "bad", budget=6)
    assert len(model.asked) <= 6
    assert found.outcome == "undecided"


def test_the_same_prompt_needs_no_call(model):
    found = checked(model, "good", " good\n")
    assert found.passed
    assert not model.asked
    assert found.recommendation is None


def test_a_check_that_is_repeated_pays_for_nothing_twice(model, tmp_path):
    first = checked(model, "good", "bad", ledger=tmp_path / "r")
    asked = len(model.asked)
    again = checked(model, "good", "bad", ledger=tmp_path / "r")
    assert len(model.asked) == asked
    assert (again.outcome, again.probability_worse, again.calls) == (first.outcome, first.probability_worse, asked)


def test_settings_that_make_no_sense_are_refused(model):
    with pytest.raises(ConfigError, match="prompt is empty"):
        checked(model, "good", " ")
    alone = Settings.model_validate({"selection": {"incumbent_check": {}}})
    with pytest.raises(ConfigError, match="incumbent_check needs"):
        bp.optimize(TASK, bp.lm.function(model), config=alone)
    paper = Settings.model_validate({"selection": {"mode": "paper"}})
    with pytest.raises(ConfigError, match="incumbent_check must go with mode default"):
        checked(model, "good", "bad", config=paper)


def test_questions_are_put_to_both_side_by_side():
    selector = Selector(
        np.array([[0.0], [1.0]]),
        SelectorConfig(20, pairs="common", items=7, repeats="never", incumbent=0, incumbent_check=IncumbentCheck()),
    )
    state = selector.initial()
    first = side_by_side(state, 3)
    assert [p.replication for p in first] == [0, 0, 1]
    state = selector.tell(state, [Observation(p.candidate, p.replication, 1.0) for p in first])
    assert side_by_side(state, 2, [Proposal(1, 1)]) == [Proposal(0, 2), Proposal(1, 2)]
    assert len(side_by_side(state, 99)) == 11


@pytest.mark.slow
def test_false_alarms_are_no_more_than_was_asked_for():
    """Equal prompts: 40 checks, of which 5 % may fail; a bound of three standard errors above."""
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng([3, seed])
        answers = (rng.random((2, 20)) < rng.uniform(0.4, 0.9)).astype(float)
        config = SelectorConfig(
            40, pairs="common", items=20, repeats="never", incumbent=0, seed=seed, incumbent_check=IncumbentCheck()
        )
        selector = Selector(np.array([[0.0], [1.0]]), config)
        state = selector.initial()
        while selector.should_stop(state) is None:
            asked = selector.ask(state, 4)
            told = [Observation(p.candidate, p.replication, answers[p.candidate, p.replication]) for p in asked]
            state = selector.tell(state, told)
        alarms += selector.recommend(state).checked.outcome == "worse"
    assert alarms <= 40 * (0.05 + 3 * np.sqrt(0.05 * 0.95 / 40))
