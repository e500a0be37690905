from __future__ import annotations

from collections.abc import Sequence

import pytest

from bestprompt.errors import ConfigError, LMError, LMRefused, TaskError
from bestprompt.scoring import KINDS, Exact, FunctionScorer, Judge, Normalisation, Regex, build_scorer
from bestprompt.scoring.judge import parse_grade
from bestprompt.testing import check_scorer
from bestprompt.types import Completion, Pair, Request, Usage

PAIR = Pair("capital of France?", ("Paris", "paris city"))


class Scripted:
    """Replies by a rule; keeps what it was asked."""

    name = "scripted"
    fingerprint = "scripted"
    batch_size = concurrency = 4

    def __init__(self, *replies: str | LMError) -> None:
        self.replies = list(replies)
        self.asked: list[Request] = []

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        self.asked += requests
        taken = [self.replies.pop(0) for _ in requests]
        return [r if isinstance(r, LMError) else Completion(r, Usage(1, 50, 3)) for r in taken]

    def max_prompt_tokens(self, request: Request) -> int:
        return sum(len(message.content) for message in request.messages)


@pytest.mark.parametrize(
    ("reply", "grade"),
    [
        ("Grade: 7", 7),
        ("7", 7),
        ("7/10", 7),
        ("**Grade: 10**", 10),
        ("The grade is 4.5.", 4.5),
        ("Grade: 11", None),
        ("I saw 3 mistakes", None),
        ("", None),
        ("good", None),
    ],
)
def test_parse_grade(reply: str, grade: float | None) -> None:
    assert parse_grade(reply) == grade


def test_judge_shows_everything_and_counts_its_calls() -> None:
    lm = Scripted("Grade: 8")
    scored = Judge(lm).score(["It is {reference}"], [PAIR])[0]
    assert scored.value == 0.8
    assert scored.usage == Usage(1, 50, 3)
    question = lm.asked[0].messages[0].content
    assert "capital of France?" in question
    assert "Paris or paris city" in question
    assert "It is {reference}" in question  # an answer cannot fill in the judge's form


def test_an_unreadable_grade_is_asked_again_with_another_seed_and_paid() -> None:
    lm = Scripted("well", "Grade: 3", "hm", "Grade: 9")
    scores = Judge(lm).score(["a", "b"], [PAIR, PAIR])
    assert [s.value for s in scores] == [pytest.approx(0.9), pytest.approx(0.3)] or len(lm.asked) == 4
    assert scores[0].value == pytest.approx(0.9)
    assert scores[0].usage.calls == 3
    assert scores[1].usage.calls == 1
    assert [request.seed for request in lm.asked] == [0, 0, 1, 2]
    assert lm.asked[2].temperature > 0


def test_a_judge_that_never_grades_is_an_error_within_its_stated_maximum() -> None:
    lm = Scripted("no", "no", "no")
    judge = Judge(lm, attempts=3)
    with pytest.raises(LMError, match="scripted gave no grade"):
        judge.score(["x"], [PAIR])
    assert len(lm.asked) == judge.max_usage(PAIR, 16).calls == 3
    # The bound covers a question with the longest output in it.
    longest = lm.max_prompt_tokens(judge._request("x" * 16, PAIR))
    assert judge.max_usage(PAIR, 16).prompt_tokens >= 3 * longest


def test_a_failed_judge_call_is_passed_on() -> None:
    with pytest.raises(LMRefused):
        Judge(Scripted(LMRefused("no"))).score(["x"], [PAIR])


def test_judge_prompt_must_hold_its_placeholders() -> None:
    with pytest.raises(ConfigError, match=r"\{output\}"):
        Judge(Scripted(), prompt="{input} {reference}")
    assert Judge(Scripted()).fingerprint != Judge(Scripted(), max_tokens=5).fingerprint


# --------------------------------------------------------------------------------------------------------- functions
def half(output: str, pair: Pair) -> float:
    return 0.5 if output in pair.references else 0.0


def test_any_function() -> None:
    scorer = FunctionScorer(half)
    assert [s.value for s in scorer.score(["Paris", "Rome"], [PAIR, PAIR])] == [0.5, 0.0]
    assert scorer.max_usage(PAIR, 10) == Usage()
    assert "half" in scorer.fingerprint
    assert FunctionScorer(half, name="mine").fingerprint == "function:mine"
    assert FunctionScorer(lambda o, p: 0.0).fingerprint != FunctionScorer(lambda o, p: 1.0).fingerprint


@pytest.mark.parametrize("bad", [1.5, -0.1, float("nan"), "x", None])
def test_a_function_must_return_a_score(bad: object) -> None:
    with pytest.raises(TaskError, match="from 0 to 1"):
        FunctionScorer(lambda output, pair: bad).score(["x"], [PAIR])  # type: ignore[arg-type,return-value]


# ----------------------------------------------------------------------------------------------------------- factory
NEEDED = {"regex": {"pattern": "^paris$"}, "label": {"options": ["Paris", "Rome"]}}


def test_every_kind_is_built_and_scores_in_range() -> None:
    class Lm(Scripted):
        def embed(self, texts: Sequence[str]) -> object:
            import numpy as np

            return np.array([[len(text), 1.0] for text in texts])

    texts = ["Paris is a city", "capital of France?"]
    for kind in KINDS:
        spec = {"kind": kind, **NEEDED.get(kind, {})}
        scorer = build_scorer(spec, lm=Lm("Grade: 10"), texts=texts)
        assert scorer.fingerprint.startswith(f"{kind}:")
        assert type(scorer).kind == kind
        assert 0 <= scorer.score(["Paris"], [CAPITAL])[0].value <= 1


CAPITAL = Pair("q", ("Paris",), {"options": ["Paris", "Rome"], "assert": [{"type": "equals", "value": "Paris"}]})
JUDGED: dict[str, tuple[Pair, str, str]] = {
    "number": (Pair("2 + 2", ("4",)), "4", "5"),
    "number-words": (Pair("2 + 2", ("4",)), "four", "five"),
    "letter": (Pair("paris", ("P",)), "P", "R"),
    "positions": (Pair("order", ("a, b, c",)), "a, b, c", "c, a, b"),
}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("judge", "embedding", "word2vec")])
def test_every_kind_that_needs_no_model_keeps_the_contract(kind: str) -> None:
    spec = {"kind": kind, **NEEDED.get(kind, {})}
    scorer = build_scorer(spec, texts=["Paris is a city", "Rome is a city", "capital of France?"])
    check_scorer(scorer, *JUDGED.get(kind, (CAPITAL, "Paris", "Rome")))


def test_tables_functions_and_ready_scorers() -> None:
    built = build_scorer({"kind": "exact", "extract": "quoted", "normalisation": {"case": False}})
    assert built == Exact(extract="quoted", normalisation=Normalisation(case=False))
    assert build_scorer({"kind": "regex", "pattern": "x"}) == Regex("x")
    assert build_scorer(built) is built
    assert isinstance(build_scorer(half), FunctionScorer)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("exat", "did you mean 'exact'"),
        ({"kind": "rougel"}, "did you mean 'rouge-l'"),
        ({}, "unknown"),
        ({"kind": "regex"}, "pattern"),
        ({"kind": "regex", "pattern": 3}, "type str"),
        ({"kind": "regex", "patern": "x"}, "did you mean 'pattern'"),
        ({"kind": "exact", "normalisation": {"cases": True}}, "did you mean 'case'"),
        ({"kind": "exact", "normalisation": {"case": "no"}}, "type bool"),
        ({"kind": "exact", "normalisation": True}, "must be a table"),
        ({"kind": "tf-idf", "texts": ["a"]}, "unknown setting"),
        ("judge", "needs a language model"),
        ("embedding", "embeds texts"),
        ("tf-idf", "needs texts"),
    ],
)
def test_what_is_refused(spec: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        build_scorer(spec)  # type: ignore[arg-type]
