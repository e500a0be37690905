"""What the corpus knows of words, as shipped beside the weights."""

import pytest

from bestprompt.latent import Autoencoder
from bestprompt.latent.training.publish import OFTEN, followers
from bestprompt.latent.words import BEGIN, END, Words, pairs, read_pairs


@pytest.fixture(scope="module")
def known() -> Words:
    return Autoencoder.pretrained().words()


def test_a_last_word_of_grammar_counts_with_its_mark() -> None:
    assert pairs("Start with?") == [(BEGIN, "start"), ("start", "with?"), ("with?", END)]
    assert pairs("Sort it.") == [(BEGIN, "sort"), ("sort", "it"), ("it", "."), (".", END)]


def test_only_words_in_frequent_use_are_listed() -> None:
    found = followers(["Sort the words."] * OFTEN + ["Order the words."] * 2 + ["Order the wrds."])
    assert found["the"] == ["words"]  # what stands there once may be a slip
    assert found[BEGIN] == ["order", "sort"]
    assert "order" not in found


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("Sort the words in alphabetical order.", True),
        ("Which letter does the word start with?", True),
        ("What is the total number of?", False),
        ("Organize list the list.", False),
        ("What many objects are there?", False),
        ("Pick a animal.", False),
        ("Spell number.", False),
        ("Trie les mots par ordre alphabétique.", True),  # other languages are not judged
    ],
)
def test_unheard_pairs_are_seen(known: Words, text: str, fine: bool) -> None:
    assert any(known.unheard(a, b) for a, b in pairs(text)) != fine


def test_words_that_are_used_alike_are_close(known: Words) -> None:
    assert known.likeness("arrange", ["sort", "number"]) == pytest.approx(known.likeness("arrange", ["sort"]))
    assert known.likeness("creature", ["animal"]) > 0.5 > known.likeness("python", ["number", "words"])
    assert known.likeness("sort", []) == -1.0
    assert known.vector("🙂") @ known.vector("🙂") == pytest.approx(1.0)


def test_without_a_file_nothing_is_unheard(known: Words, tmp_path: object) -> None:
    nothing = Words(read_pairs(tmp_path / "none.txt"), known.codec, known.table)  # type: ignore[operator]
    assert not nothing.unheard("spell", "number")
