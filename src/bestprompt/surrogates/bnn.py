"""Bayesian neural network surrogate (the paper's choice), by mean-field VI or HMC.

Notation (paper symbol → name):
    f(z; W)        network                                       → ``NetworkModel.predict``
    π(W)           independent standard normal by default        → ``WeightPrior``
    Ŵ_1 … Ŵ_K      posterior draws of the weights                → ``FittedBNN.weights``
    μ̂_t, σ̂_t       sample mean and std [eq.approximate]          → ``FittedBNN.posterior``

Ours: soft prompts and scores are standardised first and kernels divided by sqrt(fan-in), so that the standard normal
prior of W means a prior of unit scale for the score; and under variational inference only the hidden layers are
independent normals, the output layer given them is exact (:mod:`output_layer` says why).
``BayesianNeuralNetwork(output="mean-field", standardise=False, scaled=False)`` is the paper's plain reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from bestprompt.kriging.inputs import Observed, observed
from bestprompt.kriging.padding import padded, row_shape
from bestprompt.surrogates.hamiltonian import DEFAULT_HMC, HMC
from bestprompt.surrogates.inference import (
    STANDARD_NORMAL,
    Batch,
    Descent,
    MeanField,
    NegativeELBO,
    Tree,
    WeightPrior,
    draw_mean_field,
    standard_normal,
    start_descent,
)
from bestprompt.surrogates.network import ACTIVATIONS, DenseNetwork
from bestprompt.surrogates.options import (
    check_choice,
    check_counts,
    check_flags,
    check_positive,
    check_settings,
    check_widths,
)
from bestprompt.surrogates.output_layer import FittedFeatures, fit_features
from bestprompt.surrogates.sampling import Adapted, Target, sample
from bestprompt.surrogates.training import Pace, Units, full_batch, train
from bestprompt.types import Evidence, FittedSurrogate, FloatArray, Posterior

# Chains must have mixed in f at so many candidates, the first (again from the first where there are fewer).
WATCHED = 32


@dataclass(frozen=True, slots=True)
class NetworkModel:
    """f(z; W) as :mod:`inference` wants it."""

    network: DenseNetwork
    prior: WeightPrior

    def predict(self, weights: Tree, Z: jax.Array) -> jax.Array:
        """(n,) outputs at the rows of ``Z`` (n, D)."""
        return self.network.forward(weights, Z)[:, 0]


@dataclass(frozen=True, slots=True)
class HiddenLayers:
    """Independent normal hidden weights, λ = (m, log s): the features of :mod:`output_layer`."""

    network: DenseNetwork
    prior: WeightPrior

    @property
    def n_features(self) -> int:
        """Width of the last hidden layer."""
        return self.network.widths[-1]

    def noise(self, rng: np.random.Generator, params: MeanField, *leading: int) -> Tree:
        """ε, one per weight."""
        return jax.tree.map(lambda w: standard_normal(rng, *leading, *w.shape), params.mean)

    def hidden(self, params: MeanField, noise: Tree, Z: jax.Array) -> jax.Array:
        """(n, p − 1) hidden units under W = m + s ε."""
        weights = jax.tree.map(lambda m, r, e: m + jnp.exp(r) * e, params.mean, params.log_std, noise)
        return self.prior.scale * self.network.hidden(weights, Z)

    def complexity(self, params: MeanField, batch: Batch) -> jax.Array:
        """KL(q ‖ π) up to a constant."""
        return self.prior.divergence(params.mean, params.log_std)


@partial(jax.jit, static_argnames=("model",))
def predict_draws(model: NetworkModel, weights: Tree, Z: jax.Array) -> jax.Array:
    """(K, n) outputs of K weight draws at the rows of ``Z`` (n, D)."""
    return jax.vmap(lambda w: model.predict(w, Z))(weights)


@dataclass(frozen=True)
class FittedBNN:
    """K weight draws; every call of ``posterior`` uses the same ones, so its draws are joint over all rows ever asked.

    Attributes:
        state: Variational parameters or chains, from which the next round's fit may continue.
    """

    model: NetworkModel
    units: Units
    weights: Tree
    state: Descent | Adapted
    diagnostics: Mapping[str, float]

    def posterior(self, Z: FloatArray) -> Posterior:
        """Posterior at any rows ``Z`` (n, D); draws (K, n)."""
        draws = predict_draws(self.model, self.weights, padded(self.units.rows(Z)))
        return self.units.posterior(np.asarray(draws)[:, : len(Z)])


@dataclass(frozen=True, slots=True)
class BayesianNeuralNetwork:
    """The recipe.

    Attributes:
        layers: Hidden widths; none is a linear model.
        activation: A name in ``network.ACTIVATIONS``.
        prior: WeightPrior of every weight and bias.
        inference: ``"vi"`` (fast) or ``"hmc"`` (asymptotically exact).
        output: Under VI, ``"exact"`` output layer given the hidden ones, or ``"mean-field"`` (Alg. 4 to the letter;
            falls back to a flat surface when a wide network meets few noisy scores). A Laplace prior, or no hidden
            layer, means ``"mean-field"``.
        n_draws: K, at least 2.
        hmc: Settings of the chains.
        steps: Adam steps of a cold variational fit.
        warm_steps: Adam steps when continuing from the last round; both are multiples of one compiled chunk.
        n_pairs: Antithetic pairs of draws per step.
        rate: Adam's first learning rate, cold.
        warm_rate: The same, warm.
        batch_rows: Rows per step; more evaluated rows than this are subsampled.
        scaled: Divide kernels by sqrt(fan-in).
        standardise: Scale soft prompts and scores.
    """

    layers: tuple[int, ...] = (16,)
    activation: str = "tanh"
    prior: WeightPrior = STANDARD_NORMAL
    inference: Literal["vi", "hmc"] = "vi"
    output: Literal["exact", "mean-field"] = "exact"
    n_draws: int = 100
    hmc: HMC = DEFAULT_HMC
    steps: int = 400
    warm_steps: int = 20
    n_pairs: int = 1
    rate: float = 0.05
    warm_rate: float = 0.01
    batch_rows: int = 256
    scaled: bool = True
    standardise: bool = True

    def __post_init__(self) -> None:
        check_widths(self, "layers")
        check_choice("activation", self.activation, ACTIVATIONS)
        check_settings("prior", self.prior, WeightPrior)
        check_choice("inference", self.inference, ("vi", "hmc"))
        check_choice("output", self.output, ("exact", "mean-field"))
        check_counts(self, 2, "n_draws")
        check_settings("hmc", self.hmc, HMC)
        check_counts(self, 1, "steps", "warm_steps", "n_pairs", "batch_rows")
        check_positive(self, "rate", "warm_rate")
        check_flags(self, "scaled", "standardise")

    @property
    def pace(self) -> Pace:
        """How the variational fit climbs."""
        return Pace(self.steps, self.warm_steps, self.rate, self.warm_rate, self.batch_rows)

    def fit(
        self,
        Z: FloatArray,
        evidence: Evidence,
        rng: np.random.Generator,
        previous: FittedSurrogate | None = None,
    ) -> FittedBNN | FittedFeatures:
        """See :class:`bestprompt.types.Surrogate`; ``previous`` is the last round's fit, whose state is continued."""
        Z = np.asarray(Z, dtype=np.float64)
        data = observed(Z, evidence)
        units = Units.of(Z, data, self.standardise)
        if self.inference == "vi" and self.output == "exact" and self.prior.family == "normal" and self.layers:
            hidden = HiddenLayers(DenseNetwork((Z.shape[1], *self.layers), self.activation, self.scaled), self.prior)
            start = self._start(hidden.network, rng, 1.0, 0.14)
            return fit_features(hidden, start, Z, data, units, self.pace, self.n_pairs, self.n_draws, rng, previous)
        model = NetworkModel(DenseNetwork((Z.shape[1], *self.layers, 1), self.activation, self.scaled), self.prior)
        state = None
        if isinstance(previous, FittedBNN) and previous.units.serve(units):
            units, state = previous.units, previous.state  # the state is expressed in the units of its first fit
        if self.inference == "vi":
            return self._variational(model, units, data, Z, rng, state if isinstance(state, Descent) else None)
        chains = state if isinstance(state, Adapted) else None
        return self._sampled(model, units, data, Z, int(np.sum(evidence.counts)), rng, chains)

    def stand_in(self) -> BayesianNeuralNetwork | None:
        """Variational inference, for Markov chains that did not mix."""
        return replace(self, inference="vi") if self.inference == "hmc" else None

    def _start(self, network: DenseNetwork, rng: np.random.Generator, scale: float, std: float) -> MeanField:
        mean = network.normal_weights(rng, scale=scale * self.prior.scale)
        return MeanField(mean, jax.tree.map(lambda w: np.full(w.shape, np.log(std * self.prior.scale)), mean))

    def _variational(
        self,
        model: NetworkModel,
        units: Units,
        data: Observed,
        Z: FloatArray,
        rng: np.random.Generator,
        state: Descent | None,
    ) -> FittedBNN:
        warm = state is not None
        if state is None:
            state = start_descent(self._start(model.network, rng, 0.5, 0.05))
        size = self.pace.rows(len(Z))
        state, loss = train(NegativeELBO(model, self.n_pairs), state, units, data, size, self.pace, warm, rng)
        weights = draw_mean_field(state.params, rng, self.n_draws)
        return FittedBNN(model, units, weights, state, {"negative_elbo": loss})

    def _sampled(
        self,
        model: NetworkModel,
        units: Units,
        data: Observed,
        Z: FloatArray,
        n_evaluations: int,
        rng: np.random.Generator,
        before: Adapted | None,
    ) -> FittedBNN:
        def start() -> Tree:
            return model.network.normal_weights(rng, self.hmc.n_chains, scale=0.5 * self.prior.scale)

        watched = units.rows(Z[np.arange(WATCHED) % len(Z)]).astype(np.float32)
        target = Target(model, full_batch(units, row_shape(len(Z)), data), n_evaluations, watched)
        sampled = sample(target, self.hmc, self.n_draws, start, rng, before)
        weights = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[: self.n_draws], sampled.draws)
        return FittedBNN(model, units, weights, sampled.state, sampled.diagnostics)
