"""``build_candidates``: example prompts → the set of soft prompts (paper, section "Search Stage")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bestprompt.choices import DEFAULT_BOUNDS, DEFAULT_DIM, Mode
from bestprompt.errors import SearchError
from bestprompt.latent import Autoencoder, LearnsWords, SoftSpace, TextAutoencoder, TuningProgress
from bestprompt.latent.sentences import Frame, varied_sentences
from bestprompt.rng import stream
from bestprompt.search.embed import clean_prompts, embed_candidates
from bestprompt.search.extension import VARIED, ends_of
from bestprompt.search.filters import Fluency, Similarity, word_similarity
from bestprompt.search.growth import Growth, Rules, grow
from bestprompt.types import SoftPromptSet


def build_candidates(
    examples: Sequence[str],
    n: int = 200,
    seed: int = 0,
    mode: Mode = "default",
    *,
    autoencoder: TextAutoencoder | None = None,
    given: Mapping[str, Sequence[str]] | None = None,
    similarity: Similarity = word_similarity,
    bounds: tuple[float, float] = DEFAULT_BOUNDS,
    fluency: Fluency | None = None,
    dim: int = DEFAULT_DIM,
    progress: TuningProgress | None = None,
) -> SoftPromptSet:
    """Build ``n`` distinct candidate prompts with latent vectors X and soft prompts Z.

    Args:
        examples: N' example prompts. Of a long one, only one sentence is varied (``latent/sentences.py``). Where there
            are none, the given prompts take their place.
        n: N, the size of the set, examples and given prompts included.
        seed: Equal arguments and equal seeds give equal sets.
        mode: ``"paper"`` is the method to the letter, ``"default"`` what a user should get; see ``growth.py``.
        autoencoder: The shipped one if left out. It is fine-tuned on the examples first.
        given: Further prompts by source (``"rewrite"``, ``"file: ideas.txt"``), put into the same space before the set
            grows.
        similarity: Any (a, b) → [0, 1]; ``bounds`` are its r1 and r2.
        fluency: texts → mean log-probability per token, e.g. ``bestprompt.lm.embedded().mean_logprob``.
        dim: D, at most.
        progress: Called with (exact, all) examples while the autoencoder is fine-tuned.

    Returns:
        The set. It may be smaller than ``n`` when too few proposals pass; ``details["shortfall"]`` then says why, and
        what to change.

    Raises:
        SearchError: The examples cannot be represented, or the set does not grow at all.
    """
    if n < 1:
        raise SearchError(f"n must be at least 1, not {n}.")
    if mode not in ("default", "paper"):
        raise SearchError(f"mode must be 'default' or 'paper', not {mode!r}.")
    low, high = bounds
    if not 0.0 <= low < high <= 1.0:
        raise SearchError(f"bounds must satisfy 0 <= r1 < r2 <= 1, not {bounds}.")
    further = {source: clean_prompts(prompts) for source, prompts in (given or {}).items() if prompts}
    starts = clean_prompts(examples, what="example prompt") if examples or not further else []
    sources = dict.fromkeys(starts, "example")
    for source, prompts in further.items():
        for text in prompts:
            sources.setdefault(text, source)
    texts = list(sources)
    first = len(starts) or len(texts)
    if len(texts) >= n:
        kept = texts[:n]
        return embed_candidates(kept, dim=dim, sources=[sources[text] for text in kept], autoencoder=autoencoder)
    base = autoencoder if autoencoder is not None else Autoencoder.pretrained()
    frames = varied_sentences(texts, base.fits)
    tuned = base.fine_tune([varied for _, varied, _ in frames[:first]], progress)
    if isinstance(tuned, LearnsWords):
        tuned = tuned.with_words_of([varied for _, varied, _ in frames[first:]])
    growth = _grown_frames(tuned, frames, n, Rules(mode, fluency, similarity, bounds), seed)
    return _assembled(growth, frames, [sources[text] for text in texts], dim)


def _grown_frames(tuned: TextAutoencoder, frames: Sequence[Frame], n: int, rules: Rules, seed: int) -> Growth:
    sentences = [varied for _, varied, _ in frames]
    if len(set(sentences)) < len(sentences):
        raise SearchError("Two prompts share the sentence that is varied; make their instructions different.")
    return grow(tuned, sentences, n, rules, stream(seed, "search"))


def _assembled(growth: Growth, frames: Sequence[Frame], sources: Sequence[str], dim: int) -> SoftPromptSet:
    roots = list(range(len(frames)))
    for parent in growth.parents[len(frames) :]:
        roots.append(roots[parent])
    prompts = tuple(
        frames[root][0] + sentence + frames[root][2] for root, sentence in zip(roots, growth.sentences, strict=True)
    )
    space = SoftSpace.fit(growth.X, dim)
    return SoftPromptSet(
        prompts=prompts,
        Z=space.to_soft(growth.X),
        X=growth.X,
        parents=np.array(growth.parents, dtype=np.int64),
        sources=(*sources, *("latent" for _ in growth.sentences[len(sources) :])),
        details={**_details(growth, space), VARIED: ends_of(frames)},
    )


def _details(growth: Growth, space: SoftSpace) -> dict[str, Any]:
    accepted = growth.outcomes["accepted"]
    return {
        "encoder": "latent",
        "explained_variance": space.explained.tolist(),
        "proposals": growth.proposals,
        "acceptance_rate": accepted / max(1, growth.proposals),
        "outcomes": dict(growth.outcomes),
        "history": [list(row) for row in growth.history],
        "median_similarity": float(np.median(growth.similarities)) if growth.similarities else None,
        "shortfall": growth.shortfall,
    }
