from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from bestprompt.errors import ConfigError, MissingExtraError
from bestprompt.scoring import EmbeddingCosine, TfCosine, TfIdfCosine, Word2VecCosine, word2vec
from bestprompt.types import FloatArray, Pair

TEXTS = ("the cat sat", "the dog ran", "the cat and the dog slept", "a bird sang")


def test_tf_cosine_by_hand() -> None:
    # (2, 1, 0) · (1, 0, 1) = 2; norms √5, √2
    assert TfCosine().compare("cat cat dog", "cat bird") == pytest.approx(2 / np.sqrt(10))
    assert TfCosine().compare("dog", "cat") == 0


def test_tf_idf_agrees_with_the_library_on_known_words() -> None:
    scorer = TfIdfCosine(texts=TEXTS)
    vectors = TfidfVectorizer(analyzer=str.split).fit(TEXTS).transform(["the cat slept", "the dog slept"]).toarray()
    assert scorer.compare("the cat slept", "the dog slept") == pytest.approx(float(vectors[0] @ vectors[1]))


def test_tf_idf_common_words_count_less_and_unknown_words_do_count() -> None:
    scorer = TfIdfCosine(texts=TEXTS)
    assert scorer.compare("the zebra", "the cat") < TfCosine().compare("the zebra", "the cat")
    assert scorer.compare("zebra", "zebra") == pytest.approx(1)
    assert scorer.compare("the cat zebra zebra", "the cat") < scorer.compare("the cat", "the cat")


def test_tf_idf_needs_texts_and_its_identity_covers_them() -> None:
    with pytest.raises(ConfigError, match="texts"):
        TfIdfCosine()
    assert TfIdfCosine(texts=TEXTS).fingerprint != TfIdfCosine(texts=TEXTS[:2]).fingerprint


class Directions:
    """Embeds a text as the counts of its letters a, b, c, minus one for texts with an x."""

    fingerprint = "directions"

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> FloatArray:
        self.batches.append(list(texts))
        return np.array([[text.count(c) - text.count("x") for c in "abc"] for text in texts], float)


def test_embedding_cosine_embeds_each_text_once() -> None:
    embedder = Directions()
    pairs = [Pair("q1", ("aab", "c")), Pair("q2", ("aab",)), Pair("q3", ("aab",))]
    scores = [s.value for s in EmbeddingCosine(embedder).score(["ab", "x", ""], pairs)]
    assert scores[0] == pytest.approx(3 / np.sqrt(10))
    assert scores[1] == 0  # an opposite direction is no better than none
    assert scores[2] == 0  # nothing written, nothing embedded
    assert embedder.batches == [["ab", "x", "aab", "c"]]


def test_embedding_floor_stretches_the_scale() -> None:
    pair = Pair("q", ("aab",))
    stretched = EmbeddingCosine(Directions(), floor=0.9).score(["ab", "aab"], [pair, pair])
    assert stretched[0].value == pytest.approx((3 / np.sqrt(10) - 0.9) / 0.1)
    assert stretched[1].value == pytest.approx(1)
    with pytest.raises(ConfigError, match="floor"):
        EmbeddingCosine(Directions(), floor=1.0)


# --------------------------------------------------------------------------------------------------------- Word2Vec
CORPUS = tuple(
    f"the {animal} {verb} in the {place}"
    for animal in ("cat", "dog", "horse", "cow")
    for verb in ("sleeps", "eats", "runs")
    for place in ("garden", "field", "barn")
) + tuple(
    f"{number} plus {other} is a sum"
    for number in ("one", "two", "three", "four")
    for other in ("five", "six", "seven", "eight")
)


@pytest.mark.parametrize("architecture", ["cbow", "skip-gram"])
def test_word2vec_is_repeatable_and_learns_what_goes_together(architecture: str) -> None:
    def made(seed: int) -> Word2VecCosine:
        return Word2VecCosine(texts=CORPUS * 10, architecture=architecture, size=20, epochs=40, seed=seed)  # type: ignore[arg-type]

    first, again, other = made(1), made(1), made(2)
    assert np.array_equal(first.embed(CORPUS[:3]), again.embed(CORPUS[:3]))
    assert not np.array_equal(first.embed(CORPUS[:3]), other.embed(CORPUS[:3]))
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert first.compare("cat", "dog") > first.compare("cat", "seven")
    assert first.compare("cat", "cat") == pytest.approx(1)
    assert first.compare("zebra", "cat") == 0


def test_word2vec_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("3 2\ncat 1 0\ndog 1 1\nsun 0 1\n")
    scorer = Word2VecCosine(path=str(path))
    assert scorer.compare("cat", "dog") == pytest.approx(1 / np.sqrt(2))
    assert scorer.compare("cat sun", "dog") == pytest.approx(1)
    before = scorer.fingerprint
    path.write_text("3 2\ncat 1 0\ndog 0 1\nsun 0 1\n")
    assert Word2VecCosine(path=str(path)).fingerprint != before


def test_word2vec_refuses_what_it_cannot_use(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="texts"):
        Word2VecCosine()
    with pytest.raises(ConfigError, match="no vectors"):
        Word2VecCosine(path=str(tmp_path / "none.txt"))
    (tmp_path / "bad.txt").write_text("not a header\n")
    with pytest.raises(ConfigError, match="word2vec format"):
        Word2VecCosine(path=str(tmp_path / "bad.txt")).compare("a", "b")
    with pytest.raises(ConfigError, match="architecture"):
        Word2VecCosine(texts=CORPUS, architecture="glove")  # type: ignore[arg-type]


def test_without_gensim_the_pip_line_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gensim.models", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bestprompt\[word2vec\]'"):
        word2vec.Word2VecCosine(texts=CORPUS)
