"""Which label a chatty answer commits to; the games that a score by containment would lose."""

from __future__ import annotations

import pytest

from bestprompt.errors import ConfigError
from bestprompt.scoring import Label, build_scorer
from bestprompt.scoring.labels import committed_label
from bestprompt.testing import check_scorer
from bestprompt.types import Pair

MOODS = ("positive", "negative")


def test_keeps_the_contract() -> None:
    pair = Pair("Lovely.", "positive")
    check_scorer(Label(MOODS), pair, right="The sentiment is positive.", wrong="The sentiment is negative.")


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("positive", "positive"),
        ("The sentiment is positive.", "positive"),
        ("**Positive**", "positive"),
        ("POSITIVE!", "positive"),
        ("Sentiment: positive", "positive"),
        ("It is positive, not negative.", "positive"),
        ("Not negative but positive.", "positive"),
        ("I do not think this is negative; it is positive.", "positive"),
        ("Positive rather than negative.", "positive"),
        ("Positive. The reviewer has no negative remarks.", "positive"),
        ("Positive. Although some would call it negative, they are wrong.", "positive"),
        ("It could be positive or negative. Answer: negative", "negative"),
        ("There is something negative about it. Overall, it is positive", "positive"),
        ("positive or negative", None),
        ("Positive, negative", None),
        ("positive/negative", None),
        ("- positive\n- negative", None),
        ("positive\nnegative", None),
        ("Positive: joy. Negative: anger.", None),
        ("Answer: positive or negative", None),
        ("Answer: positive. Answer: negative.", None),
        ("not positive", None),
        ("It isn't positive.", None),
        ("positively", None),
        ("", None),
        ("I cannot say.", None),
    ],
)
def test_two_moods(text: str, label: str | None) -> None:
    assert committed_label(text, MOODS) == label


@pytest.mark.parametrize(
    ("text", "options", "label"),
    [
        ("This is not spam.", ("spam", "not spam"), "not spam"),
        ("This is spam.", ("spam", "not spam"), "spam"),
        ("not_spam", ("spam", "not spam"), "not spam"),
        ("This is not spam.", ("spam", "ham"), None),
        ("This is not a spam message, it is ham.", ("spam", "ham"), "ham"),
        ("unhappy", ("happy", "unhappy"), "unhappy"),
        ("The customer is unhappy.", ("happy", "sad"), None),
        ("10", ("1", "10"), "10"),
        ("The answer is 1.", ("1", "10"), "1"),
        ("1.5", ("1", "5"), None),
        ("-1", ("1", "-1"), "-1"),
        ("4/5", ("3", "4", "5"), "4"),
        ("I give it 4 out of 5 stars.", ("3", "4", "5"), "4"),
        ("Yes, there is no doubt.", ("yes", "no"), "yes"),
        ("No.", ("yes", "no"), "no"),
        ("yes or no", ("yes", "no"), None),
        ("Card arrival", ("card_arrival", "lost_card"), "card_arrival"),
        ("Neither positive nor negative: neutral.", (*MOODS, "neutral"), "neutral"),
        ("very positive", ("very positive", "positive"), "very positive"),
        ("(a+b)", ("(a+b)", "c"), "(a+b)"),
    ],
)
def test_labels_that_contain_each_other(text: str, options: tuple[str, ...], label: str | None) -> None:
    assert committed_label(text, options) == label


def test_echoing_all_labels_never_wins() -> None:
    scorer = Label(MOODS)
    for echo in ("positive, negative", "Is it positive or negative?", "positive negative", "[positive|negative]"):
        scores = scorer.score([echo] * 2, [Pair("a", "positive"), Pair("b", "negative")])
        assert [scored.value for scored in scores] == [0.0, 0.0], echo


@pytest.mark.parametrize("options", [[], "positive", [""]])
def test_options_are_a_list_of_texts(options: object) -> None:
    with pytest.raises(ConfigError, match="options"):
        build_scorer({"kind": "label", "options": options})
