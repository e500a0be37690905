import numpy as np
import pytest

from bestprompt.errors import SearchError
from bestprompt.latent import Autoencoder
from bestprompt.rng import stream
from bestprompt.search import embed, embed_candidates

PROMPTS = ["Sort the words.", "Trie les mots par ordre alphabétique.", "按字母顺序排列单词。", "🎉🎉", "x" * 3000]


def test_any_language_emoji_and_length_gets_coordinates() -> None:
    pool = embed_candidates(PROMPTS)
    assert pool.prompts == tuple(PROMPTS)
    assert pool.Z.shape == (5, 4)
    assert len({tuple(row) for row in pool.Z.round(9)}) == 5
    assert pool.X is None
    assert sum(pool.details["explained_variance"]) == pytest.approx(1.0)


def test_similar_prompts_are_neighbours() -> None:
    pool = embed_candidates(
        [
            "Sort the words alphabetically.",
            "Sort the words in alphabetical order.",
            "Count the objects.",
            "Translate it.",
        ]
    )
    distances = np.linalg.norm(pool.Z - pool.Z[0], axis=1)
    assert np.argsort(distances)[1] == 1


def test_repetitions_are_dropped_and_sources_follow_their_first_text() -> None:
    pool = embed_candidates(["b", " a", "a ", "b"], sources=["example", "file", "rewrite", "rewrite"])
    assert pool.prompts == ("b", "a")
    assert pool.sources == ("example", "file")
    assert pool.details["dropped_repetitions"] == 2


def test_the_autoencoder_gives_vectors_where_it_can() -> None:
    ae = Autoencoder.pretrained()
    texts = ["Sort the words.", "Count the objects."]
    pool = embed_candidates(texts, autoencoder=ae)
    assert pool.X is not None
    assert pool.X.tolist() == ae.encode(texts).tolist()
    assert pool.details["encoder"] == "latent"
    assert embed_candidates([*texts, "按字母顺序排列下面的所有单词并且只输出结果"], autoencoder=ae).X is None


@pytest.mark.parametrize(("prompts", "words"), [([], "No prompt"), (["a", "  "], "Prompt 2 is empty"), ("abc", "list")])
def test_unusable_input_is_refused(prompts: list[str], words: str) -> None:
    with pytest.raises(SearchError, match=words):
        embed_candidates(prompts)


def test_too_long_is_refused() -> None:
    with pytest.raises(SearchError, match="30,000 characters"):
        embed_candidates(["x" * 30_000])


def test_many_prompts_get_the_coordinates_that_few_would(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["sort", "count", "name", "the", "of", "all", "words", "lines", "now", "again", "first", "last", "only"]
    drawn = stream(0, "prompts").choice(words, size=(60, 6))
    prompts = list(dict.fromkeys(" ".join(row) for row in drawn))
    few = embed_candidates(prompts, dim=4)
    monkeypatch.setattr(embed, "MANY", len(prompts) - 1)
    many = embed_candidates(prompts, dim=4)
    np.testing.assert_allclose(many.Z @ many.Z.T, few.Z @ few.Z.T, atol=1e-9)  # signs of components mean nothing
    assert many.details["explained_variance"] == pytest.approx(few.details["explained_variance"])
    assert embed_candidates(prompts, dim=4).Z.tobytes() == many.Z.tobytes()
    alike = embed_candidates([f"{'!' * n}" for n in range(1, len(prompts) + 2)], dim=4)
    assert np.isfinite(alike.Z).all()
