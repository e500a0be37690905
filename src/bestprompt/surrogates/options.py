"""Options of surrogates: what cannot work is refused when a recipe is made, not when it is fitted amid a run.

Checks of numbers take the recipe and the names of its fields; ``within`` is the option that the recipe itself is the
value of, so that a message names ``hmc.n_chains`` as a user writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from math import isfinite
from numbers import Integral, Real
from typing import Any, get_args, get_type_hints

from bestprompt.errors import ConfigError


def check_choice(option: str, value: object, names: Collection[str]) -> None:
    """Refuses a name that is not among ``names``."""
    if not isinstance(value, str) or value not in names:
        choice = " or ".join(names) if len(names) == 2 else f"one of {', '.join(names)}"
        raise ConfigError(f"{option} {value!r} is unknown: choose {choice}")


def check_counts(recipe: object, least: int, *options: str, within: str = "") -> None:
    """Refuses what is not a whole number of at least ``least``."""
    _check(recipe, options, lambda v: _is_whole(v, least), f"a whole number of at least {least}", within)


def check_draws(recipe: object) -> None:
    """Refuses an ``n_draws`` other than 0, for mean and std only, or the two or more that have a spread."""
    _check(recipe, ("n_draws",), lambda v: _is_whole(v, 0) and v != 1, "0 or a whole number of at least 2")


def check_positive(recipe: object, *options: str, within: str = "") -> None:
    """Refuses what is not a finite number above 0."""
    _check(recipe, options, lambda v: _is_number(v) and v > 0, "a number above 0", within)


def check_not_negative(recipe: object, *options: str, within: str = "") -> None:
    """Refuses what is not a finite number of at least 0."""
    _check(recipe, options, lambda v: _is_number(v) and v >= 0, "a number of at least 0", within)


def check_shares(recipe: object, *options: str, within: str = "") -> None:
    """Refuses what is not a number between 0 and 1, both excluded."""
    _check(recipe, options, lambda v: _is_number(v) and 0 < v < 1, "a number above 0 and below 1", within)


def check_flags(recipe: object, *options: str) -> None:
    """Refuses what is neither true nor false; a number or a text would count as true."""
    _check(recipe, options, lambda v: isinstance(v, bool), "true or false")


def check_widths(recipe: object, *options: str) -> None:
    """Refuses what is not a sequence, possibly empty, of widths of at least 1."""

    def are_widths(value: Any) -> bool:
        return isinstance(value, (tuple, list)) and all(_is_whole(width, 1) for width in value)

    _check(recipe, options, are_widths, "a list of whole numbers of at least 1")


def check_settings(option: str, value: object, kind: type) -> None:
    """Refuses what is not a ``kind``, a small dataclass of settings."""
    if not isinstance(value, kind):
        raise ConfigError(f"{option} {value!r} cannot be used: give a table of {_names(kind)}")


def with_settings(recipe: Callable[..., object], options: Mapping[str, object]) -> dict[str, object]:
    """``options`` of ``recipe`` as a settings file has them: tables become the dataclass of their field, lists tuples.

    Raises:
        ConfigError: The option takes no table, or the table has an unknown key or lacks one.
    """
    return {
        option: _settings(recipe, option, value)
        if isinstance(value, Mapping)
        else (tuple(value) if isinstance(value, list) else value)
        for option, value in options.items()
    }


def _settings(recipe: Callable[..., object], option: str, table: Mapping[str, object]) -> object:
    hint = get_type_hints(recipe)[option]
    kind = next((part for part in (hint, *get_args(hint)) if is_dataclass(part)), None)
    if kind is None:
        raise ConfigError(f"{option} {dict(table)!r} cannot be used: it takes a single value, not a table")
    for key in table:
        if key not in {field.name for field in fields(kind)}:
            raise ConfigError(f"{option} has no option {key!r}: choose from {_names(kind)}")
    for field in fields(kind):
        if field.name not in table and field.default is MISSING and field.default_factory is MISSING:
            raise ConfigError(f"{option} {dict(table)!r} lacks {field.name!r}: give a table of {_names(kind)}")
    return kind(**table)  # type: ignore[operator]


def _check(
    recipe: object, options: Collection[str], holds: Callable[[Any], bool], allowed: str, within: str = ""
) -> None:
    for option in options:
        if not holds(value := getattr(recipe, option)):
            name = f"{within}.{option}" if within else option
            raise ConfigError(f"{name} {value!r} cannot be used: give {allowed}")


def _is_whole(value: Any, least: int) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and isfinite(value)


def _names(kind: Any) -> str:
    return ", ".join(field.name for field in fields(kind))
