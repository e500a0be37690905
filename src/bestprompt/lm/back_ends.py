"""The model back ends that settings can name: one line each.

A back end is a file with a function from :class:`ModelSettings` to a :class:`~bestprompt.types.LanguageModel`. What
only it needs to know comes in ``[model.options]``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bestprompt.errors import ConfigError
from bestprompt.lm.embedded import embedded_from
from bestprompt.lm.openai import openai_from
from bestprompt.lm.settings import ModelSettings
from bestprompt.types import LanguageModel


@dataclass(frozen=True, slots=True)
class BackEnd:
    """How a model of one kind is opened.

    Attributes:
        open: Opens the model that settings describe.
        needs: Settings that must not be left out.
    """

    open: Callable[[ModelSettings], LanguageModel]
    needs: tuple[str, ...] = ()


BACK_ENDS = {
    "embedded": BackEnd(embedded_from),
    "openai": BackEnd(openai_from, needs=("name",)),
}


def open_model(settings: ModelSettings) -> LanguageModel:
    """The language model that ``settings`` describe.

    Raises:
        ConfigError: There is no such kind, or it needs a setting that was left out.
        LMError: The model cannot be opened.
    """
    if fault := fault_in(settings):
        raise ConfigError(f"model.{fault[0]}{fault[1]}")
    return BACK_ENDS[settings.kind].open(settings)


def fault_in(settings: ModelSettings) -> tuple[str, str] | None:
    """The setting that keeps a model from being opened and what is wrong with it; ``None`` if nothing is."""
    if settings.kind not in BACK_ENDS:
        return "kind", f" = {settings.kind!r}: input should be {' or '.join(map(repr, BACK_ENDS))}"
    missing = next((name for name in BACK_ENDS[settings.kind].needs if not getattr(settings, name)), None)
    return (missing, f' is missing: kind = "{settings.kind}" needs it.') if missing else None
