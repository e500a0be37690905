"""The model back ends that settings can name: one line each.

A back end is a file with a :class:`~bestprompt.lm.settings.BackEnd`: a function from settings to a language model. What
only it needs to know comes in ``[model.options]``. The file is imported when its name is used, and should import its
engine or client no sooner than a model is opened.
"""

from __future__ import annotations

from importlib import import_module

from bestprompt.errors import ConfigError
from bestprompt.lm.cached import cached
from bestprompt.lm.settings import BackEnd, ModelSettings
from bestprompt.types import LanguageModel

BACK_ENDS: dict[str, str] = {
    "embedded": "bestprompt.lm.embedded:BACK_END",
    "openai": "bestprompt.lm.openai:BACK_END",
}


def open_model(settings: ModelSettings) -> LanguageModel:
    """The language model that ``settings`` describe.

    Raises:
        ConfigError: There is no such kind, or it needs a setting that was left out.
        LMError: The model cannot be opened.
    """
    if fault := fault_in(settings):
        raise ConfigError(f"model.{fault[0]}{fault[1]}")
    opened = _named(settings.kind).open(settings)
    return opened if settings.cache is None else cached(opened, settings.cache)


def fault_in(settings: ModelSettings) -> tuple[str, str] | None:
    """The setting that keeps a model from being opened and what is wrong with it; ``None`` if nothing is."""
    if settings.kind not in BACK_ENDS:
        return "kind", f" = {settings.kind!r}: input should be {' or '.join(map(repr, BACK_ENDS))}"
    missing = next((name for name in _named(settings.kind).needs if not getattr(settings, name)), None)
    return (missing, f' is missing: kind = "{settings.kind}" needs it.') if missing else None


def _named(kind: str) -> BackEnd:
    module, _, attribute = BACK_ENDS[kind].partition(":")
    found: BackEnd = getattr(import_module(module), attribute)
    return found
