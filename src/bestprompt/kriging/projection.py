"""Projection stochastic kriging (PSK): kriging on the latent space with a learned projection as feature map.

Notation (paper symbol → name, shape):
    X, D~              latent vector                                       → row of ``X``          (n, D~)
    Ã(X), D*           learned projection, see ``features.py``             → ``features``          (n, D*)
    K = Ã Ãᵀ           prior covariance of the mean scores [eq.skmodel2]   → never formed
    v̄, Σ_ε             observed means, diag(σ²(X_n)/r_n)                   → ``scores``, ``variances`` (n,)
    μ̂(X), σ̂²(X)        predictor, uncertainty [eq.pskpredictor, eq.predictionuncertainty] → ``predict``
    P                  I + Ãᵀ Σ_ε⁻¹ Ã, precision of the weights of the features → ``precision``     (D*, D*)
    q                  Ãᵀ Σ_ε⁻¹ (v̄ − b)                                    → ``information``       (D*,)

v(X) = Ã(X)ᵀ w with w ~ N(0, I) is the paper's Gaussian process, so with the matrix inversion lemma
    μ̂(X) = b + Ã(X)ᵀ P⁻¹ q,    σ̂²(X) = Ã(X)ᵀ P⁻¹ Ã(X),
equal to the paper's N x N formulas at D* x D* cost; an evaluation adds to P and q. Unevaluated prompts are absent (the
paper assumes r_n ≥ 1). Own additions, off in ``paper_kriging``: the constant trend b (the paper's is 0), the nugget τ²
of ``features.py`` added to Σ_ε, and early stopping: training goes on as long as the held-out likelihood of the 70/30
splits rises, the same splits that choose D* (the smallest within one standard error of the best). Without early
stopping Ã is trained to the end, and D* is the one with the highest held-out likelihood there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from bestprompt.errors import SurrogateError
from bestprompt.kriging.features import (
    FeatureFit,
    FeatureMap,
    MapShape,
    Rows,
    Start,
    features_at,
    random_map,
    train_together,
    warm_map,
)
from bestprompt.kriging.inputs import Observed
from bestprompt.kriging.kernels import typical_distance
from bestprompt.kriging.padding import padded, row_shape
from bestprompt.kriging.stochastic import KrigingModel
from bestprompt.types import FloatArray

DRAWS = 2000


@dataclass(frozen=True)
class Principal:
    """Principal coordinates of the latent vectors of a set.

    Attributes:
        centre: (D~,)
        axes: (d, D~) orthonormal rows; zero rows where the set has no further dimension.
        unit: Root mean square distance from the centre.
        rows: (N, d) coordinates of the set itself.
    """

    centre: FloatArray
    axes: FloatArray
    unit: float
    rows: FloatArray

    @classmethod
    def of(cls, X: FloatArray, dims: int) -> Principal:
        """The ``dims`` leading principal axes of the rows of ``X`` (N, D~)."""
        centred = X - X.mean(axis=0)
        _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
        rank = min(dims, int(np.sum(sizes > 1e-7 * max(float(sizes[0]), 1e-12))))
        kept = np.zeros((dims, X.shape[1]))
        kept[:rank] = axes[:rank]
        unit = float(np.sqrt((sizes**2).sum() / len(X))) or 1.0
        return cls(X.mean(axis=0), kept, unit, centred @ kept.T / unit)

    def coordinates(self, X: FloatArray) -> FloatArray:
        """(n, d) coordinates of ``X`` (n, D~); over the set their mean square norm is at most one."""
        return np.asarray((np.atleast_2d(X) - self.centre) @ self.axes.T / self.unit)

    def steps(self, x: FloatArray) -> FloatArray:
        """(n, D~) displacements in the latent space of displacements ``x`` (n, d) of the coordinates."""
        return np.asarray(x @ self.axes * self.unit)


@dataclass(frozen=True)
class ProjectionKriging:
    """The recipe of a PSK fit.

    Attributes:
        grid: Values of D* to choose from.
        inputs: d, principal coordinates the network sees.
        hidden: Width of the layer that bends them.
        frequencies: Of the layer of waves.
        warm_start: Start at kriging of rank D* instead of at random weights.
        nugget: Learn an idiosyncratic variance τ².
        trend: Subtract the mean score; the paper's prior mean is zero.
        splits: Random 70/30 splits for D* and early stopping.
        early_stopping: Keep the checkpoint, possibly the untrained network, and the D* that held-out rows speak for by
            the rule of one standard error; else the last checkpoint and the D* with the highest held-out likelihood.
        stretches: Checkpoints of training, ``features.STRIDE`` steps each; 0 keeps the start, with the largest D*.
        rate: Step size, falling to a tenth.
        decay: Precision of the normal prior of every weight around its start.
        capacity: Rows the compiled programs hold; grows by doubling.
    """

    grid: tuple[int, ...] = (16, 24, 32)
    inputs: int = 32
    hidden: int = 32
    frequencies: int = 64
    warm_start: bool = True
    nugget: bool = True
    trend: bool = True
    splits: int = 4
    early_stopping: bool = True
    stretches: int = 8
    rate: float = 0.01
    decay: float = 10.0
    capacity: int = 256

    def fit(self, principal: Principal, data: Observed, rng: np.random.Generator) -> FittedProjection:
        """Choose D*, train Ã and condition on ``data``, whose ``Z`` holds the latent vectors (n, D~).

        Raises:
            SurrogateError: The likelihood is not finite.
        """
        n, widest = len(data.scores), max(self.grid)
        size = row_shape(n, self.capacity)
        trend = data.centre if self.trend else 0.0
        unit = float(np.sqrt(data.spread + (data.centre - trend) ** 2))
        scaled = Observed(
            principal.coordinates(data.Z), data.rows, (data.scores - trend) / unit, data.variances / unit**2
        )
        start = self._start(principal, scaled, rng)
        if not self.stretches:
            untrained = FittedProjection(
                principal, start, widest, trend, unit, np.eye(widest), np.zeros(widest), 0, float("nan")
            )
            return untrained.conditioned(data)
        filled = (padded(scaled.Z, size), padded(scaled.scores, size), padded(scaled.variances, size, 1.0))
        rows = Rows(*(jnp.asarray(values) for values in filled))
        used = np.zeros((self.splits + 1, size), np.float32)
        for split in used:
            split[rng.permutation(n)[: max(round(0.7 * n), 1)]] = 1.0
        used[-1, :n] = 1.0  # the last network of each D* sees everything: the one that is kept
        masks = (np.arange(widest) < np.array(self.grid)[:, None]).astype(np.float32)
        tasks = FeatureFit(
            jnp.asarray(np.tile(used, (len(self.grid), 1))),
            jnp.asarray(np.tile((np.arange(size) < n) - used, (len(self.grid), 1)), jnp.float32),
            jnp.asarray(np.repeat(masks, self.splits + 1, axis=0)),
        )
        rates = jnp.asarray(np.linspace(self.rate, 0.1 * self.rate, self.stretches), jnp.float32)
        everywhere = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (tasks.used.shape[0], *leaf.shape)), start)
        trained, density = train_together(everywhere, rows, tasks, rates, jnp.asarray(self.decay, jnp.float32))
        table = np.asarray(density, np.float64).reshape(len(self.grid), self.splits + 1, -1)[:, :-1]
        choose = self._one_standard_error if self.early_stopping else self._most_accurate
        # With fewer than six rows nothing can be held out: the smallest D*, untrained where training may stop early.
        untested = (0, 0 if self.early_stopping else self.stretches, float("nan"))
        chosen, checkpoint, value = choose(table) if n >= 6 else untested
        kept = chosen * (self.splits + 1) + self.splits
        network = jax.tree.map(lambda leaf: leaf[kept, checkpoint], trained)
        if not all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(network)):
            raise SurrogateError("training the projection diverged", {"checkpoint": float(checkpoint)})
        dimension = self.grid[chosen]
        blank = FittedProjection(
            principal, network, dimension, trend, unit, np.eye(dimension), np.zeros(dimension), checkpoint, value
        )
        return blank.conditioned(data)

    def _start(self, principal: Principal, scaled: Observed, rng: np.random.Generator) -> FeatureMap:
        """Ã before training; the warm start takes its kernel from stochastic kriging on the coordinates."""
        shape = MapShape(self.hidden, self.frequencies, max(self.grid))
        if not self.warm_start:
            return random_map(self.inputs, shape, Start(1.0, 1.0, 0.1 if self.nugget else 0.0), rng)
        kernel = KrigingModel(nugget=self.nugget).fit(scaled, unit=typical_distance(principal.rows)).hyperparameters
        start = Start(np.sqrt(2.0) / kernel.length, kernel.amplitude, kernel.nugget)
        return warm_map(principal.rows, shape, start, rng)

    @staticmethod
    def _most_accurate(table: FloatArray) -> tuple[int, int, float]:
        """The paper's choice from ``table`` (grid, split, checkpoint): the best D* at the last checkpoint."""
        means = np.nan_to_num(table[:, :, -1], nan=-1e6, neginf=-1e6).mean(axis=1)
        return int(means.argmax()), table.shape[2] - 1, float(means.max())

    def _one_standard_error(self, table: FloatArray) -> tuple[int, int, float]:
        """The simplest choice whose held-out density lies within one standard error of the best.

        Args:
            table: (grid, split, checkpoint) held-out densities.

        Returns:
            Place of the smallest such D* in the grid, its earliest such checkpoint, and the mean density there.
        """
        table = np.nan_to_num(table, nan=-1e6, neginf=-1e6)
        means = table.mean(axis=1)
        best = np.unravel_index(int(means.argmax()), means.shape)
        shortfall = table[best[0], :, best[1]][None, :, None] - table
        near = shortfall.mean(axis=1) <= shortfall.std(axis=1, ddof=1) / np.sqrt(self.splits)
        g, checkpoint = (int(i) for i in np.argwhere(near)[0])
        return g, checkpoint, float(means[g, checkpoint])


def kriging_projection() -> ProjectionKriging:
    """Kriging on the principal coordinates as a projection that is not trained: what default mode predicts by.

    On score tables of real models a trained projection had a lower held-out density and no lower error
    (``experiments/projection``): a few dozen noisy scores do not teach a network what the kernel does not know.
    """
    return ProjectionKriging(grid=(64,), frequencies=128, stretches=0)


def paper_kriging(early_stopping: bool = False) -> ProjectionKriging:
    """PSK as published: no trend, no nugget, random weights with hardly a prior, trained; D* by cross-validation.

    Runs that were recorded when paper mode still stopped training early go on with ``early_stopping``.
    """
    return ProjectionKriging(
        warm_start=False,
        nugget=False,
        trend=False,
        early_stopping=early_stopping,
        stretches=20,
        rate=0.03,
        decay=0.1,
    )


@dataclass(frozen=True)
class FittedProjection:
    """PSK conditioned on the evaluated vectors; ``updated`` and ``conditioned`` return new ones.

    Attributes:
        principal: Coordinates of the latent space.
        network: Ã and τ², in units of ``unit``.
        dimension: D*.
        trend: b.
        unit: Root mean square distance of the true scores from b, one unit of the network.
        precision: (D*, D*) P.
        information: (D*,) q, in units of ``unit``.
        checkpoint: Where training stopped.
        held_out: Mean held-out log-density there.
    """

    principal: Principal
    network: FeatureMap
    dimension: int
    trend: float
    unit: float
    precision: FloatArray
    information: FloatArray
    checkpoint: int
    held_out: float

    @property
    def nugget(self) -> float:
        """τ² in the scores' units."""
        return float(np.exp(np.float64(self.network.log_nugget))) * self.unit**2

    def features(self, X: FloatArray) -> FloatArray:
        """(n, D*) Ã at latent vectors ``X`` (n, D~), in the scores' units: K = Ã Ãᵀ."""
        return self.unit * self._features(self.principal.coordinates(X))

    def _features(self, x: FloatArray) -> FloatArray:
        raw = np.asarray(features_at(self.network, jnp.asarray(padded(x))), np.float64)
        return raw[: len(x), : self.dimension]

    @cached_property
    def _factor(self) -> FloatArray:
        """(D*, D*) lower Cholesky factor of P."""
        return np.asarray(np.linalg.cholesky(self.precision))

    @cached_property
    def weights(self) -> FloatArray:
        """(D*,) P⁻¹ q."""
        return np.asarray(cho_solve((self._factor, True), self.information))

    @cached_property
    def root(self) -> FloatArray:
        """(D*, D*) L⁻¹, so that σ̂(X) = ‖L⁻¹ Ã(X)‖."""
        return np.asarray(solve_triangular(self._factor, np.eye(self.dimension), lower=True))

    def conditioned(self, data: Observed) -> FittedProjection:
        """The same Ã conditioned on ``data`` and nothing else; no training."""
        blank = replace(self, precision=np.eye(self.dimension), information=np.zeros(self.dimension))
        return blank.updated(data.Z, data.scores, data.variances)

    def updated(self, X: FloatArray, scores: FloatArray, variances: FloatArray) -> FittedProjection:
        """After further means ``scores`` (n,) with ``variances`` (n,) at ``X`` (n, D~); no training.

        Exact for vectors not seen before; a further evaluation of one seen before counts as an independent look at it,
        which is exact without nugget.
        """
        features = self._features(self.principal.coordinates(X))
        weight = self.unit**2 / (np.asarray(variances, np.float64) + self.nugget)
        gain = features.T * weight
        return replace(
            self,
            precision=self.precision + gain @ features,
            information=self.information + gain @ ((np.asarray(scores, np.float64) - self.trend) / self.unit),
        )

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """μ̂ and σ̂ at latent vectors ``X`` (n, D~); each (n,). The nugget is not part of σ̂."""
        return self._predict(self.principal.coordinates(X))

    def _predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        features = self._features(x)
        std = np.sqrt(((features @ self.root.T) ** 2).sum(axis=1))
        return self.trend + self.unit * (features @ self.weights), self.unit * std

    def evaluated(self, data: Observed) -> FloatArray:
        """(n,) posterior means of candidates that have been evaluated: μ̂ and what each has of its own."""
        mean, _ = self.predict(data.Z)
        return np.asarray(mean + self.nugget / (self.nugget + data.variances) * (data.scores - mean))

    def log_likelihood(self, data: Observed) -> float:
        """`eq.likelihood` of ``data`` divided by its number of rows, scores in units of ``unit``."""
        n = len(data.scores)
        alone = self.conditioned(data)
        noise = (data.variances + self.nugget) / self.unit**2
        residual = (data.scores - self.trend) / self.unit
        determinant = np.log(noise).sum() + 2.0 * np.log(np.diag(alone._factor)).sum()
        return float(-0.5 * (determinant + residual @ (residual / noise) - alone.information @ alone.weights) / n)

    def input_uncertainty(
        self, centre: FloatArray, root: FloatArray, rng: np.random.Generator, draws: int = DRAWS
    ) -> tuple[float, float, float]:
        """Mean and variance of v(X) for a random X, by the law of total variance.

        X ~ N(``centre`` (D~,), Σ) with Σ = RᵀR, R = ``root`` (k, D~). E v = E μ̂(X), Var v = E σ̂²(X) + Var μ̂(X), over
        antithetic draws of the coordinates of X: nothing else of X matters to the model.

        Returns:
            E v, and the two parts of Var v: E σ̂², what the model does not know, and Var μ̂, what X decides.
        """
        at = self.principal.coordinates(centre)[0]
        noise = rng.standard_normal((draws // 2, len(root))) @ (root @ self.principal.axes.T) / self.principal.unit
        mean, std = self._predict(at + np.concatenate([noise, -noise]))
        return float(mean.mean()), float((std**2).mean()), float(mean.var())
