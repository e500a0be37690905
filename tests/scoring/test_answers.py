"""The strict scores: right answers in the words models use, and the games that must not pay."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.errors import ConfigError, TaskError
from bestprompt.scoring import Choice, Letter, Number, NumberWords, Positions, TextScorer
from bestprompt.scoring.extraction import numbers, options_named, single_letter
from bestprompt.types import Pair


def value(scorer: TextScorer, output: str, reference: str, **meta: object) -> float:
    return scorer.score([output], [Pair("question", (reference,), meta)])[0].value


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B", "b"),
        ("The first letter is 'B'.", "b"),
        ("**T**", "t"),
        ('The first letter of the word "apple" is "a".', "a"),
        ("The first letter of a word is b.", "b"),
        ("I think it is Q", "q"),
        ("A is the first letter", "a"),
        ("a", "a"),
        ("a b c d e", None),
        ("A, B, C", None),
        ("T-r-e-e", None),
        ("'a' or 'b'", None),
        ("apple", None),
        ("", None),
        ("It's b", "b"),
    ],
)
def test_single_letter(text: str, letter: str | None) -> None:
    assert single_letter(text) == letter


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("forty-seven", [47]),
        ("one hundred and five, 12", [105, 12]),
        ("two and three", [2, 3]),
        ("one thousand, two hundred and twelve", [1212]),
        ("Nine hundred ninety-nine thousand nine hundred ninety-nine", [999_999]),
        ("one two three", [1, 2, 3]),
        ("1,234 and -5.5", [1234, -5.5]),
        ("zero", [0]),
        ("sixty sixteen six", [60, 16, 6]),
        ("12apples, someone, weight, fortyseven, x2", []),
        ("2 + 3 = 5.", [2, 3, 5]),
    ],
)
def test_numbers(text: str, values: list[float]) -> None:
    assert [mention.value for mention in numbers(text)] == values


def test_options_are_whole_words_in_order_of_mention() -> None:
    assert options_named("A polar bear beats an ant; polar bears", ["ant", "bear", "polar bear"]) == [
        "polar bear",
        "ant",
    ]
    assert options_named("elephantine giant", ["elephant", "ant"]) == []


def test_choice() -> None:
    options = ["ant", "horse", "cat"]
    assert value(Choice(), "The largest animal is the Horse.", "horse", options=options) == 1
    assert value(Choice(), "cat", "horse", options=options) == 0
    assert value(Choice(), "the horse is larger than the cat", "horse", options=options) == 0
    assert value(Choice("first"), "the horse is larger than the cat", "horse", options=options) == 1
    assert value(Choice("first"), "ant, horse, cat", "horse", options=options) == 0
    with pytest.raises(TaskError, match="options"):
        value(Choice(), "horse", "horse")
    with pytest.raises(ConfigError, match="rule"):
        Choice("last")  # type: ignore[arg-type]


def test_number() -> None:
    assert value(Number(), "2 + 3 = 5. The total is five.", "5") == 1
    assert value(Number(), "There are 5 of 6", "5") == 0
    assert value(Number(), "many", "5") == 0
    assert value(Number(), "1,000", "1000") == 1


def test_number_words_wants_words() -> None:
    assert value(NumberWords(), "47 is forty-seven.", "forty-seven") == 1
    assert value(NumberWords(), "One Hundred Five", "one hundred and five") == 1
    assert value(NumberWords(), "47", "forty-seven") == 0
    assert value(NumberWords(), "forty-eight", "forty-seven") == 0


def test_positions_by_hand() -> None:
    reference = "ant bee cat dog"
    assert value(Positions(), "Ant, bee, cat, dog", reference) == 1
    assert value(Positions(), "1. ant\n2. bee\n3. dog\n4. cat", reference) == pytest.approx(1 / 3)
    assert value(Positions(), "ant dog bee cat", reference) == 0
    assert value(Positions(), "ant", reference) == 0
    assert value(Positions(), "ant ant bee bee cat dog", reference) == 1  # repetitions are read once
    assert value(Positions(), "nothing of the kind", reference) == 0


# ------------------------------------------------------------------------------------------------- games that must lose
def test_reciting_the_alphabet_or_stray_letters_earn_no_more_than_guessing() -> None:
    pairs = [Pair(f"{letter}word", (letter,)) for letter in "abcdefghijklmnopqrstuvwxyz"]
    games = ["a b c d e f g h i j k l m n o p q r s t u v w x y z", "a a a", "I", "A/B/C", "e, t"]
    for game in games:
        assert np.mean([s.value for s in Letter().score([game] * 26, pairs)]) <= 1 / 26
    spelled = [" ".join(pair.input) for pair in pairs]
    assert np.mean([s.value for s in Letter().score(spelled, pairs)]) == 0


def test_listing_all_numbers_earns_no_more_than_guessing() -> None:
    pairs = [Pair(f"q{n}", (str(n),)) for n in range(1, 21)]
    game = " ".join(str(n) for n in range(1, 21))
    assert sum(s.value for s in Number().score([game] * 20, pairs)) <= 1
    words = [Pair(f"q{n}", (word,)) for n, word in enumerate(["one", "two", "three", "four"])]
    assert sum(s.value for s in NumberWords().score(["one two three four"] * 4, words)) <= 1


def test_echoing_all_options_earns_nothing_or_chance() -> None:
    options = ["ant", "horse", "cat"]
    pairs = [Pair(f"q{option}", (option,), {"options": options}) for option in options]
    for game in (", ".join(options), "cat horse ant", "ant or horse or cat? cat"):
        assert sum(s.value for s in Choice().score([game] * 3, pairs)) == 0
        assert sum(s.value for s in Choice("first").score([game] * 3, pairs)) == 1


def test_a_random_order_earns_little_and_no_listing_trick_beats_it() -> None:
    words = ["ant", "bee", "cat", "dog"]
    pair = Pair("q", (" ".join(words),))
    rng = np.random.default_rng(0)
    shuffled = [" ".join(rng.permutation(words)) for _ in range(2000)]
    chance = np.mean([s.value for s in Positions().score(shuffled, [pair] * 2000)])
    assert chance < 0.15
    repeated = [" ".join(rng.choice(words, size=40)) for _ in range(2000)]
    assert np.mean([s.value for s in Positions().score(repeated, [pair] * 2000)]) < chance + 0.02
