"""Surrogates by name."""

from __future__ import annotations

from collections.abc import Callable

from bestprompt.choices import SURROGATES, named_class
from bestprompt.errors import ConfigError
from bestprompt.surrogates.options import with_settings
from bestprompt.types import Surrogate


def make_surrogate(name: str, **options: object) -> Surrogate:
    """The surrogate of that name with these options.

    Args:
        name: A name in :data:`bestprompt.choices.SURROGATES`.
        **options: Fields of the recipe, e.g. ``make_surrogate("bnn", layers=(16,), inference="hmc")``. Settings that
            are a group of their own (``prior`` and ``hmc`` of the network, ``hyperparameters`` of the Gaussian
            processes) are given as their dataclass or as a mapping, e.g. ``hmc={"n_chains": 2}``.

    Raises:
        ConfigError: Unknown name or option, or a value that the option cannot take.
    """
    recipe: Callable[..., Surrogate] = named_class("surrogate", SURROGATES, name)
    allowed = getattr(recipe, "__dataclass_fields__", {})
    if unknown := sorted(set(options) - set(allowed)):
        raise ConfigError(f"surrogate {name!r} has no option {unknown[0]!r}: choose from {', '.join(allowed)}")
    return recipe(**with_settings(recipe, options))
