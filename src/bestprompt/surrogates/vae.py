"""Variational autoencoder surrogate: an encoder to a distribution over a latent, a decoder from it to the score.

Notation (paper symbol → name):
    W_enc, W_dec     weights of encoder and decoder                   → ``params``, two trees
    p(y | z, W_enc)  N(m(z), diag s(z)²), the latent given z          → ``LatentFeatures.encode``  (n, d), (n, d)
    L_regression     ½ Σ (r_n/σ_n²)(v̄_n − dec(y_n))²                  → −``output_layer.log_evidence``
    L_KL             Σ KL(N(m, s²) ‖ N(0, I)) over evaluated rows      → ``LatentFeatures.complexity``, times ``beta``
    y_1 … y_K        latent draws, one score surface each             → ``FittedFeatures.posterior``

The paper trains by L_regression + β L_KL and leaves the weights without a prior. A handful of scores cannot determine
them: trained with point weights, the surrogate overfitted in 50 dimensions under a small penalty on them and often
ended as a flat surface under a larger one (the mode of a product of small weights). Ours: the decoder's last layer is
integrated out, which makes L_regression the negative log evidence of the scores given the latent
(:mod:`output_layer`), and the other weights have independent normal posteriors as in the network surrogate. β weighs
L_KL as in the paper. The k-th draw uses the same latent noise at every row, which makes it one function of z, so
draws are joint over rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from bestprompt.kriging.inputs import observed
from bestprompt.surrogates.inference import STANDARD_NORMAL, Batch, MeanField, Tree, standard_normal
from bestprompt.surrogates.network import ACTIVATIONS, DenseNetwork
from bestprompt.surrogates.options import (
    check_choice,
    check_counts,
    check_flags,
    check_not_negative,
    check_positive,
    check_widths,
)
from bestprompt.surrogates.output_layer import FittedFeatures, fit_features
from bestprompt.surrogates.training import Pace, Units
from bestprompt.types import Evidence, FittedSurrogate, FloatArray


@dataclass(frozen=True, slots=True)
class LatentFeatures:
    """Encoder and the decoder's hidden layers: features of a latent drawn given z."""

    encoder: DenseNetwork
    decoder: DenseNetwork
    beta: float

    @property
    def n_features(self) -> int:
        """Width of the decoder's last hidden layer."""
        return self.decoder.widths[-1]

    @property
    def latent(self) -> int:
        """d, coordinates of the latent."""
        return self.decoder.widths[0]

    def encode(self, weights: Tree, Z: jax.Array) -> tuple[jax.Array, jax.Array]:
        """m(z) and log s(z), each (n, d); s starts near exp(−1)."""
        both = self.encoder.forward(weights, Z)
        return both[:, : self.latent], both[:, self.latent :] - 1.0

    def noise(self, rng: np.random.Generator, params: MeanField, *leading: int) -> Tree:
        """One per weight, and the latent's (d,), shared by all rows of a draw."""
        weights = jax.tree.map(lambda w: standard_normal(rng, *leading, *w.shape), params.mean)
        return weights, standard_normal(rng, *leading, self.latent)

    def hidden(self, params: MeanField, noise: Tree, Z: jax.Array) -> jax.Array:
        """(n, p − 1) decoder units at y = m(z) + s(z) ε."""
        of_weights, of_latent = noise
        encoder, decoder = jax.tree.map(lambda m, r, e: m + jnp.exp(r) * e, params.mean, params.log_std, of_weights)
        mean, log_std = self.encode(encoder, Z)
        return self.decoder.hidden(decoder, mean + jnp.exp(log_std) * of_latent)

    def complexity(self, params: MeanField, batch: Batch) -> jax.Array:
        """β L_KL at the mean weights, over the evaluated rows, plus the divergence of the weights from their prior."""
        mean, log_std = self.encode(params.mean[0], batch.Z)
        rows = 0.5 * jnp.sum(mean**2 + jnp.exp(2 * log_std) - 1.0 - 2 * log_std, axis=1)
        kl = jnp.sum(jnp.where(batch.precision > 0, rows, 0.0))
        return self.beta * kl + STANDARD_NORMAL.divergence(params.mean, params.log_std)


@dataclass(frozen=True, slots=True)
class VariationalAutoencoder:
    """The recipe.

    Attributes:
        latent: d.
        encoder_layers: Hidden widths of the encoder; none is a linear map, the best for few scores in many
            dimensions.
        decoder_layers: Hidden widths of the decoder; none makes the score linear in the latent.
        beta: Weight of the KL term; near 1 the latent carries nothing and the surface is flat.
        activation: A name in ``network.ACTIVATIONS``.
        n_draws: K, at least 2.
        steps: Adam steps of a cold fit.
        warm_steps: Adam steps when continuing from the last round.
        n_pairs: Antithetic pairs of draws per step.
        rate: Adam's first learning rate, cold; a fifth of it warm.
        batch_rows: Rows per step.
        standardise: Scale soft prompts and scores.
    """

    latent: int = 3
    encoder_layers: tuple[int, ...] = ()
    decoder_layers: tuple[int, ...] = (16,)
    beta: float = 0.05
    activation: str = "tanh"
    n_draws: int = 100
    steps: int = 400
    warm_steps: int = 20
    n_pairs: int = 1
    rate: float = 0.05
    batch_rows: int = 256
    standardise: bool = True

    def __post_init__(self) -> None:
        check_counts(self, 1, "latent", "steps", "warm_steps", "n_pairs", "batch_rows")
        check_widths(self, "encoder_layers", "decoder_layers")
        check_not_negative(self, "beta")
        check_choice("activation", self.activation, ACTIVATIONS)
        check_counts(self, 2, "n_draws")
        check_positive(self, "rate")
        check_flags(self, "standardise")

    def fit(
        self, Z: FloatArray, evidence: Evidence, rng: np.random.Generator, previous: FittedSurrogate | None = None
    ) -> FittedFeatures:
        """See :class:`bestprompt.types.Surrogate`; ``previous`` is the last round's fit, whose state is continued."""
        Z = np.asarray(Z, dtype=np.float64)
        data = observed(Z, evidence)
        encoder = DenseNetwork((Z.shape[1], *self.encoder_layers, 2 * self.latent), self.activation)
        decoder = DenseNetwork((self.latent, *self.decoder_layers), self.activation)
        mean = (encoder.normal_weights(rng), decoder.normal_weights(rng))
        start = MeanField(mean, jax.tree.map(lambda w: np.full(w.shape, -2.0), mean))
        pace = Pace(self.steps, self.warm_steps, self.rate, self.rate / 5.0, self.batch_rows)
        units = Units.of(Z, data, self.standardise)
        model = LatentFeatures(encoder, decoder, self.beta)
        return fit_features(model, start, Z, data, units, pace, self.n_pairs, self.n_draws, rng, previous)
