import pytest

from bestprompt.errors import SearchError
from bestprompt.latent.sentences import split_sentences, varied_sentence

TEXT = "Be kind. You are a helpful person. Sort all the words!\nDone?"


def test_sentences_end_at_marks_and_line_breaks() -> None:
    assert split_sentences(TEXT) == ["Be kind.", "You are a helpful person.", "Sort all the words!", "Done?"]


def test_the_instruction_of_a_long_text_moves() -> None:
    before, varied, after = varied_sentence(TEXT, lambda part: len(part) < 40)
    assert (before, varied, after) == ("Be kind. You are a helpful person. ", "Sort all the words!", "\nDone?")


def test_without_an_instruction_the_longest_moves() -> None:
    text = "Be kind. You are a helpful person. Bye."
    assert varied_sentence(text, lambda part: len(part) < 30)[1] == "You are a helpful person."


def test_a_text_that_fits_moves_as_a_whole() -> None:
    assert varied_sentence(" Sort. ", lambda part: True) == ("", "Sort.", "")


@pytest.mark.parametrize("text", [TEXT, "", "  "])
def test_what_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(SearchError, match="cannot represent"):
        varied_sentence(text, lambda part: False)
