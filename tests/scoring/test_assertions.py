"""Assertions as promptfoo checks them."""

from __future__ import annotations

import pytest

from bestprompt.errors import TaskError
from bestprompt.scoring import build_scorer
from bestprompt.scoring.assertions import holds, python_pattern
from bestprompt.testing import check_scorer
from bestprompt.types import Pair

# type, value, an output that meets it, one that does not; the same in promptfoo (tests/integrations/test_promptfoo.py).
CASES = [
    ("equals", "Paris", "Paris", "Paris."),
    ("equals", 4, "4", "four"),
    ("contains", "Paris", "It is Paris.", "It is paris."),
    ("icontains", "Paris", "IT IS PARIS", "It is Rome."),
    ("contains-all", ["a", "b"], "b and a", "only a"),
    ("contains-any", ["x", "b"], "b and a", "only a"),
    ("icontains-all", ["A", "b"], "B and a", "only A"),
    ("icontains-any", ["X", "b"], "B and a", "only A"),
    ("starts-with", "It", "It is", "it is"),
    ("regex", r"^\d{2}$", "42", "42\n"),
    ("regex", r"a.c", "abc", "a\rc"),
    ("regex", r"^\s\w+[\s.]$", "\u00a0ab\u2003", " ä "),
    ("regex", r"(?<!no )(yes|ja)(?= please)", "ja please", "no yes please"),
    ("is-json", None, '{"a": [1]}', "{'a': 1}"),
    ("is-json", None, "3", "NaN"),
]


@pytest.mark.parametrize(("kind", "value", "right", "wrong"), CASES)
def test_an_assertion_holds_or_does_not(kind, value, right, wrong):
    assertion = {"type": kind, "value": value}
    assert holds(assertion, right)
    assert not holds(assertion, wrong)
    turned = {"type": f"not-{kind}", "value": value}
    assert not holds(turned, right)
    assert holds(turned, wrong)


def test_all_assertions_of_a_pair_must_hold():
    asserts = [{"type": "contains", "value": "a"}, {"type": "not-contains", "value": "b"}]
    scorer, pair = build_scorer("assertions"), Pair("x", ("a",), {"assert": asserts})
    check_scorer(scorer, pair, right="an a", wrong="a and b")
    with pytest.raises(TaskError, match="has no assertions"):
        scorer.score(["x"], [Pair("x", ("a",))])


@pytest.mark.parametrize(
    ("assertion", "said"),
    [
        ({"type": "llm-rubric", "value": "is kind"}, "has no equal here"),
        ({"type": "contains-any", "value": "a, b"}, "needs a list"),
        ({"type": "equals", "value": {"a": 1}}, "needs a text or number"),
        ({"type": "is-json", "value": {"type": "object"}}, "with a schema"),
        ({"value": "x"}, "needs a type"),
    ],
)
def test_what_cannot_be_checked_is_refused(assertion, said):
    with pytest.raises(TaskError, match=said):
        holds(assertion, "x")


@pytest.mark.parametrize("pattern", [r"(?<year>\d)", r"(a)\1", r"(?P<x>a)", r"\p{L}", "[]", "(", r"\A", r"[\S]"])
def test_a_regular_expression_that_means_something_else_is_refused(pattern):
    with pytest.raises(TaskError, match="does not mean the same"):
        python_pattern(pattern)
