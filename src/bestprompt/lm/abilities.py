"""What only some language models can do: a small protocol each, and who has it, a model or the one that it wraps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from bestprompt.lm.patience import Patience
from bestprompt.types import FloatArray, LanguageModel


@runtime_checkable
class Deterministic(Protocol):
    """A model that can say whether it gives the same question the same answer at any temperature."""

    @property
    def deterministic(self) -> bool: ...


@runtime_checkable
class WeighsTexts(Protocol):
    """A model that can say how likely it finds a given text.

    Attributes:
        weighs_texts: Whether it really can: not all weights that a model may be opened from allow it.
    """

    @property
    def weighs_texts(self) -> bool: ...

    def mean_logprob(self, texts: Sequence[str], contexts: Sequence[str] | None = None) -> FloatArray:
        """(n,) mean log-probability per token of each text, after its context if given; higher is more fluent."""
        ...


@runtime_checkable
class EmbedsTexts(Protocol):
    """A model, or anything else, that turns texts into vectors."""

    @property
    def fingerprint(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """(n, d) one vector per text."""
        ...


@runtime_checkable
class Reachable(Protocol):
    """A model that may be out of reach, and can be asked whether it is."""

    def ping(self) -> None:
        """Returns if the model answers; raises ``LMError`` with the reason if it does not."""
        ...


@runtime_checkable
class InProcess(Protocol):
    """A model that can say whether it is part of this process: a request that is lost with the process cost nothing."""

    @property
    def in_process(self) -> bool: ...


@runtime_checkable
class Patient(Protocol):
    """What asks again by itself after an attempt that cost nothing, unless its patience is ``None``."""

    @property
    def patience(self) -> Patience | None: ...


@runtime_checkable
class WrapsModel(Protocol):
    """A model in front of another one; it can do whatever the other one can."""

    @property
    def wrapped(self) -> LanguageModel: ...


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


def in_process(lm: LanguageModel) -> bool:
    """Whether nobody can send a bill for a request to this model whose answer was never seen."""
    return any(isinstance(each, InProcess) and each.in_process for each in _with_wrapped(lm))


def patience(who: object) -> Patience | None:
    """With which a model, or a score that asks one, asks again after attempts that cost nothing; ``None`` if never."""
    found = (each.patience for each in _with_wrapped(who) if isinstance(each, Patient))
    return next((each for each in found if each is not None), None)


def give_up(*who: object) -> None:
    """The run stops: none of these asks again, or waits much longer for what is under way."""
    for each in who:
        if (waits := patience(each)) is not None:
            waits.give_up()


def _with_wrapped(lm: object) -> Iterator[object]:
    yield lm
    while isinstance(lm, WrapsModel):
        lm = lm.wrapped
        yield lm
