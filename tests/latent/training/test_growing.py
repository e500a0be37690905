"""A network that has grown writes what it wrote before, and new words are whole."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bestprompt.latent.network import NetworkSizes, SentenceNetwork
from bestprompt.latent.tokens import Codec
from bestprompt.latent.training.growing import grown, with_more_words, word_counts
from bestprompt.latent.weights_file import WEIGHTS

SMALL = NetworkSizes(
    vocabulary=8192, width=32, heads=2, encoder_layers=1, decoder_layers=1, slots=2, code=16, prefix=2, length=14
)
LARGER = replace(SMALL, vocabulary=8200, encoder_layers=3, decoder_layers=2, code=24, length=20)
TEXTS = ["Sort the words.", "Which letter comes first?"]


@pytest.fixture(scope="module")
def codec() -> Codec:
    return Codec.load(WEIGHTS / "tokenizer.json")


@pytest.fixture(scope="module")
def network() -> SentenceNetwork:
    return eqx.filter_jit(SentenceNetwork)(SMALL, jax.random.key(0))


def test_frequent_words_become_whole_and_other_texts_are_cut_as_before(codec: Codec) -> None:
    counts = Counter({"invoice": 5, "wedding": 3, "biography": 1})
    assert all(len(row) > 1 for row in codec.numbers(list(counts)))
    wider = with_more_words(codec, counts, 8192 + 5)  # two entries for one, three for the other, none left
    whole = [len(row) == 1 for row in wider.numbers(["invoice", "wedding", "biography"])]
    assert whole == [True, True, False]
    assert wider.numbers(TEXTS) == codec.numbers(TEXTS)
    assert wider.texts(wider.rows(["Read the invoice."], 20)) == ["Read the invoice."]


def test_words_are_counted_without_the_marks_around_them() -> None:
    assert word_counts(["Read it (twice), please.", "Read 3 e-mails!"]) == Counter(
        {"Read": 2, "it": 1, "twice": 1, "please": 1}
    )


@pytest.mark.slow
def test_what_has_grown_predicts_the_same_words(codec: Codec, network: SentenceNetwork) -> None:
    after = with_more_words(codec, Counter({"invoice": 1, "wedding": 1}), LARGER.vocabulary)
    larger = grown(network, codec, after, LARGER, jax.random.key(1))
    assert larger.shape == LARGER
    anew = eqx.filter_eval_shape(SentenceNetwork, LARGER, jax.random.key(2))
    assert [leaf.shape for leaf in jax.tree.leaves(larger)] == [leaf.shape for leaf in jax.tree.leaves(anew)]
    tokens = jnp.asarray(codec.rows(TEXTS, 12))
    encode, logits = eqx.filter_jit(SentenceNetwork.encode), eqx.filter_jit(SentenceNetwork.logits)
    code, longer = encode(network, tokens), encode(larger, tokens)
    # The code's scale is fixed, so longer ones share it with new numbers; what was there points the same way.
    cosine = jnp.sum(code * longer[:, :16], axis=1) / jnp.linalg.norm(longer[:, :16], axis=1) / 4.0
    np.testing.assert_allclose(cosine, 1.0, atol=1e-5)
    padded = jnp.concatenate([code, longer[:, 16:]], axis=1)
    np.testing.assert_allclose(logits(larger, padded, tokens)[..., :8192], logits(network, code, tokens), atol=1e-4)


@pytest.mark.parametrize("sizes", [replace(LARGER, width=64), replace(LARGER, code=8)])
def test_what_cannot_grow_is_refused(codec: Codec, network: SentenceNetwork, sizes: NetworkSizes) -> None:
    with pytest.raises(ValueError, match="trained network"):
        grown(network, codec, codec, sizes, jax.random.key(1))
