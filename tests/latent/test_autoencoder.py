from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bestprompt.latent import Autoencoder, TextAutoencoder
from bestprompt.latent.weights_file import load_network, save_network

HELD_OUT = [
    "Sort the words in alphabetical order.",
    "Which letter does the word start with?",
    "How many objects are there?",
]


def test_shipped_weights_are_small_and_give_instructions_back() -> None:
    ae = Autoencoder.pretrained()
    assert isinstance(ae, TextAutoencoder)
    X = ae.encode(HELD_OUT)
    assert X.shape == (3, 3584)
    assert np.abs(X).max() < 1.0
    assert ae.decode(X) == HELD_OUT


def test_decoding_does_not_depend_on_the_batch() -> None:
    ae = Autoencoder.pretrained()
    X = ae.encode(HELD_OUT * 30)
    assert ae.decode(X) == HELD_OUT * 30
    assert ae.decode(X[:0]) == []


@pytest.mark.slow
def test_what_is_decoded_can_be_encoded_again_and_consists_of_words() -> None:
    """Far from any sentence the decoder often finds no end: at the corners of the cube at half of all points."""
    ae = replace(Autoencoder.pretrained(), polishing=0)
    assert ae.lexicon is not None
    X = np.where(np.random.default_rng(1).random((64, ae.latent_dim)) < 0.5, -0.99, 0.99)
    texts = [*ae.decode(X), *(text for found in ae.hypotheses(X) for text in found)]
    assert all(map(ae.fits, texts))
    assert len(texts) > 2 * len(X)
    assert [ae.lexicon.unattested(text) for text in texts] == [[]] * len(texts)


def test_words_of_further_texts_can_be_written() -> None:
    ae = Autoencoder.pretrained()
    wider = ae.with_words_of(["Zorple the \x1c words."])
    assert ae.lexicon is not None
    assert wider.lexicon is not None
    assert ae.lexicon.unattested("Now zorple the words.") == ["zorple"]
    assert wider.lexicon.unattested("Now zorple the words.") == []
    assert ae.with_words_of([]) is ae


def test_weights_survive_the_disk(tmp_path: Path) -> None:
    network = Autoencoder.pretrained().network
    save_network(network, tmp_path / "w.safetensors", half=True)
    again = load_network(tmp_path / "w.safetensors")
    assert again.shape == network.shape
    assert np.array_equal(again.embedding, network.embedding)
    assert np.array_equal(again.decoder[-1].down, network.decoder[-1].down)
