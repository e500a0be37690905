"""One more candidate for a set that exists: what it is put between, its coordinates, and whether it may enter.

Notation as in ``latent/space.py``: Z = (X − X̄) Aᵀ with orthonormal rows of A, whose columns of Z are uncorrelated; so
A = diag(‖Z_d‖⁻²) Zᵀ (X − X̄) gives back the map that a stored set was made with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bestprompt.latent import SoftSpace, TextAutoencoder
from bestprompt.latent.sentences import Frame, former_varied_sentence, varied_sentence
from bestprompt.search.growth import Growth, Rules, admits
from bestprompt.search.wording import Wording
from bestprompt.types import ADDED, FloatArray, NewCandidate, SoftPromptSet

# The detail of a set that says how many characters are kept before and after the sentence that moves, prompt by prompt.
VARIED = "varied"


@dataclass(frozen=True)
class VariedPrompt:
    """A prompt as the latent space sees it: the sentence that moves and what is kept around it."""

    before: str
    sentence: str
    after: str

    def around(self, sentence: str) -> str:
        """The prompt with another sentence in the middle."""
        return self.before + sentence + self.after


def varied_prompts(candidates: SoftPromptSet, fits: Callable[[str], bool]) -> list[VariedPrompt]:
    """(N,) each candidate's sentence, between what stands around it in the prompt its line of descent began with."""
    found: list[VariedPrompt] = []
    kept = candidates.details.get(VARIED)  # a set from before that was stored has sentences by the rule of then
    for n, (prompt, parent) in enumerate(zip(candidates.prompts, candidates.parents, strict=True)):
        if parent < 0 and kept is not None and n < len(kept):
            before, after = kept[n]
            end = len(prompt) - after
            found.append(VariedPrompt(prompt[:before], prompt[before:end], prompt[end:]))
        elif parent < 0:
            found.append(VariedPrompt(*(varied_sentence if kept is not None else former_varied_sentence)(prompt, fits)))
        else:
            root = found[int(parent)]
            end = len(prompt) - len(root.after)
            found.append(replace(root, sentence=prompt[len(root.before) : end]))
    return found


def ends_of(frames: Sequence[Frame]) -> list[list[int]]:
    """As ``VARIED`` has it."""
    return [[len(before), len(after)] for before, _, after in frames]


def soft_space(candidates: SoftPromptSet) -> SoftSpace:
    """The map from X to Z that a set was made with; candidates that were added later are left out."""
    assert candidates.X is not None, "only a set with latent vectors has such a map"
    own = np.array([source not in ADDED for source in candidates.sources])
    X, Z = candidates.X[own], candidates.Z[own]
    mean = X.mean(axis=0)
    lengths = (Z**2).sum(axis=0)
    safe = np.where(lengths > 0.0, lengths, 1.0)
    components = np.where(lengths[:, None] > 0.0, Z.T @ (X - mean) / safe[:, None], 0.0)
    return SoftSpace(mean, components, np.zeros(len(components)))


def new_candidate(candidates: SoftPromptSet, prompt: str, vector: FloatArray, parent: int) -> NewCandidate:
    """``prompt`` with its coordinates in the space of ``candidates``."""
    # As exact as the record keeps it, so that a run that is continued sees the same numbers.
    x = np.asarray(vector, dtype=np.float32).astype(np.float64)
    return NewCandidate(prompt, parent, soft_space(candidates).to_soft(x[None])[0], x)


def extended(candidates: SoftPromptSet, new: NewCandidate) -> SoftPromptSet:
    """The set with one candidate more; where that brings a coordinate of its own, all others have 0 there."""
    X, width = candidates.X, candidates.Z.shape[1]
    nowhere = np.full(X.shape[1] if X is not None else 0, np.nan)
    return replace(
        candidates,
        prompts=(*candidates.prompts, new.prompt),
        Z=np.vstack([np.pad(candidates.Z, ((0, 0), (0, new.z.size - width))), new.z]),
        X=None if X is None else np.vstack([X, nowhere if new.x is None else new.x]),
        parents=np.append(candidates.parents, new.parent),
        sources=(*candidates.sources, new.source),
    )


def admission(
    candidates: SoftPromptSet, sentences: Sequence[str], rules: Rules, autoencoder: TextAutoencoder
) -> Callable[[str, int], str]:
    """``accepts(text, parent)``: ``"accepted"``, or the reason of refusal, by the rules the set was grown with."""
    assert candidates.X is not None, "only a set with latent vectors grows"
    growth = Growth(list(sentences), candidates.X, candidates.parents.tolist(), [0] * len(sentences))
    growth.wording = Wording.of(autoencoder, growth.starts)

    return lambda text, parent: admits(growth, parent, text, rules)


def tuned_for(candidates: SoftPromptSet, autoencoder: TextAutoencoder) -> TextAutoencoder:
    """``autoencoder`` fine-tuned on the examples of the set, as the search stage did; kept in its cache.

    Raises:
        SearchError: They cannot be represented.
    """
    given = [n for n, parent in enumerate(candidates.parents) if parent < 0]
    sentences = [each.sentence for each in varied_prompts(candidates, autoencoder.fits)]
    return tuned_on([sentences[n] for n in given], [candidates.sources[n] for n in given], autoencoder)


def tuned_on(sentences: Sequence[str], sources: Sequence[str], autoencoder: TextAutoencoder) -> TextAutoencoder:
    """``autoencoder`` fine-tuned on the sentences that come from examples, or on all of them if none does."""
    examples = [sentence for sentence, source in zip(sentences, sources, strict=True) if source == "example"]
    return autoencoder.fine_tune(examples or sentences)
