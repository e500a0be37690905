"""Candidate prompts that are given, not found: clean them, check them and give them coordinates."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from bestprompt.choices import DEFAULT_DIM
from bestprompt.errors import SearchError
from bestprompt.latent import SoftSpace, TextAutoencoder, lexical_rows
from bestprompt.latent.sentences import varied_sentences
from bestprompt.search.extension import VARIED, ends_of
from bestprompt.types import FloatArray, SoftPromptSet, is_text

MAX_CHARACTERS = 20_000
# Above so many prompts their lexical rows stay sparse: 20,000 dense ones take gigabytes, and an hour to decompose.
MANY = 500


def clean_prompts(prompts: Sequence[str], *, what: str = "prompt") -> list[str]:
    """Strip, normalise to composed Unicode and drop repetitions, keeping the order.

    Of a prompt of several lines nothing is changed but the white space around it.

    Raises:
        SearchError: Nothing is left, a prompt is empty, or one is longer than 20,000 characters.
    """
    if isinstance(prompts, str):
        raise SearchError(f"Expected a list of {what}s, got one string. Put it into a list: [{prompts[:40]!r}, ...].")
    cleaned: dict[str, None] = {}
    for number, prompt in enumerate(prompts, start=1):
        text = _normal(prompt)
        if not is_text(text):
            raise SearchError(f"{what.capitalize()} {number} holds half a character (a lone surrogate).")
        if not text:
            raise SearchError(f"{what.capitalize()} {number} is empty. Remove it or write what the model should do.")
        if len(text) > MAX_CHARACTERS:
            raise SearchError(
                f"{what.capitalize()} {number} has {len(text):,} characters; at most {MAX_CHARACTERS:,} are supported."
            )
        cleaned[text] = None
    if not cleaned:
        raise SearchError(f"No {what} was given. Give at least one, e.g. 'Write the first letter of the word.'.")
    return list(cleaned)


def embed_candidates(
    prompts: Sequence[str],
    *,
    dim: int = DEFAULT_DIM,
    sources: Sequence[str] | None = None,
    autoencoder: TextAutoencoder | None = None,
) -> SoftPromptSet:
    """Gives coordinates Z to prompts that are at hand, so that selection can share evidence between similar ones.

    Args:
        prompts: Candidate texts in any language; repetitions are dropped.
        dim: D, at most; fewer where the rank is smaller.
        sources: One of ``"example"``, ``"file"``, ``"rewrite"`` per prompt; all ``"file"`` if left out.
        autoencoder: Gives latent vectors X if it can represent every prompt and tells all of them apart. If it cannot,
            or is left out, TF-IDF rows take their place and X is ``None``.

    Returns:
        The set, in the order given; ``details`` holds the explained variance and how many repetitions were dropped.
    """
    texts = clean_prompts(prompts)
    first_at = {text: index for index, text in reversed(list(enumerate(map(_normal, prompts))))}
    X, varied = _latent(texts, autoencoder) if autoencoder is not None else (None, {})
    encoded = _lexical(texts) if X is None else X
    space = SoftSpace.fit(encoded, dim)
    return SoftPromptSet(
        prompts=tuple(texts),
        Z=space.to_soft(encoded),
        X=X,
        parents=np.full(len(texts), -1, dtype=np.int64),
        sources=tuple("file" if sources is None else sources[first_at[text]] for text in texts),
        details={
            "encoder": "lexical" if X is None else "latent",
            "explained_variance": space.explained.tolist(),
            "dropped_repetitions": len(prompts) - len(texts),
            **varied,
        },
    )


def _lexical(texts: Sequence[str]) -> FloatArray | csr_array:
    rows = lexical_rows(texts)
    return rows if len(texts) > MANY else np.asarray(rows.toarray(), dtype=np.float64)


def _latent(texts: Sequence[str], autoencoder: TextAutoencoder) -> tuple[FloatArray | None, dict[str, object]]:
    """Latent vectors, if there is one of its own for each text, and what is kept around the sentences that move."""
    try:
        frames = varied_sentences(texts, autoencoder.fits)
    except SearchError:
        return None, {}
    varied = [sentence for _, sentence, _ in frames]
    if len(set(varied)) < len(varied):
        return None, {}
    return autoencoder.encode(varied), {VARIED: ends_of(frames)}


def _normal(prompt: str) -> str:
    stripped = prompt.strip()
    return stripped if "\n" in stripped or "\r" in stripped else unicodedata.normalize("NFC", stripped)
