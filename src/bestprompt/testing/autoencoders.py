"""What search and refinement rely on in a text autoencoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bestprompt.latent import TextAutoencoder

Check = Callable[[TextAutoencoder, Sequence[str]], None]


def gives_examples_back(autoencoder: TextAutoencoder, texts: Sequence[str]) -> None:
    """Fine-tuned on texts that fit, it returns each of them exactly, from vectors inside the box."""
    assert all(autoencoder.fits(text) for text in texts), "give texts that the autoencoder can hold"
    tuned = autoencoder.fine_tune(texts)
    X = tuned.encode(texts)
    assert X.shape == (len(texts), tuned.latent_dim)
    assert np.abs(X).max() <= 1.0, "latent vectors lie in [-1, 1]"
    assert tuned.decode(X) == list(texts)


def decodes_each_row_by_itself(autoencoder: TextAutoencoder, texts: Sequence[str]) -> None:
    """A text depends on its own row alone, and equal texts have equal vectors."""
    X = autoencoder.encode(texts)
    np.testing.assert_array_equal(autoencoder.encode(texts), X)
    assert [autoencoder.decode(row[None])[0] for row in X] == autoencoder.decode(X)


def offers_distinct_readings(autoencoder: TextAutoencoder, texts: Sequence[str]) -> None:
    """Each vector has a list of readings, none empty and none twice; no vectors have none."""
    found = autoencoder.hypotheses(autoencoder.encode(texts))
    assert len(found) == len(texts)
    for readings in found:
        assert all(readings)
        assert len(set(readings)) == len(readings)
    assert autoencoder.hypotheses(np.zeros((0, autoencoder.latent_dim))) == []


def says_what_it_can_hold(autoencoder: TextAutoencoder, texts: Sequence[str]) -> None:
    """Sizes are positive, an empty text does not fit, and paraphrases have vectors of the same length."""
    assert autoencoder.latent_dim > 0
    assert autoencoder.max_tokens > 0
    assert not autoencoder.fits("")
    before, after = autoencoder.paraphrases()
    assert before.shape == after.shape == (len(before), autoencoder.latent_dim)


autoencoder_checks: tuple[Check, ...] = (
    gives_examples_back,
    decodes_each_row_by_itself,
    offers_distinct_readings,
    says_what_it_can_hold,
)


def check_autoencoder(autoencoder: TextAutoencoder, texts: Sequence[str]) -> None:
    """All of ``autoencoder_checks``, with some different ``texts`` of one sentence that it can hold."""
    for check in autoencoder_checks:
        check(autoencoder, texts)
