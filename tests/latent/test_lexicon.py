"""What counts as a word, and what a user's own texts add."""

import gzip
from pathlib import Path

import pytest

from bestprompt.latent.lexicon import Lexicon, chunks, read_lexicon, word_of, write_lexicon

LEXICON = Lexicon(frozenset({"sort", "the", "words", "don't", "e.g", "French", "well-known", "or"}))


@pytest.mark.parametrize(
    ("chunk", "word"),
    [
        ("words", "words"), ('("words").', "words"), ("don't,", "don't"), ("word(s),", "word(s)"), ("(words)", "words"),
        ("{name}.", "{name}"), ("**bold**", "**bold**"), ("e.g.,", "e.g"), ("?!", ""), ("->", "->"),
    ],
)  # fmt: skip
def test_a_word_is_what_stands_between_marks(chunk: str, word: str) -> None:
    assert word_of(chunk) == word


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ('Sort the "words".', []),
        ("Sort -> words, e.g. French words or (well-known) words...", []),
        ("Don't sort: The french words", ["french"]),
        ("sor the wordss", ["sor", "wordss"]),
        ("Sortthe words-or", ["Sortthe", "words-or"]),
        ("THE words", ["THE"]),
    ],
)
def test_unattested_words_are_named(text: str, unknown: list[str]) -> None:
    assert LEXICON.unattested(text) == unknown


def test_the_words_of_a_users_texts_become_attested() -> None:
    texts = ["Reimburse {name}  in Köln 🎉", "The ISO-8601 date, 按字母。"]
    wider = LEXICON.with_words_of(texts)
    assert [wider.unattested(text) for text in texts] == [[], []]
    assert wider.unattested("Words reimburse: (ISO-8601) 母字, {name}, date 🎉") == []  # a first word loses its capital
    assert wider.unattested("köln reimbursement iso-8601 {other} 字x") == [
        "köln", "reimbursement", "iso-8601", "{other}", "字x",
    ]  # fmt: skip


def test_chunks_keep_what_separates_them() -> None:
    assert list(chunks(" a  b\n\tc ")) == [" a", "  b", "\n\tc"]


def test_equal_words_make_equal_files(tmp_path: Path) -> None:
    for name, words in (("a", ["b", "a"]), ("b", ["a", "b"])):
        write_lexicon(words, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert read_lexicon(tmp_path / "a").words == {"a", "b"}
    assert gzip.decompress((tmp_path / "a").read_bytes()) == b"a\nb"
