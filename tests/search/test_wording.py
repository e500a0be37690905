"""The rules on words, with the shipped autoencoder's knowledge and examples of tasks that are not bundled."""

import pytest

from bestprompt.latent import Autoencoder
from bestprompt.search.wording import (
    Wording,
    loses_content,
    loses_options,
    options,
    repeated_stems,
    torn,
    unfinished,
    wrong_mark,
)

EXAMPLES = [
    "Is this review positive or negative?",
    "Classify the sentiment of the following review.",
    "Tell me about this review. Answer with one word.",
    "Judge the tone of the message and nothing but the tone.",
]


@pytest.fixture(scope="module")
def wording() -> Wording:
    made = Wording.of(Autoencoder.pretrained(), EXAMPLES)
    assert made is not None
    return made


@pytest.mark.parametrize("text", EXAMPLES)
def test_what_an_example_does_is_no_fault(wording: Wording, text: str) -> None:
    assert wording.fault(text, EXAMPLES[0]) is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Is the given message positive or negative?", None),
        ("Give the sentiment of the review. Do not explain.", None),
        ("Identify the tone of the following message and write only the answer.", None),
        ("Classify the review.", "too different"),  # the parent without its object
        ("Classify the sentiment of the following review?", "broken"),
        ("Is this review of?", "broken"),
        ("Classify review the sentiment.", "broken"),
        ("Classify the review of the review.", "broken"),  # no example says it twice
        ("Judge the tone of the review and nothing but the tone.", None),  # an example does
        ("Classify the capital of the following review.", "too different"),
        ("Classify the sentiment of the following list.", "too different"),  # a word of asking as a noun
        ("Classify the Sentiment of the following review.", "broken"),
        ("Is this review positive?", "too different"),  # one of two options
        ("Should the review be positive or negative.", "broken"),
        ("Translate the sentiment of the following review.", "too different"),
    ],
)
def test_faults_of_readings(wording: Wording, text: str, fault: str | None) -> None:
    assert wording.fault(text, EXAMPLES[1]) == fault


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("What is the tone.", True), ("Judge the tone?", True), ("What is the tone?", False), ("Judge the tone.", False),
     ("What is the tone? Answer with one word.", False), ("", False)],
)  # fmt: skip
def test_marks_fit_the_kind_of_sentence(text: str, wrong: bool) -> None:
    assert wrong_mark(text) == wrong


@pytest.mark.parametrize(
    ("text", "parent", "lost"),
    [
        ("Look at the word.", ["Look at the beginning of the word."], True),
        ("Name the tone.", ["Name the tone and output nothing else."], False),  # how to answer may go
        ("Name the mood.", ["Name the tone of the message."], False),  # not a shortened parent but another sentence
        (
            "Name the tone.",
            ["Name the tone of the text.", "Name the tone only."],
            False,
        ),  # a version that loses nothing
    ],
)
def test_a_shortened_parent_keeps_its_content(text: str, parent: list[str], lost: bool) -> None:
    assert loses_content(text, parent) == lost


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("Choose red, green or blue.", False),
        ("Pick a colour.", False),
        ("Choose red or blue.", True),
        ("Choose red.", True),
        ("Is it light or dark? Choose red.", False),  # the list of another example is whole
        ("Say light.", False),  # one word of a list that is not the parent's
    ],
)
def test_options_stay_together(text: str, lost: bool) -> None:
    assert loses_options(text, ["Choose red, green, or blue.", "light/dark?"]) == lost


def test_a_list_is_what_can_be_chosen_from() -> None:
    assert options("Sort it: yes, no or maybe.") == [{"yes", "no", "maybe"}]
    assert options("Read the text and write it.") == []


@pytest.mark.parametrize(
    ("text", "is_torn"),
    [("Read the complain.", True), ("Read the ref.", True), ("Read the complaint.", False),
     ("Read the refunds.", False), ("Refund it.", False), ("Read the item.", False)],
)  # fmt: skip
def test_a_beginning_of_a_word_is_no_word(text: str, is_torn: bool) -> None:
    assert torn(text, {"complaint", "refund", "items", "refunding"}) == is_torn


@pytest.mark.parametrize(
    ("text", "stops"),
    [("Give the name of.", True), ("Name the. Now!", True), ("Which one is it of?", True), ("Go on.", False)],
)
def test_sentences_come_to_their_noun(text: str, stops: bool) -> None:
    assert unfinished(text) == stops


def test_novelty_counts_what_no_example_writes(wording: Wording) -> None:
    assert wording.novelty(EXAMPLES[0]) == 0
    assert wording.novelty("Is this message positive or negative?") == 2


def test_one_example_allows_relatives_and_the_usual_additions() -> None:
    single = Wording.of(Autoencoder.pretrained(), ["Sort the words in alphabetical order."])
    assert single is not None
    assert single.fault("Arrange the words in alphabetical order. Output only the answer.", single.examples[0]) is None
    assert single.fault("Translate the sentences.", single.examples[0]) == "too different"


def test_an_autoencoder_without_words_has_no_rules() -> None:
    assert Wording.of(object(), EXAMPLES) is None


def test_repetition_is_counted_sentence_by_sentence() -> None:
    assert repeated_stems("Write the number as a number.") == {"numbe": 2}
    assert repeated_stems("Write the number. Answer with the number only.") == {}
    assert repeated_stems("Write only the number only.") == {"only": 2}
