"""What the other rooms need of an autoencoder; any object that has it may take the place of the shipped one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from bestprompt.latent.words import Words
from bestprompt.types import FloatArray

TuningProgress = Callable[[int, int], None]
"""Called with (exact, all) texts while an autoencoder is fine-tuned."""


@runtime_checkable
class TextAutoencoder(Protocol):
    """What the search stage needs of an autoencoder."""

    @property
    def latent_dim(self) -> int:
        """D~."""
        ...

    @property
    def max_tokens(self) -> int:
        """Longest text, in tokens, that one latent vector can hold."""
        ...

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """(n, D~) latent vectors in [-1, 1]."""
        ...

    def decode(self, X: FloatArray) -> list[str]:
        """One text per row of ``X`` (n, D~)."""
        ...

    def hypotheses(self, X: FloatArray) -> list[list[str]]:
        """Per row of ``X`` (n, D~) the distinct texts it may mean, likeliest first."""
        ...

    def paraphrases(self) -> tuple[FloatArray, FloatArray]:
        """(m, D~) twice: typical sentences, and another wording of each; m = 0 if there are none at hand."""
        ...

    def fits(self, text: str) -> bool:
        """Whether one latent vector can hold ``text``."""
        ...

    def fine_tune(self, texts: Sequence[str], progress: TuningProgress | None = None) -> TextAutoencoder:
        """A copy that gives every one of ``texts`` back exactly."""
        ...


@runtime_checkable
class KnowsWords(Protocol):
    """An autoencoder whose corpus also tells which words go together."""

    def words(self) -> Words:
        """What the corpus knows of single words."""
        ...


@runtime_checkable
class LearnsWords(Protocol):
    """An autoencoder that writes attested words only, and can be told further ones."""

    def with_words_of(self, texts: Sequence[str]) -> TextAutoencoder:
        """A copy that may write every word of ``texts``."""
        ...
