"""What a language model can do besides answering, its own abilities or those of a model that it wraps."""

from __future__ import annotations

from collections.abc import Iterator

from bestprompt.types import Deterministic, EmbedsTexts, LanguageModel, Reachable, WeighsTexts, WrapsModel


def deterministic(lm: LanguageModel) -> bool:
    """Whether the model says of itself that the same question has the same answer at any temperature."""
    return any(isinstance(each, Deterministic) and each.deterministic for each in _with_wrapped(lm))


def weigher(lm: LanguageModel) -> WeighsTexts | None:
    """The model, or the one it wraps, that can say how likely it finds a text; ``None`` if none can."""
    return next((each for each in _with_wrapped(lm) if isinstance(each, WeighsTexts) and each.weighs_texts), None)


def embedder(lm: LanguageModel) -> EmbedsTexts | None:
    """The model, or the one it wraps, that turns texts into vectors; ``None`` if none can."""
    return next((each for each in _with_wrapped(lm) if isinstance(each, EmbedsTexts)), None)


def ping(lm: LanguageModel) -> None:
    """Returns if the model can be reached, or cannot be out of reach.

    Raises:
        LMError: It does not answer; the message says why.
    """
    reachable = next((each for each in _with_wrapped(lm) if isinstance(each, Reachable)), None)
    if reachable is not None:
        reachable.ping()


def _with_wrapped(lm: LanguageModel) -> Iterator[LanguageModel]:
    yield lm
    while isinstance(lm, WrapsModel):
        lm = lm.wrapped
        yield lm
