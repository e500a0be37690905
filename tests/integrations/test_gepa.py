"""Candidates judged through GEPA's adapter: its protocol, with the real package where that is installed."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from bestprompt.errors import ConfigError, LMError
from bestprompt.integrations import gepa as judged
from bestprompt.rng import stream

VALSET = [{"input": f"word{i}", "answer": f"word{i}", "additional_context": {}} for i in range(40)]
GOOD, BAD = {"system_prompt": "Say the word again."}, {"system_prompt": "Word?"}
SKILL = {"Say the word again.": 0.9, "Word?": 0.2}


@dataclass
class Batch:
    """What GEPA's ``EvaluationBatch`` is made of."""

    outputs: list
    scores: list
    trajectories: None = None


@dataclass
class Adapter:
    """Scores by how good the text is; keeps the sizes of the batches."""

    factor: float = 1.0
    batches: list = field(default_factory=list)

    def evaluate(self, batch, candidate, capture_traces=False):
        self.batches.append(len(batch))
        skill = SKILL[candidate["system_prompt"]]
        scores = [self.factor * (stream(0, "skill", each["input"]).random() < skill) for each in batch]
        return Batch([{"full_assistant_response": "x"} for _ in batch], scores)


def test_the_better_candidate_is_found_within_the_budget():
    adapter = Adapter()
    found = judged.optimize([BAD, GOOD], adapter, VALSET, budget=50)
    assert found.candidate == GOOD
    assert sum(adapter.batches) == found.recommendation.calls <= 50
    assert max(adapter.batches) > 1
    assert found.recommendation.choice.probability_beats_incumbent >= 0.9


def test_the_incumbent_stays_where_nothing_is_better():
    assert judged.optimize([BAD], Adapter(), VALSET, budget=30, incumbent=GOOD).candidate == GOOD


def test_other_scales_need_a_range():
    with pytest.raises(LMError, match="score_range"):
        judged.optimize([BAD, GOOD], Adapter(factor=10), VALSET, budget=20)
    assert judged.optimize([BAD, GOOD], Adapter(factor=10), VALSET, budget=50, score_range=(0, 10)).candidate == GOOD


def test_what_an_adapter_raises_ends_the_run_with_its_words():
    class Broken(Adapter):
        def evaluate(self, batch, candidate, capture_traces=False):
            raise RuntimeError("no such model")

    with pytest.raises(LMError, match="the adapter raised RuntimeError: no such model"):
        judged.optimize([BAD, GOOD], Broken(), VALSET, budget=20)


def test_a_short_answer_of_an_adapter_is_refused():
    class Short(Adapter):
        def evaluate(self, batch, candidate, capture_traces=False):
            return Batch([], [1.0])

    with pytest.raises(LMError, match="scores and 0 outputs"):
        judged.optimize([BAD, GOOD], Short(), VALSET, budget=20)


def test_candidates_must_have_the_same_components():
    with pytest.raises(ConfigError, match="All candidates need the components system_prompt"):
        judged.optimize([BAD, {"other": "x"}], Adapter(), VALSET, budget=20)
    with pytest.raises(ConfigError, match="at least one"):
        judged.optimize([], Adapter(), VALSET, budget=20)


def test_what_gepa_found_is_judged_by_its_own_adapter(serve_requests, chat_answer, tmp_path):
    """GEPA's own loop and default adapter, a server that counts, and our judgement on examples it has not seen."""
    gepa = pytest.importorskip("gepa", reason="make test-integrations installs it")
    from gepa.adapters.default_adapter.default_adapter import DefaultAdapter

    asked = []

    def model(messages):
        system, word = messages[0]["content"], messages[-1]["content"]
        asked.append(word)
        right = stream(0, "skill", word).random() < SKILL.get(system, 0.0)
        return word if right else "no"

    adapter = DefaultAdapter(model=model)
    result = gepa.optimize(
        seed_candidate=BAD,
        trainset=VALSET[:10],
        valset=VALSET[:10],
        adapter=adapter,
        reflection_lm=lambda prompt: f"```\n{GOOD['system_prompt']}\n```",
        max_metric_calls=60,
        seed=0,
    )
    assert GOOD in result.candidates
    before = len(asked)
    found = judged.judge(result, adapter, VALSET[10:], budget=60, ledger=tmp_path / "r")
    assert found.candidate == GOOD
    assert len(asked) - before == found.recommendation.calls <= 60
    assert found.recommendation.choice.incumbent == 0
