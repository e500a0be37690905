"""One more candidate for a set that exists: frame, coordinates and admission as for the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bestprompt.latent import SoftSpace
from bestprompt.search import build_candidates, filters
from bestprompt.search.extension import admission, extended, new_candidate, soft_space, varied_prompts
from bestprompt.search.growth import Rules
from bestprompt.types import REFINED, SoftPromptSet


@pytest.fixture(scope="module")
def found(world: Any) -> SoftPromptSet:
    return build_candidates(list(world.task.examples), n=14, autoencoder=world.space, dim=6)


def test_the_map_to_soft_prompts_is_recovered_from_the_set(found: SoftPromptSet) -> None:
    assert found.X is not None
    stored = SoftPromptSet(
        found.prompts, found.Z, found.X.astype(np.float32).astype(np.float64), found.parents, found.sources
    )
    space, truth = soft_space(stored), SoftSpace.fit(found.X, 6)
    elsewhere = np.random.default_rng(0).uniform(-1, 1, size=(5, found.X.shape[1]))
    np.testing.assert_allclose(space.to_soft(elsewhere), truth.to_soft(elsewhere), atol=1e-5)
    np.testing.assert_allclose(space.to_soft(found.X), found.Z, atol=1e-5)


def test_a_new_candidate_is_placed_like_a_candidate_of_the_set(found: SoftPromptSet) -> None:
    assert found.X is not None
    new = new_candidate(found, "Somewhere else.", found.X[3] + 0.01, parent=3)
    larger = extended(found, new)
    again = extended(larger, new_candidate(larger, "And again.", found.X[4], parent=len(found.prompts)))
    assert again.prompts[-2:] == ("Somewhere else.", "And again.")
    assert again.sources[-2:] == (REFINED, REFINED)
    assert again.parents[-2:].tolist() == [3, len(found.prompts)]
    assert again.X is not None
    assert again.Z.shape == (len(found.prompts) + 2, found.Z.shape[1])
    # New candidates do not shift the map: the second lies where the candidate with that vector lies.
    np.testing.assert_allclose(again.Z[-1], found.Z[4], atol=1e-5)
    assert (new.x == new.x.astype(np.float32)).all()


def test_the_frame_of_a_prompt_is_that_of_its_first_ancestor(world: Any) -> None:
    texts = ("Listen. Copy the term again. Thanks", "Listen. Echo the term again. Thanks", "Print the word below.")
    known = SoftPromptSet(texts, np.zeros((3, 1)), np.zeros((3, 12)), np.array([-1, 0, -1]), ("example",) * 3)
    found = varied_prompts(known, world.space.fits)
    assert [f.sentence for f in found] == ["Copy the term again.", "Echo the term again.", "Print the word below."]
    assert found[1].around("Return the term again.") == "Listen. Return the term again. Thanks"
    assert [f.around(f.sentence) for f in found] == list(texts)


def test_admission_follows_the_rules_of_the_search(world: Any, found: SoftPromptSet) -> None:
    sentences = [each.sentence for each in varied_prompts(found, world.space.fits)]
    accepts = admission(found, sentences, Rules("default", None), world.space)
    parent = sentences.index("Copy the term again.")
    assert accepts("Copy the term again.", parent) == "repeated"
    assert accepts("Copy the term again,", parent) == "broken"
    assert accepts("Whatever else there may be.", parent) == "too different"
    fresh = next(
        text for word in ("exactly", "backwards", "below", "slowly")
        if (text := f"Copy the term {word}.") not in sentences
    )  # fmt: skip
    assert accepts(fresh, parent) == "accepted"
    stern = admission(found, sentences, Rules("default", _disliked), world.space)
    assert stern(fresh, parent) == "not fluent"


def _disliked(texts: Any) -> Any:
    return np.array([-4.0 if text in filters._REFERENCE else -99.0 for text in texts])
