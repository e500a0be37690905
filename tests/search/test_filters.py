import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestprompt.search.filters import content_stems, looks_whole, near_duplicate, plain, subject, word_similarity


@given(st.text(max_size=60), st.text(max_size=60))
def test_similarity_is_symmetric_and_in_the_unit_interval(a: str, b: str) -> None:
    assert 0.0 <= word_similarity(a, b) <= 1.0
    assert word_similarity(a, b) == pytest.approx(word_similarity(b, a))


def test_similarity_orders_paraphrase_before_other_task() -> None:
    base = "Sort the words in alphabetical order."
    assert word_similarity(base, base) == 1.0
    close = word_similarity(base, "Put the words into alphabetical order.")
    assert 1.0 > close > word_similarity(base, "Which animal is larger?")


def test_the_subject_is_what_examples_share() -> None:
    about = subject(("Alphabetize the list.", "Put the words in alphabetical order.", "Rewrite these words."))
    assert about == {"alpha", "words"}
    assert about & content_stems("Sort all words.")
    assert not about & content_stems("Put the numbers in the following order.")


def test_near_duplicates_differ_in_case_and_punctuation_only() -> None:
    known = [plain("Sort the following words alphabetically.")]
    assert near_duplicate(plain("sort the following words, alphabetically!"), known)
    assert not near_duplicate(plain("Write the first letter of the word."), known)
    assert not near_duplicate("anything", [])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "...",
        "Sort the the words.",
        "Sort the words sort the words sort the words.",
        "Sort in order in order from A.",
        "One line, no explanation, no explanation.",
    ],
)
def test_broken_decodes_are_seen(text: str) -> None:
    assert not looks_whole(text)


@pytest.mark.parametrize(
    "text", ["Sort the words.", "First letter:", "Convert.", "Is the first word the longest word?"]
)
def test_whole_decodes_pass(text: str) -> None:
    assert looks_whole(text)


def test_the_child_of_a_prompt_without_an_end_mark_needs_none() -> None:
    assert looks_whole("order the words", "sort the words")
    assert not looks_whole("order the words", "Sort the words.")
    assert not looks_whole("order the the words", "sort the words")
