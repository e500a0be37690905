from dataclasses import replace

import equinox as eqx
import numpy as np
import pytest

from bestprompt.latent import Autoencoder, box
from bestprompt.latent.polish import polished

TEXTS = [
    "Sort the words in alphabetical order.",
    "Which letter does the word start with?",
    "How many objects are there?",
    "Write the number in words.",
]


@pytest.fixture(scope="module")
def confused() -> Autoencoder:
    """The shipped decoder behind an encoder that puts every coordinate in its neighbour's place."""
    ae = Autoencoder.pretrained()
    shifted = np.roll(np.asarray(ae.network.to_code), 1, axis=1)
    return replace(ae, network=eqx.tree_at(lambda network: network.to_code, ae.network, shifted))


def test_codes_that_return_their_text_stay_as_they_are() -> None:
    ae = Autoencoder.pretrained()
    assert ae.polishing > 0
    assert np.array_equal(ae.encode(TEXTS[:3]), replace(ae, polishing=0).encode(TEXTS[:3]))


@pytest.mark.slow
def test_gradient_steps_make_codes_exact_where_the_encoder_is_not(confused: Autoencoder) -> None:
    bare = replace(confused, polishing=0)
    assert all(a != b for a, b in zip(TEXTS, bare.decode(bare.encode(TEXTS)), strict=True))
    X = confused.encode(TEXTS)
    assert confused.decode(X) == TEXTS
    assert np.abs(X).max() < 1.0
    assert np.array_equal(X, confused.encode(TEXTS))


def test_without_success_the_encoders_code_is_kept(confused: Autoencoder) -> None:
    rows = confused.codec.rows(TEXTS, confused.network.shape.length)
    codes = box.to_code(replace(confused, polishing=0).encode(TEXTS), confused.network.shape.code)
    assert np.array_equal(polished(confused.network, confused.speller, codes, rows, rounds=0), codes)
