"""The optimizer for DSPy, with the real package and a server on loopback that counts what it is asked."""

from __future__ import annotations

import json
import re
import threading
import warnings

import pytest

from bestprompt.errors import ConfigError, LMAuthError, LMError
from bestprompt.rng import stream

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    dspy = pytest.importorskip("dspy", reason="make test-integrations installs it")
    from bestprompt.integrations.dspy import BestPrompt, combinations

pytestmark = pytest.mark.filterwarnings("default")

SKILL = {"Repeat the word.": 0.3, "Say the word again.": 0.9, "Word?": 0.1}
EXAMPLES = [dspy.Example(question=f"word{i}", answer=f"word{i}").with_inputs("question") for i in range(30)]


def metric(example, prediction, trace=None):
    return prediction.answer == example.answer


def reply(chat_answer):
    """A server that repeats a word as often as its instruction is good at that."""

    def answered(_attempt, body):
        said = "\n".join(message["content"] for message in body["messages"])
        instruction = next((text for text in SKILL if text in said), "Word?")
        word = re.findall(r"\[\[ ## question ## \]\]\n(word\d+)", said)[-1]
        right = stream(0, "skill", word).random() < SKILL[instruction]
        text = f"[[ ## answer ## ]]\n{word if right else 'no'}\n\n[[ ## completed ## ]]"
        return 200, {}, chat_answer(text)

    return answered


@pytest.fixture
def server(serve_requests, chat_answer):
    with serve_requests(reply(chat_answer)) as (url, seen):
        yield url, seen


def model(url, **options):
    given = {"cache": False, **options}
    return dspy.LM("openai/m", api_base=url, api_key="a-key-of-no-account", num_retries=0, **given)


def program(instruction="Repeat the word."):
    return dspy.Predict(dspy.Signature("question -> answer", instruction))


def test_better_instructions_are_found_within_the_budget(server):
    url, seen = server
    student = program()
    with dspy.context(lm=model(url, temperature=0.0)):
        better = BestPrompt(metric, budget=40, candidates=["Say the word again.", "Word?"]).compile(
            student, trainset=EXAMPLES
        )
        assert better(question="word1").answer in ("word1", "no")
    assert better.signature.instructions == "Say the word again."
    assert student.signature.instructions == "Repeat the word."
    found = better.recommendation
    assert len(seen) - 1 == found.calls <= 40
    assert found.choice.probability_beats_incumbent >= 0.9
    assert found.interval[0] < found.score < found.interval[1]
    assert "best with probability" in found.verdict


@pytest.mark.parametrize("budget", [1, 7])
def test_a_small_budget_is_never_exceeded_also_with_threads(server, budget):
    url, seen = server
    with dspy.context(lm=model(url, temperature=0.0)):
        BestPrompt(metric, budget=budget, candidates=["Word?"], num_threads=4).compile(program(), trainset=EXAMPLES)
    assert len(seen) <= budget


def test_a_run_is_continued_and_pays_for_nothing_twice(server, tmp_path):
    url, seen = server
    with dspy.context(lm=model(url, temperature=0.0)):
        first = BestPrompt(metric, budget=20, candidates=["Word?"], ledger=tmp_path / "r").compile(
            program(), trainset=EXAMPLES
        )
        asked = len(seen)
        again = BestPrompt(metric, budget=20, candidates=["Word?"], ledger=tmp_path / "r").compile(
            program(), trainset=EXAMPLES
        )
    assert len(seen) == asked
    assert again.recommendation.verdict == first.recommendation.verdict
    record = (tmp_path / "r" / "ledger.db").read_bytes()
    assert b"a-key-of-no-account" not in record


def test_the_program_can_be_saved_and_loaded(server, tmp_path):
    url, _ = server
    with dspy.context(lm=model(url, temperature=0.0)):
        better = BestPrompt(metric, budget=30, candidates=["Say the word again."]).compile(program(), trainset=EXAMPLES)
    better.save(tmp_path / "program.json")
    loaded = program()
    loaded.load(tmp_path / "program.json")
    assert loaded.signature.instructions == better.signature.instructions


class Twice(dspy.Module):
    """Two predictors, of which the second repeats what the first said."""

    def __init__(self):
        super().__init__()
        self.first = program("Word?")
        self.second = program("Word?")

    def forward(self, question):
        once = self.first(question=question).answer
        return self.second(question=once) if once != "no" else dspy.Prediction(answer="no")


def test_several_predictors_are_chosen_jointly(server):
    url, seen = server
    with dspy.context(lm=model(url, temperature=0.0)):
        better = BestPrompt(
            metric,
            budget=60,
            candidates={"first": ["Say the word again."], "second": ["Say the word again.", "Repeat the word."]},
        ).compile(Twice(), trainset=EXAMPLES)
    assert better.first.signature.instructions == better.second.signature.instructions == "Say the word again."
    assert better.recommendation.calls <= 60
    assert len(seen) <= 120  # two requests an evaluation at most


@pytest.mark.parametrize(
    "score", [lambda right: right, float, lambda right: dspy.Prediction(score=float(right), feedback="so")]
)
def test_metrics_return_truth_values_numbers_or_predictions(server, score):
    url, _ = server
    with dspy.context(lm=model(url, temperature=0.0)):
        better = BestPrompt(
            lambda example, prediction: score(metric(example, prediction)),
            budget=12,
            candidates=["Say the word again."],
        ).compile(program(), trainset=EXAMPLES)
    assert 0.0 < better.recommendation.score < 1.0


def test_a_score_beyond_its_range_is_refused_and_a_range_can_be_given(server):
    url, _ = server

    def stars(example, prediction):
        return 5.0 if metric(example, prediction) else 1.0

    with dspy.context(lm=model(url, temperature=0.0)):
        with pytest.raises(LMError, match="score_range"):
            BestPrompt(stars, budget=12, candidates=["Word?"]).compile(program(), trainset=EXAMPLES)
        better = BestPrompt(stars, budget=40, candidates=["Say the word again."], score_range=(1.0, 5.0)).compile(
            program(), trainset=EXAMPLES
        )
    assert better.recommendation.score > 0.5


def test_a_metric_that_raises_scores_lowest_and_too_often_stops_the_run(server):
    url, _ = server

    def picky(example, prediction):
        return float(len(prediction.answer) / (prediction.answer != "no"))  # ZeroDivisionError

    with dspy.context(lm=model(url, temperature=0.0)):
        with pytest.raises(LMError, match=r"raised \d times, more than max_errors = 2.*ZeroDivisionError"):
            BestPrompt(picky, budget=30, candidates=["Repeat the word."], max_errors=2, score_range=(0, 9)).compile(
                program("Word?"), trainset=EXAMPLES
            )
        better = BestPrompt(
            picky, budget=30, candidates=["Say the word again."], max_errors=99, score_range=(0, 9)
        ).compile(program("Word?"), trainset=EXAMPLES)
    assert better.signature.instructions == "Say the word again."


def test_with_a_cache_no_question_is_asked_twice(server):
    url, seen = server
    few = EXAMPLES[:5]
    with dspy.context(lm=model(url, temperature=1.0, cache=True)):
        cached = BestPrompt(metric, budget=60, candidates=["Word?"]).compile(program(), trainset=few)
    assert cached.recommendation.calls <= 10 >= len(seen)
    fresh = len(seen)
    with dspy.context(lm=model(url, temperature=1.0, cache=False)):
        warm = BestPrompt(metric, budget=30, candidates=["Word?"], config=None).compile(program(), trainset=few)
    assert warm.recommendation.calls == len(seen) - fresh > 10


def test_a_rejected_key_stops_at_once_and_is_not_shown(serve_requests):
    def rejected(_attempt, _body):
        return 401, {}, {"error": {"message": "Incorrect API key provided: a-key-of-no-account", "code": "invalid"}}

    with (
        serve_requests(rejected) as (url, seen),
        dspy.context(lm=model(url, temperature=0.0)),
        pytest.raises(LMAuthError) as raised,
    ):
        BestPrompt(metric, budget=12, candidates=["Word?"]).compile(program(), trainset=EXAMPLES)
    assert "a-key-of-no-account" not in str(raised.value)
    assert len(seen) <= 4


def test_settings_of_the_context_reach_the_threads(server):
    url, _ = server
    seen_in: set[str] = set()

    def noting(example, prediction):
        seen_in.add(f"{threading.current_thread().name}: {dspy.settings.lm.model}")
        return metric(example, prediction)

    with dspy.context(lm=model(url, temperature=0.0)):
        BestPrompt(noting, budget=12, candidates=["Word?"], num_threads=3).compile(program(), trainset=EXAMPLES)
    assert len(seen_in) > 1
    assert all("openai/m" in each for each in seen_in)


def test_an_answer_that_is_none_is_evidence(serve_requests, chat_answer):
    """What the model says under one instruction cannot be parsed: that scores 0, and the run goes on."""

    def unreadable(attempt, body):
        status, headers, content = reply(chat_answer)(attempt, body)
        said = json.dumps(body["messages"])
        return status, headers, chat_answer("I would rather not.") if "Word?" in said else content

    with serve_requests(unreadable) as (url, _), dspy.context(lm=model(url, temperature=0.0)):
        better = BestPrompt(metric, budget=30, candidates=["Say the word again."]).compile(
            program("Word?"), trainset=EXAMPLES
        )
    assert better.signature.instructions == "Say the word again."


def test_what_cannot_be_meant_is_refused():
    own = {"first": "a", "second": "b"}
    with pytest.raises(ConfigError, match="whose instructions"):
        combinations(own, ["text"])
    with pytest.raises(ConfigError, match="No predictor is named 'third'"):
        combinations(own, [{"third": "c"}])
    with pytest.raises(ConfigError, match="625 combinations"):
        combinations(own, {name: [str(i) for i in range(24)] for name in own})
    with pytest.raises(ConfigError, match="trainset is empty"):
        BestPrompt(metric).compile(program(), trainset=[])
