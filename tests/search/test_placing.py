"""Coordinates of a prompt that joins a set later agree with those of the set."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.search import embed_candidates
from bestprompt.search.extension import extended
from bestprompt.search.placing import placed, with_places
from bestprompt.types import REFINED, REFLECTED, NewCandidate, SoftPromptSet

PROMPTS = [
    "Is the review positive or negative?", "Decide whether the review is positive.", "Name the sentiment of the text.",
    "Read the text and say how the writer feels.", "Positive or negative?",
]  # fmt: skip


def test_a_prompt_of_the_set_would_stand_where_it_stands() -> None:
    """The first four make a set with and without the fifth: distances to the fifth are those of the larger space."""
    given = embed_candidates(PROMPTS)
    for n, prompt in enumerate(PROMPTS):
        z = placed(given, prompt, 0, REFLECTED).z
        np.testing.assert_allclose(z[:-1], given.Z[n], atol=1e-9)
        assert z[-1] == pytest.approx(0.0, abs=1e-6)


def test_what_is_unlike_all_others_is_far_from_all_others() -> None:
    given = embed_candidates(PROMPTS[:2])
    near = extended(given, placed(given, "Is the review positive or is it negative?", 0, REFLECTED))
    far = extended(given, placed(given, "Zähle die Bäume im Garten.", 0, REFLECTED))
    assert near.Z.shape == far.Z.shape == (3, given.Z.shape[1] + 1)
    apart = [np.linalg.norm(each.Z[2] - each.Z[0]) for each in (near, far)]
    between = float(np.linalg.norm(given.Z[0] - given.Z[1]))
    assert apart[0] < between < apart[1]
    np.testing.assert_allclose(near.Z[:2, :-1], given.Z)


def test_two_that_join_are_compared_with_each_other_too() -> None:
    given = embed_candidates(PROMPTS[:2])
    one = extended(given, placed(given, "Zähle die Bäume im Garten.", 0, REFLECTED))
    two = extended(one, placed(one, "Zähle alle Bäume im Garten.", 0, REFLECTED))
    assert np.linalg.norm(two.Z[3] - two.Z[2]) <= np.linalg.norm(two.Z[3] - two.Z[0])


def test_without_a_place_in_the_latent_space_it_stands_beside_its_parent() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4, 6))
    base = SoftPromptSet(("a", "b", "c", "d"), X[:, :2], X, np.array([-1, -1, 0, 1]), ("example",) * 4)
    new = placed(base, "x" * 3000, 1, REFLECTED, None)
    assert new.x is None
    grown = extended(extended(base, new), NewCandidate("e", 4, np.zeros(3), X[0] / 2, REFINED))
    assert np.isnan(grown.X[4]).all()  # type: ignore[index]
    kept, rows = with_places(grown)
    assert rows.tolist() == [0, 1, 2, 3, 5]
    assert kept.parents.tolist() == [-1, -1, 0, 1, -1]
    assert np.isfinite(kept.X).all()  # type: ignore[arg-type]
