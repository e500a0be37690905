"""Surrogates by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bestprompt.errors import ConfigError
from bestprompt.surrogates.bnn import BayesianNeuralNetwork
from bestprompt.surrogates.gp import FiniteRankGP, GaussianProcess
from bestprompt.surrogates.linear import BayesianLinearRegression
from bestprompt.surrogates.options import with_settings
from bestprompt.surrogates.vae import VariationalAutoencoder
from bestprompt.types import Surrogate

SURROGATES: dict[str, Callable[..., Surrogate]] = {
    "blr": BayesianLinearRegression,
    "gp": GaussianProcess,
    "gp-rank": FiniteRankGP,
    "bnn": BayesianNeuralNetwork,
    "vae": VariationalAutoencoder,
}


def make_surrogate(name: str, **options: Any) -> Surrogate:
    """The surrogate of that name with these options.

    Args:
        name: ``blr``, ``gp``, ``gp-rank``, ``bnn`` or ``vae``.
        **options: Fields of the recipe, e.g. ``make_surrogate("bnn", layers=(16,), inference="hmc")``. Settings that
            are a group of their own (``prior`` and ``hmc`` of the network, ``hyperparameters`` of the Gaussian
            processes) are given as their dataclass or as a mapping, e.g. ``hmc={"n_chains": 2}``.

    Raises:
        ConfigError: Unknown name or option, or a value that the option cannot take.
    """
    if name not in SURROGATES:
        raise ConfigError(f"surrogate {name!r} is unknown: choose one of {', '.join(SURROGATES)}")
    recipe = SURROGATES[name]
    allowed = getattr(recipe, "__dataclass_fields__", {})
    if unknown := sorted(set(options) - set(allowed)):
        raise ConfigError(f"surrogate {name!r} has no option {unknown[0]!r}: choose from {', '.join(allowed)}")
    return recipe(**with_settings(recipe, options))
