"""Variational autoencoder surrogate: an encoder to a distribution over a latent, a decoder from it to the score.

Notation (paper symbol → name):
    W_enc, W_dec     weights of encoder and decoder                   → ``params``, two trees
    p(y | z, W_enc)  N(m(z), diag s(z)²), the latent given z          → ``VAEObjective.encode``  (n, d), (n, d)
    L_regression     ½ Σ (r_n/σ_n²)(v̄_n − dec(y_n))²                  → first part of ``loss``
    L_KL             Σ KL(N(m, s²) ‖ N(0, I)) over evaluated rows      → second part, times ``beta``
    y_1 … y_K        latent draws, one score surface each             → ``FittedVAE.posterior``

The paper trains by L_regression + β L_KL and leaves the weights without a prior; we add a penalty on the weights,
since a handful of scores cannot determine them. The k-th draw uses the same latent noise at every row, which makes it
one function of z, so draws are joint over rows. The spread comes from the latent alone: it does not vanish as evidence
grows, and the surrogate is the least calibrated of the four; with few scores in many dimensions it may, depending on
its start, end as a flat surface.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from bestprompt.kriging.inputs import observed
from bestprompt.surrogates.inference import STANDARD_NORMAL, Batch, Descent, Tree, standard_normal, start_descent
from bestprompt.surrogates.network import Network, padded
from bestprompt.surrogates.training import Units, train
from bestprompt.types import Evidence, FloatArray, Posterior


@dataclass(frozen=True, slots=True)
class VAEObjective:
    """The combined loss L_regression + β L_KL, plus a penalty on the weights."""

    encoder: Network
    decoder: Network
    beta: float
    weight_penalty: float

    @property
    def latent(self) -> int:
        """d, coordinates of the latent."""
        return self.decoder.widths[0]

    def encode(self, params: Tree, Z: jax.Array) -> tuple[jax.Array, jax.Array]:
        """m(z) and log s(z), each (n, d); s starts near exp(−1)."""
        both = self.encoder.forward(params[0], Z)
        return both[:, : self.latent], both[:, self.latent :] - 1.0

    def noise(self, rng: np.random.Generator, params: Tree, steps: int) -> np.ndarray:
        """(steps, 2, d) latent noise; each draw is shared by the rows of a batch, as in ``posterior``."""
        return standard_normal(rng, steps, 2, self.latent)

    def loss(self, params: Tree, batch: Batch, noise: jax.Array) -> jax.Array:
        """L_regression + β L_KL + weight_penalty · ½‖W‖²."""
        mean, log_std = self.encode(params, batch.Z)
        latents = mean + jnp.exp(log_std) * jnp.concatenate([noise, -noise])[:, None, :]
        scores = jax.vmap(lambda y: self.decoder.forward(params[1], y)[:, 0])(latents)
        regression = 0.5 * jnp.mean(jnp.sum(batch.precision * (batch.scores - scores) ** 2, axis=1))
        divergence = 0.5 * jnp.sum(mean**2 + jnp.exp(2 * log_std) - 1.0 - 2 * log_std, axis=1)
        kl = jnp.sum(jnp.where(batch.precision > 0, divergence, 0.0))
        return regression + self.beta * kl - self.weight_penalty * STANDARD_NORMAL.log_density(params)


@partial(jax.jit, static_argnames=("objective",))
def decode_draws(objective: VAEObjective, params: Tree, noise: jax.Array, Z: jax.Array) -> jax.Array:
    """(K, n) scores at the rows of ``Z`` (n, D) for latent noise (K, d)."""
    mean, log_std = objective.encode(params, Z)
    return jax.vmap(lambda e: objective.decoder.forward(params[1], mean + jnp.exp(log_std) * e)[:, 0])(noise)


@dataclass(frozen=True)
class FittedVAE:
    """A trained autoencoder with K fixed latent noises."""

    objective: VAEObjective
    units: Units
    state: Descent
    noise: np.ndarray
    diagnostics: Mapping[str, float]

    def posterior(self, Z: FloatArray) -> Posterior:
        """Posterior at any rows ``Z`` (n, D); draws (K, n)."""
        draws = decode_draws(self.objective, self.state.params, self.noise, padded(self.units.rows(Z)))
        return self.units.posterior(np.asarray(draws)[:, : len(Z)])


@dataclass(frozen=True, slots=True)
class VariationalAutoencoder:
    """The recipe.

    Attributes:
        latent: d.
        encoder_layers: Hidden widths of the encoder.
        decoder_layers: Hidden widths of the decoder.
        beta: Weight of the KL term; near 1 the latent carries nothing and the surface is flat.
        weight_penalty: Multiple of ½‖W‖². In 50 dimensions .1 overfits; at 1 and above all weights go to zero, the mode
            of a product of small weights.
        activation: A name in ``network.ACTIVATIONS``.
        n_draws: K.
        steps: Adam steps of a cold fit.
        warm_steps: Adam steps when continuing from the last round.
        rate: Adam's first learning rate, cold; a third of it warm.
        batch_rows: Rows per step.
        standardise: Scale soft prompts and scores.
    """

    latent: int = 2
    encoder_layers: tuple[int, ...] = (16,)
    decoder_layers: tuple[int, ...] = (8,)
    beta: float = 0.3
    weight_penalty: float = 0.6
    activation: str = "tanh"
    n_draws: int = 100
    steps: int = 1000
    warm_steps: int = 20
    rate: float = 0.03
    batch_rows: int = 256
    standardise: bool = True

    def fit(
        self, Z: FloatArray, evidence: Evidence, rng: np.random.Generator, previous: FittedVAE | None = None
    ) -> FittedVAE:
        """See :class:`bestprompt.types.Surrogate`; ``previous`` is the last round's fit, whose state is continued."""
        Z = np.asarray(Z, dtype=np.float64)
        data = observed(Z, evidence)
        encoder = Network((Z.shape[1], *self.encoder_layers, 2 * self.latent), self.activation)
        decoder = Network((self.latent, *self.decoder_layers, 1), self.activation)
        objective = VAEObjective(encoder, decoder, self.beta, self.weight_penalty)
        units = Units.of(Z, data, self.standardise)
        if previous is None or not previous.units.serve(units):
            state = start_descent((encoder.normal_weights(rng, scale=1.0), decoder.normal_weights(rng, scale=1.0)))
            n_chunks, rate = max(1, self.steps // self.warm_steps), self.rate
        else:
            units, state, n_chunks, rate = previous.units, previous.state, 1, self.rate / 3.0
        size = min(len(Z), self.batch_rows)
        state, loss = train(objective, state, units, data, size, self.warm_steps, n_chunks, rate, rng)
        noise = standard_normal(rng, self.n_draws, self.latent)
        return FittedVAE(objective, units, state, noise, {"loss": loss})
