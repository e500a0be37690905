"""Coordinates for a prompt that a model wrote while a run goes on, so that its neighbours speak for it as for others.

Notation as in ``latent/space.py``: the set was made with Z = (X − X̄) Aᵀ, where X holds latent vectors or, where there
are none, lexical rows. The same map places a new row x at A (x − X̄). What of x lies outside the set's own directions is
lost there, and with it how unlike all others the new prompt is: two prompts span a line, and everything else would lie
on it. So the new prompt gets one more coordinate, 0 for all others, that makes its distance to the nearest of them what
it is between the rows themselves.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.spatial.distance import pdist

from bestprompt.errors import SearchError
from bestprompt.latent import TextAutoencoder, lexical_rows
from bestprompt.latent.sentences import varied_sentence
from bestprompt.search.extension import soft_space
from bestprompt.types import ADDED, WRITTEN_SOURCES, FloatArray, IntArray, NewCandidate, SoftPromptSet


def placed(
    candidates: SoftPromptSet, prompt: str, parent: int, source: str, autoencoder: TextAutoencoder | None = None
) -> NewCandidate:
    """``prompt``, which a model made from ``parent``, with its place among ``candidates``.

    Args:
        candidates: The set so far.
        prompt: The new text.
        parent: The candidate it was made from.
        source: Who made it.
        autoencoder: As it was tuned for the set, where that has latent vectors.
    """
    if candidates.X is None:
        return NewCandidate(prompt, parent, _lexical_place(candidates, prompt), None, source)
    x = None if autoencoder is None else _latent_vector(candidates.X, prompt, autoencoder)
    if x is not None:
        return NewCandidate(prompt, parent, soft_space(candidates).to_soft(x[None])[0], x, source)
    return NewCandidate(prompt, parent, _beside(candidates.Z, parent), None, source)


def with_places(candidates: SoftPromptSet) -> tuple[SoftPromptSet, IntArray]:
    """The candidates that have a latent vector, and their numbers in the whole set.

    What a model wrote begins a line of descent: what stands around its sentence is its own.
    """
    assert candidates.X is not None, "only a set with latent vectors is moved in"
    rows = np.flatnonzero(np.isfinite(candidates.X).all(axis=1))
    number = {int(row): n for n, row in enumerate(rows)}
    written = [candidates.sources[row] in WRITTEN_SOURCES for row in rows]
    parents = [
        -1 if own else number.get(int(candidates.parents[row]), -1) for row, own in zip(rows, written, strict=True)
    ]
    return replace(
        candidates,
        prompts=tuple(candidates.prompts[row] for row in rows),
        Z=candidates.Z[rows],
        X=candidates.X[rows],
        parents=np.array(parents, dtype=np.int64),
        sources=tuple(candidates.sources[row] for row in rows),
    ), rows


def _latent_vector(X: FloatArray, prompt: str, autoencoder: TextAutoencoder) -> FloatArray | None:
    """(D~,) as exact as the record keeps it; ``None`` where the prompt has no place, or another one has it."""
    try:
        _, sentence, _ = varied_sentence(prompt, autoencoder.fits)
    except SearchError:
        return None
    x = np.asarray(autoencoder.encode([sentence])[0], dtype=np.float32).astype(np.float64)
    return None if (np.abs(X - x).max(axis=1) < 1e-6).any() else x


def _lexical_place(candidates: SoftPromptSet, prompt: str) -> FloatArray:
    """(D + 1,) where the lexical rows of the set put ``prompt``."""
    own = [n for n, source in enumerate(candidates.sources) if source not in ADDED]
    among, Z = [candidates.prompts[n] for n in own], candidates.Z
    given, row = lexical_rows(among), lexical_rows([prompt], among)
    lengths = (Z[own] ** 2).sum(axis=0)
    # A (x − X̄) with A as ``extension.soft_space`` recovers it; Z is centred, so the rows need not be.
    shared = (given @ row.T).toarray()[:, 0] - given @ np.asarray(given.mean(axis=0)).ravel()
    z = np.where(lengths > 0.0, Z[own].T @ shared / np.where(lengths > 0.0, lengths, 1.0), 0.0)
    # Distances by all words, those included that the set does not know.
    rows = lexical_rows([*candidates.prompts, prompt])
    alike = (rows[:-1] @ rows[[-1]].T).toarray()[:, 0]
    nearest = int(np.argmax(alike))
    # What the nearest has in a direction of its own, since it was added like this one, this one has in part.
    z = np.where(lengths > 0.0, z, alike[nearest] * Z[nearest])
    return _at_distance(z, Z[nearest], float(np.sqrt(max(2.0 - 2.0 * alike[nearest], 0.0))))


def _beside(Z: FloatArray, parent: int) -> FloatArray:
    """(D + 1,) as far from ``parent`` as two candidates usually are, in a direction of its own."""
    apart = pdist(Z)
    apart = apart[apart > 0.0]
    return _at_distance(Z[parent], Z[parent], float(np.median(apart)) if apart.size else 1.0)


def _at_distance(z: FloatArray, other: FloatArray, distance: float) -> FloatArray:
    """``z`` with one more coordinate, so that it is at ``distance`` from ``other``, or as near to that as it can be."""
    left = max(distance**2 - float(((z - other) ** 2).sum()), 0.0)
    return np.append(z, np.sqrt(left))
