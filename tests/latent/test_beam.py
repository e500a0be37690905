import jax.numpy as jnp
import numpy as np
import pytest

from bestprompt.latent import Autoencoder, box
from bestprompt.latent.beam import WIDTH, beam
from bestprompt.latent.network import BEGIN, END, PAD

TEXTS = [
    "Sort the words in alphabetical order.",
    "Which letter does the word start with?",
    "How many objects are there?",
]


def test_readings_are_distinct_ranked_and_begin_with_the_greedy_one() -> None:
    ae = Autoencoder.pretrained()
    X = ae.encode(TEXTS)
    for text, readings in zip(TEXTS, ae.hypotheses(X), strict=True):
        assert readings[0] == text
        assert len(readings) == len(set(readings)) > WIDTH // 2
    assert ae.hypotheses(X[:0]) == []


def test_readings_do_not_depend_on_the_batch() -> None:
    ae = Autoencoder.pretrained()
    X = ae.encode(TEXTS)
    together = ae.hypotheses(np.concatenate([X, X[::-1]]))
    assert together[:3] == together[:2:-1] == ae.hypotheses(X)


@pytest.mark.slow
def test_scores_are_the_decoders_mean_log_probabilities() -> None:
    ae = Autoencoder.pretrained()
    code = jnp.asarray(box.to_code(ae.encode(TEXTS[:1]), ae.network.shape.code), jnp.float32)
    tokens, scores = (np.asarray(found)[0] for found in beam(ae.network, ae.speller, jnp.repeat(code, 32, axis=0)))
    assert np.all(np.diff(scores) <= 0)
    for row, score in list(zip(tokens, scores, strict=True))[:3]:
        size = int(np.argmax(row == END)) + 1
        seen = np.concatenate([[BEGIN], row[: size - 1]])
        logits = np.array(ae.network.logits(code, jnp.asarray(seen[None])))[0]
        logits[:, [PAD, BEGIN]] = -np.inf
        chances = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        # Greedy decoding's penalty on writing a word twice in a row moves the other words by very little.
        assert chances[np.arange(size), row[:size]].mean() == pytest.approx(score, abs=0.02)
