"""Which score is proposed for which data."""

from __future__ import annotations

import pytest

from bestprompt.scoring import propose_length, propose_score
from bestprompt.types import Pair


def pairs(*answers: str) -> list[Pair]:
    return [Pair(f"input {n}", answer) for n, answer in enumerate(answers)]


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        (["positive", "negative", "Positive", "negative"], "label"),
        (["spam", "not spam"] * 5, "label"),
        (["0", "1"] * 5, "label"),
        (["1", "2", "3", "4", "5"] * 4, "label"),
        ([str(n % 12) for n in range(60)], "number"),
        (["3.5", "4.5"] * 4, "number"),
        ([str(17 * n) for n in range(8)], "number"),
        (["$12", "$14.50", "€3"], "number"),
        (["Paris", "Berlin", "Rome", "New York City"], "contains"),
        (["same"] * 10, "contains"),
        ([f"a sentence of about seven words {n}" for n in range(9)], "f1"),
        ([" ".join(["word"] * 40) + str(n) for n in range(9)], "rouge-l"),
    ],
)
def test_what_is_proposed(answers: list[str], kind: str) -> None:
    assert propose_score(pairs(*answers)).spec["kind"] == kind


def test_options_of_each_pair_are_chosen_from() -> None:
    made = [Pair("a", "x", {"options": ["x", "y"]}), Pair("b", "y", {"options": ["x", "y"]})]
    assert propose_score(made).spec == {"kind": "choice"}


def test_the_labels_are_those_of_the_data() -> None:
    proposal = propose_score(pairs("positive", "negative", " Positive", "negative", "negative"))
    assert proposal.spec["options"] == ["negative", "positive"]
    assert "negative, positive" in proposal.sentence


def test_long_answers_get_room() -> None:
    assert propose_length(pairs("yes", "no")) == 32
    assert propose_length(pairs("yes")) == 32
    assert propose_length(pairs(*["word " * 80] * 5)) == 192
