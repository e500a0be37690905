"""The surrogates as the paper's experiment E1 has them, by name.

Notation (paper symbol → name):
    π(W)       independent standard normal, for every surrogate              → unit variances, no scaling of z or scores
    K(z, z')   exp(−‖z − z'‖²/σ²), σ² given by the user and not learned       → ``hyperparameters``, σ = ``length``
    K          posterior draws, 100                                          → ``n_draws`` of every recipe

What the paper leaves open is filled in: σ is the median distance between candidates, and the networks' widths and
training are ours. What stays of our own additions: the VAE's last layer is integrated out (:mod:`vae` says why), and
the network's mean-field posterior is found by Adam with antithetic draws.
"""

from __future__ import annotations

from collections.abc import Mapping

from bestprompt.kriging.kernels import typical_distance
from bestprompt.types import FloatArray

_PLAIN: Mapping[str, Mapping[str, object]] = {
    "blr": {"intercept": False, "slope_variance": 1.0, "standardise": False},
    "gp": {"constant_trend": False, "nugget": False},
    "gp-rank": {"constant_trend": False},
    "bnn": {
        "output": "mean-field",
        "layers": (8,),
        "steps": 1000,
        "rate": 0.03,
        "hmc": {"trajectory": "fixed"},
        "scaled": False,
        "standardise": False,
    },
    "vae": {"standardise": False},
}


def published_options(name: str, Z: FloatArray) -> dict[str, object]:
    """Options that make the surrogate ``name`` the paper's, over candidates at ``Z`` (N, D)."""
    options = dict(_PLAIN.get(name, {}))
    if name in ("gp", "gp-rank"):
        options["hyperparameters"] = {"amplitude": 1.0, "length": typical_distance(Z)}
    return options
