"""The rules on words, with the shipped autoencoder's knowledge and examples of tasks that are not bundled."""

import pytest

from bestprompt.latent import Autoencoder
from bestprompt.search.wording import Wording, loses_content, repeated_stems, wrong_mark

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
        ("Look at the word.", "Look at the beginning of the word.", True),
        ("Name the tone.", "Name the tone and output nothing else.", False),  # how to answer may go
        ("Name the mood.", "Name the tone of the message.", False),  # not a shortened parent but another sentence
    ],
)
def test_a_shortened_parent_keeps_its_content(text: str, parent: str, lost: bool) -> None:
    assert loses_content(text, parent) == lost


def test_novelty_counts_what_no_example_writes(wording: Wording) -> None:
    assert wording.novelty(EXAMPLES[0]) == 0
    assert wording.novelty("Is this message positive or negative?") == 2


def test_one_example_allows_relatives_and_the_usual_additions() -> None:
    single = Wording.of(Autoencoder.pretrained(), ["Sort the words in alphabetical order."])
    assert single is not None
    assert single.fault("Arrange the words in alphabetical order. Output only the answer.", single.examples[0]) is None
    assert single.fault("Translate the sentences into French.", single.examples[0]) == "too different"


def test_an_autoencoder_without_words_has_no_rules() -> None:
    assert Wording.of(object(), EXAMPLES) is None


def test_repetition_is_counted_sentence_by_sentence() -> None:
    assert repeated_stems("Write the number as a number.") == {"numbe"}
    assert repeated_stems("Write the number. Answer with the number only.") == frozenset()
