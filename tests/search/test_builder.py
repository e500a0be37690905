"""The search stage on the shipped autoencoder, fine-tuned once for the module.

What is about stopping, whichever the space, is tested on the small world of the whole suite.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from bestprompt.choices import DEFAULT_BOUNDS
from bestprompt.errors import SearchError
from bestprompt.latent import Autoencoder
from bestprompt.search import build_candidates, filters, perturb
from bestprompt.search.filters import word_similarity
from bestprompt.search.wording import Wording
from bestprompt.tasks import names
from bestprompt.tasks.library import example_prompts

EXAMPLES = [
    "Sort the words in alphabetical order.",
    "Arrange these words from A to Z.",
    "Put the following words in alphabetical order.",
    "Which word comes first in a dictionary?",
    "Alphabetize the list.",
]


# One of each bundled task: among them titles, quotation marks and demonstrations.
BUNDLED = [example_prompts(name)[-2] for name in names()]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Autoencoder]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BESTPROMPT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield Autoencoder.pretrained().fine_tune([*EXAMPLES, *BUNDLED])


class Tuned:
    """An autoencoder that needs no further tuning, so that a test pays for it once."""

    known: ClassVar[dict[str, tuple[np.ndarray, np.ndarray]]] = {}

    def __init__(self, inner: Autoencoder) -> None:
        self.inner, self.latent_dim, self.max_tokens = inner, inner.latent_dim, inner.max_tokens
        self.encode, self.decode, self.fits = inner.encode, inner.decode, inner.fits
        self.hypotheses, self.words = inner.hypotheses, inner.words

    def paraphrases(self) -> tuple[np.ndarray, np.ndarray]:
        if self.inner.identity not in self.known:
            self.known[self.inner.identity] = self.inner.paraphrases()
        return self.known[self.inner.identity]

    def fine_tune(self, texts: object, progress: object = None) -> "Tuned":
        return self


@pytest.mark.slow
def test_tuned_examples_come_back_exactly(tuned: Autoencoder) -> None:
    texts = [*EXAMPLES, *BUNDLED]
    assert tuned.decode(tuned.encode(texts)) == texts


@pytest.mark.slow
def test_decodes_of_any_step_consist_of_attested_words(tuned: Autoencoder) -> None:
    """In paper mode too: steps of the full covariance, and three times as long; ``words.py`` counts many more."""
    assert tuned.lexicon is not None
    X = tuned.encode([*EXAMPLES, *BUNDLED])
    steps = perturb.sample_steps(X, 96, np.random.default_rng(0)) * np.repeat([1.0, 3.0, 9.0], 32)[:, None]
    moved = np.clip(X[np.arange(96) % len(X)] + steps, -1.0, 1.0)
    texts = [*tuned.decode(moved), *(text for found in tuned.hypotheses(moved) for text in found)]
    assert len(set(texts)) > 400
    assert [text for text in texts if tuned.lexicon.unattested(text) or not tuned.fits(text)] == []


@pytest.mark.slow
def test_default_set(tuned: Autoencoder) -> None:
    pool = build_candidates(EXAMPLES, 24, seed=3, autoencoder=Tuned(tuned))
    assert pool.prompts[:5] == tuple(EXAMPLES)
    assert len(set(pool.prompts)) == len(pool.prompts) == 24
    assert pool.X is not None
    assert pool.X.shape == (24, 3584)
    assert np.abs(pool.X).max() <= 1.0
    assert tuned.decode(pool.X) == list(pool.prompts)
    assert pool.Z.shape == (24, 23)
    assert len(np.unique(pool.Z.round(9), axis=0)) == 24
    assert pool.sources == ("example",) * 5 + ("latent",) * 19
    assert np.all(pool.parents[:5] == -1)
    children = np.arange(5, 24)
    assert np.all((pool.parents[children] >= 0) & (pool.parents[children] < children))
    low, high = DEFAULT_BOUNDS
    assert all(low < word_similarity(pool.prompts[i], pool.prompts[pool.parents[i]]) < high for i in children)
    assert pool.details["outcomes"]["accepted"] == 19


@pytest.mark.slow
def test_equal_seeds_give_equal_sets(tuned: Autoencoder) -> None:
    first, again, other = (build_candidates(EXAMPLES, 12, seed=s, autoencoder=Tuned(tuned)) for s in (1, 1, 2))
    assert first.prompts == again.prompts != other.prompts
    assert first.Z.tolist() == again.Z.tolist()


@pytest.mark.slow
def test_paper_mode_stays_in_the_affine_span_of_the_examples(tuned: Autoencoder) -> None:
    pool = build_candidates(EXAMPLES, 10, seed=0, mode="paper", autoencoder=Tuned(tuned), bounds=(0.05, 0.99))
    assert pool.X is not None
    assert np.linalg.matrix_rank(pool.X - pool.X.mean(axis=0), tol=1e-8) == len(EXAMPLES) - 1
    assert pool.Z.shape == (10, len(EXAMPLES) - 1)
    assert np.abs(pool.X).max() <= 1.0
    assert tuned.decode(pool.X) == list(pool.prompts)


def test_a_set_that_stops_growing_comes_out_smaller_with_the_reason(world: Any) -> None:
    liked: list[str] = []

    def similarity(text: str, other: str) -> float:
        if len(liked) < 12 and text not in liked:
            liked.append(text)
        return 0.6 if text in liked else 0.0

    pool = build_candidates(world.task.examples, 60, autoencoder=world.space, similarity=similarity)
    assert 5 < len(pool.prompts) <= 17
    assert pool.details["shortfall"].startswith(f"Only {len(pool.prompts)} of 60 candidate prompts were found")
    assert "What helps: " in pool.details["shortfall"]


@pytest.mark.slow
def test_one_example_is_enough(tuned: Autoencoder) -> None:
    pool = build_candidates(EXAMPLES[:1], 6, autoencoder=Tuned(tuned))
    assert len(set(pool.prompts)) == 6
    assert tuned.decode(pool.X) == list(pool.prompts)


def test_collapse_is_explained(world: Any) -> None:
    with pytest.raises(SearchError, match=r"Only 5 of 8 candidate prompts .* rejected as .* What helps: "):
        build_candidates(world.task.examples, 8, autoencoder=world.space, similarity=lambda a, b: 1.0)


@pytest.mark.parametrize(("level", "passes"), [(-1.0, True), (-30.0, False)])
def test_fluency_is_judged_against_the_models_own_level(world: Any, level: float, passes: bool) -> None:
    def fluency(texts: Sequence[str]) -> np.ndarray:
        return np.array([-20.0 if text in filters._REFERENCE else -20.0 + level for text in texts])

    examples = world.task.examples
    if passes:
        assert len(build_candidates(examples, 8, autoencoder=world.space, fluency=fluency).prompts) == 8
    else:
        with pytest.raises(SearchError, match="Only 5 of 8"):
            build_candidates(examples, 8, autoencoder=world.space, fluency=fluency)


@pytest.mark.slow
def test_new_prompts_are_worded_like_the_examples(tuned: Autoencoder) -> None:
    pool = build_candidates(EXAMPLES, 30, seed=5, autoencoder=Tuned(tuned))
    wording = Wording.of(tuned, EXAMPLES)
    assert wording is not None
    pairs = [(text, pool.prompts[parent]) for text, parent in zip(pool.prompts, pool.parents, strict=True)][5:]
    assert [pair for pair in pairs if wording.fault(*pair) is not None] == []


@pytest.mark.slow
def test_given_prompts_join_the_space(tuned: Autoencoder) -> None:
    given = {"file": ["Order the words by their first letter."], "rewrite": ["List the words alphabetically."]}
    pool = build_candidates(EXAMPLES, 10, autoencoder=Tuned(tuned), given=given)
    assert pool.sources[4:8] == ("example", "file", "rewrite", "latent")
    assert pool.prompts[5] == given["file"][0]


@pytest.mark.slow
def test_only_the_varied_sentence_of_a_long_prompt_moves(tuned: Autoencoder) -> None:
    kept = "You are a patient teacher of English who loves dictionaries, encyclopedias and long lists of words. " * 3
    long = kept + EXAMPLES[2] + " " + kept.strip()
    pool = build_candidates([long, *EXAMPLES[:2]], 6, autoencoder=Tuned(tuned))
    assert pool.prompts[0] == long
    for prompt, parent in zip(pool.prompts[3:], pool.parents[3:], strict=True):
        root = int(parent)
        while pool.parents[root] >= 0:
            root = int(pool.parents[root])
        assert prompt.startswith(kept) == (root == 0)


SYSTEM_PROMPT = Path(__file__).parents[1] / "latent" / "data" / "system_prompt.md"


@pytest.mark.slow
def test_a_system_prompt_is_never_mangled(tuned: Autoencoder) -> None:
    """Headings, lists, a table, fences, JSON, placeholders, emoji, trailing spaces, Windows line ends: all stay."""
    read = SYSTEM_PROMPT.read_bytes().decode().replace("Decide which team should answer the ticket.", EXAMPLES[2])
    long = read.replace("\n", "\r\n").strip()
    before, after = long.split(EXAMPLES[2])
    pool = build_candidates([], 8, given={"file: a.md": [long], "file: b.txt": EXAMPLES[:2]}, autoencoder=Tuned(tuned))
    assert pool.prompts[:3] == (long, *EXAMPLES[:2])
    assert pool.sources == ("file: a.md", "file: b.txt", "file: b.txt", *["latent"] * 5)
    assert pool.details["varied"] == [[len(before), len(after)], [0, 0], [0, 0]]
    roots = list(range(3))
    for prompt, parent in zip(pool.prompts[3:], pool.parents[3:], strict=True):
        roots.append(roots[int(parent)])
        if roots[-1] == 0:
            assert prompt.startswith(before)
            assert prompt.endswith(after)
            assert not set(prompt[len(before) : len(prompt) - len(after)]) & set("\r\n{}`|#")
        else:
            assert "\n" not in prompt
    assert len(pool.prompts) == 8


def test_small_n_returns_the_examples_without_growing() -> None:
    pool = build_candidates(EXAMPLES, 3)
    assert pool.prompts == tuple(EXAMPLES[:3])


@pytest.mark.parametrize(
    ("examples", "settings", "words"),
    [
        ([], {}, "No example prompt"),
        (["Sort.", ""], {}, "Example prompt 2 is empty"),
        (["按字母顺序排列下面的所有单词并且只输出结果不要解释"], {}, "cannot represent"),
        (["x" * 3000], {}, "cannot represent"),
        (["Sort."], {"n": 0}, "at least 1"),
        (["Sort."], {"mode": "fast"}, "'default' or 'paper'"),
        (["Sort."], {"bounds": (0.9, 0.1)}, "r1 < r2"),
    ],
)
def test_unusable_input_is_refused(examples: list[str], settings: dict[str, object], words: str) -> None:
    with pytest.raises(SearchError, match=words):
        build_candidates(examples, **settings)  # type: ignore[arg-type]


@pytest.mark.slow
def test_cached_tuning_is_reused(tuned: Autoencoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BESTPROMPT_CACHE", str(tmp_path))
    calls: list[tuple[int, int]] = []
    first = tuned.fine_tune(EXAMPLES, lambda exact, of: calls.append((exact, of)))
    again = tuned.fine_tune(EXAMPLES, lambda exact, of: calls.append((exact, of)))
    assert calls == [(5, 5)]
    assert first.identity == again.identity != tuned.identity
    assert np.array_equal(first.encode(EXAMPLES), again.encode(EXAMPLES))
