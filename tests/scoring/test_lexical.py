from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bestprompt.errors import ConfigError
from bestprompt.scoring import Contains, EditSimilarity, Exact, Normalisation, Regex, RougeL, TextScorer, TokenF1
from bestprompt.types import Pair


def value(scorer: TextScorer, output: str, *references: str) -> float:
    return scorer.score([output], [Pair("question", references)])[0].value


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("  It's a *Cat*. ", "its a cat"),
        ("Forty-Seven", "forty seven"),
        ("3.5", "3.5"),
        ("1,000,000.", "1,000,000"),
        ("-3", "-3"),
        ("-.5", "-.5"),
        ("x-3", "x 3"),
        ("50 %", "50 %"),
        ("ﬁne", "fine"),
        ("tab\tand\nline", "tab and line"),
    ],
)
def test_normalisation(text: str, normal: str) -> None:
    assert Normalisation().apply(text) == normal


def test_each_setting_of_the_normalisation_can_be_turned_off() -> None:
    keep = Normalisation(case=False, punctuation=False, whitespace=False, unicode=False)
    assert keep.apply(" The ﬁrst,  Cat! ") == " The ﬁrst,  Cat! "
    assert Normalisation(articles=True).apply("The cat and a dog") == "cat and dog"
    assert Normalisation(case=False).apply("Cat.") == "Cat"
    assert Normalisation(punctuation=False).apply("Cat.") == "cat."


def test_a_text_of_marks_only_does_not_vanish() -> None:
    assert value(Exact(), "?", "!") == 0
    assert value(Exact(), " ! ", "!") == 1


def test_a_sign_or_a_decimal_point_is_a_difference() -> None:
    assert value(Exact(), "-3", "3") == 0
    assert value(Exact(), "35", "3.5") == 0


def test_exact_takes_the_best_reference() -> None:
    assert value(Exact(), "The Hague.", "amsterdam", "the hague") == 1
    assert value(Exact(), "Hague", "the hague") == 0


def test_contains_wants_whole_words() -> None:
    assert value(Contains(), "the cat sat", "cat") == 1
    assert value(Contains(), "concatenate", "cat") == 0
    assert value(Contains(), "new old york", "New York") == 0
    assert value(Contains(), "", "cat") == 0


def test_token_f1_by_hand() -> None:
    # shared {the, cat}; P = 2/3, R = 2/4
    assert value(TokenF1(), "the cat ran", "the black cat slept") == pytest.approx(2 * (2 / 3) * 0.5 / (2 / 3 + 0.5))
    assert value(TokenF1(), "cat cat cat", "cat") == pytest.approx(0.5)
    assert value(TokenF1(), "dog", "cat") == 0


def test_edit_similarity_by_hand() -> None:
    assert value(EditSimilarity(), "kitten", "sitting") == pytest.approx(1 - 3 / 7)


def test_rouge_l_by_hand() -> None:
    # longest common subsequence "police the gunman" of 4 and 4 tokens
    assert value(RougeL(), "police kill the gunman", "police killed the gunman") == pytest.approx(0.75)
    assert value(RougeL(), "the gunman kill police", "police killed the gunman") == pytest.approx(0.5)


def test_extraction_settings() -> None:
    assert value(Exact(extract="last-line"), "thinking...\n\nParis\n", "paris") == 1
    assert value(Exact(extract="first-line"), "\nParis\nbecause", "paris") == 1
    assert value(Exact(extract="quoted"), 'It is "Paris".', "paris") == 1
    assert value(Exact(extract="after-colon"), "Answer: Paris", "paris") == 1
    assert value(Exact(extract="quoted"), "Paris", "paris") == 0
    with pytest.raises(ConfigError, match="first-line"):
        Exact(extract="firstline")


def test_regex() -> None:
    assert value(Regex(r"answer:\s*(\w+)"), "Answer: x\nanswer: Paris", "paris") == 1
    assert value(Regex(r"answer:\s*(\w+)"), "Answer: Rome", "paris") == 0
    assert value(Regex(r"^\d+$"), "12", "anything") == 1
    assert value(Regex(r"\b{reference}\b"), "so (a+b) it is", "zzz", "a+b") == 1
    assert value(Regex(r"[a-z]", ignore_case=False), "ABC", "x") == 0
    with pytest.raises(ConfigError, match="regular expression"):
        Regex("(")


SCORERS = [Exact(), Contains(), TokenF1(), EditSimilarity(), RougeL()]


@pytest.mark.parametrize("scorer", SCORERS, ids=lambda s: s.kind)
@settings(max_examples=40, deadline=None)
@given(output=st.text(max_size=40), references=st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=3))
def test_range_and_identity(scorer: TextScorer, output: str, references: list[str]) -> None:
    pair = Pair("q", tuple(references))
    scored = scorer.score([output], [pair])[0].value
    assert 0 <= scored <= 1
    alone = [scorer.score([output], [Pair("q", (reference,))])[0].value for reference in references]
    assert scored == max(alone)
    if references[0].strip():
        assert scorer.score([references[0]], [pair])[0].value == pytest.approx(1)


def test_fingerprints_cover_every_setting() -> None:
    scorers = [
        *SCORERS,
        Exact(extract="quoted"),
        Exact(normalisation=Normalisation(case=False)),
        Regex("a"),
        Regex("b"),
        Regex("a", ignore_case=False),
    ]
    assert len({scorer.fingerprint for scorer in scorers}) == len(scorers)
    assert Exact().fingerprint == Exact().fingerprint
