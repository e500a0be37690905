"""Options of surrogates are refused in words when the recipe is made; groups of settings may come as tables."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.errors import ConfigError
from bestprompt.kriging.stochastic import Hyperparameters
from bestprompt.surrogates.base import make_surrogate
from bestprompt.surrogates.hamiltonian import HMC
from bestprompt.surrogates.inference import WeightPrior

AT_LEAST_1 = "give a whole number of at least 1"
ABOVE_0 = "give a number above 0"
WIDTHS = "give a list of whole numbers of at least 1"
ACTIVATIONS = "choose one of tanh, relu, silu, gelu, softplus"
NO_SPREAD = "give 0 or a whole number of at least 2"


@pytest.mark.parametrize(
    ("name", "option", "value", "allowed"),
    [
        ("bnn", "layers", (16, 0), WIDTHS),
        ("bnn", "layers", 16, WIDTHS),
        ("bnn", "layers", (8.0,), WIDTHS),
        ("bnn", "activation", "sigmoidal", ACTIVATIONS),
        ("bnn", "inference", "laplace", "choose vi or hmc"),
        ("bnn", "output", "full", "choose exact or mean-field"),
        ("bnn", "prior", "laplace", "give a table of family, scale"),
        ("bnn", "hmc", 4, "give a table of n_chains, n_warmup"),
        ("bnn", "n_draws", 1, "give a whole number of at least 2"),
        ("bnn", "n_draws", "100", "give a whole number of at least 2"),
        *(("bnn", option, 0, AT_LEAST_1) for option in ("steps", "warm_steps", "n_pairs", "batch_rows")),
        ("bnn", "steps", True, AT_LEAST_1),
        ("bnn", "steps", 100.0, AT_LEAST_1),
        ("bnn", "rate", 0.0, ABOVE_0),
        ("bnn", "warm_rate", -0.01, ABOVE_0),
        ("bnn", "rate", float("nan"), ABOVE_0),
        ("bnn", "scaled", "no", "give true or false"),
        ("bnn", "standardise", 0, "give true or false"),
        ("vae", "latent", 0, AT_LEAST_1),
        ("vae", "encoder_layers", (0,), WIDTHS),
        ("vae", "decoder_layers", (-1,), WIDTHS),
        ("vae", "beta", -0.1, "give a number of at least 0"),
        ("vae", "activation", "sin", ACTIVATIONS),
        ("vae", "n_draws", 1, "give a whole number of at least 2"),
        ("vae", "steps", 0, AT_LEAST_1),
        ("vae", "rate", 0, ABOVE_0),
        ("vae", "standardise", "yes", "give true or false"),
        ("gp", "kernel", "matern32", "choose rbf or matern52"),
        ("gp", "nugget", 0.1, "give true or false"),
        ("gp", "hyperparameters", 1.0, "give a table of amplitude, length, nugget"),
        ("gp", "n_draws", 1, NO_SPREAD),
        ("gp", "n_draws", -1, NO_SPREAD),
        ("gp-rank", "rank", 0, AT_LEAST_1),
        ("gp-rank", "features", "wavelet", "choose nystroem or fourier"),
        ("gp-rank", "kernel", "linear", "choose rbf or matern52"),
        ("gp-rank", "constant_trend", None, "give true or false"),
        ("gp-rank", "n_draws", 1, NO_SPREAD),
        ("blr", "slope_variance", 0.0, ABOVE_0),
        ("blr", "intercept", "no", "give true or false"),
        ("blr", "n_draws", 1, NO_SPREAD),
    ],
)
def test_what_an_option_cannot_take_is_refused_with_its_name_and_what_is_allowed(name, option, value, allowed):
    with pytest.raises(ConfigError) as caught:
        make_surrogate(name, **{option: value})
    message = str(caught.value)
    assert message.startswith(f"{option} {value!r} ")
    assert allowed in message


@pytest.mark.parametrize(
    ("name", "option", "table", "message"),
    [
        ("bnn", "hmc", {"chains": 2}, "hmc has no option 'chains': choose from n_chains, n_warmup"),
        ("bnn", "hmc", {"n_chains": 0}, "hmc.n_chains 0 cannot be used: " + AT_LEAST_1),
        ("bnn", "hmc", {"n_burn": -1}, "hmc.n_burn -1 cannot be used: give a whole number of at least 0"),
        (
            "bnn",
            "hmc",
            {"target_acceptance": 1.0},
            "hmc.target_acceptance 1.0 cannot be used: give a number above 0",
        ),
        ("bnn", "prior", {"family": "cauchy"}, "prior.family 'cauchy' is unknown: choose normal or laplace"),
        ("bnn", "prior", {"scale": "wide"}, "prior.scale 'wide' cannot be used: " + ABOVE_0),
        ("bnn", "layers", {"first": 8}, "layers {'first': 8} cannot be used: it takes a single value"),
        ("gp", "hyperparameters", {"length": 1.0}, "hyperparameters {'length': 1.0} lacks 'amplitude'"),
        ("gp", "hyperparameters", {"sigma": 1.0}, "hyperparameters has no option 'sigma': choose from amplitude"),
        ("gp", "hyperparameters", {"amplitude": 1.0, "length": 0.0}, "hyperparameters.length 0.0 cannot be used"),
        ("gp-rank", "hyperparameters", {"amplitude": -1.0, "length": 1.0}, "hyperparameters.amplitude -1.0 cannot"),
        ("gp", "hyperparameters", {"amplitude": 1.0, "length": 1.0, "nugget": -1.0}, "hyperparameters.nugget -1.0"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_with_the_dotted_name(name, option, table, message):
    with pytest.raises(ConfigError) as caught:
        make_surrogate(name, **{option: table})
    assert str(caught.value).startswith(message)


def test_groups_of_settings_may_be_tables():
    network = make_surrogate("bnn", hmc={"n_chains": 2, "thin": 1}, prior={"family": "laplace", "scale": 0.5})
    assert network == make_surrogate("bnn", hmc=HMC(n_chains=2, thin=1), prior=WeightPrior("laplace", 0.5))
    for name in ("gp", "gp-rank"):
        fixed = make_surrogate(name, hyperparameters={"amplitude": 1.0, "length": 2})
        assert fixed.hyperparameters == Hyperparameters(1.0, 2)
        assert make_surrogate(name, hyperparameters=None).hyperparameters is None


@pytest.mark.slow
def test_what_is_unusual_but_works_is_accepted(problem):
    """No draws where they are not needed, no hidden layers, widths as a list, numbers of NumPy, one feature."""
    rng = np.random.default_rng(0)
    for name in ("blr", "gp", "gp-rank"):
        posterior = make_surrogate(name, n_draws=0).fit(problem.Z, problem.evidence, rng).posterior(problem.Z)
        assert posterior.draws is None
        assert np.isfinite(posterior.std).all()
    assert make_surrogate("bnn", layers=[4, 4], n_draws=np.int64(2), rate=np.float32(0.1)).n_draws == 2
    for recipe in (
        make_surrogate("bnn", layers=(), steps=20, n_draws=2),
        make_surrogate("vae", decoder_layers=(), beta=0, steps=20, n_draws=2),
        make_surrogate("gp-rank", rank=1, features="fourier"),
    ):
        assert np.isfinite(recipe.fit(problem.Z, problem.evidence, rng).posterior(problem.Z).mean).all()
