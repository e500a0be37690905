"""From scores to the latent scale on which effects add up, and back.

Notation (symbol → name, shape):
    f_n     latent level of candidate n; b_r  effect of item r
    η_t     f_n + b_r of observation t                              → ``eta``        (t,)
    p(η)    expected score: 1 / (1 + exp(−η)), or η itself          → ``Link.bounded`` says which
    φ       dispersion: var(v̂ | η) = φ p (1 − p), or φ itself       → ``Dispersion.residual``
    τ²      variance of the item effects                            → ``Dispersion.item``
    ω, y    weight and response of the linearised observation       → ``weights``, ``responses``  (t,)

A score in [0, 1] is noisiest in the middle and an item tells two candidates apart only where it is neither hopeless nor
trivial for them. Both follow from a logistic link with variance φ p (1 − p); for right-or-wrong scores φ is 1 and there
is no noise to estimate at all. Scores outside [0, 1] fall back to the identity with one common variance. Around a
normal belief about η the model is linear with normal errors, y = E[η] + (v̂ − E[p])/E[p'] and ω = E[p']/φ with
p' = p (1 − p), the stationary point of the variational bound, so all else is Gaussian algebra.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from bestprompt.selection.belief.noise import score_scale
from bestprompt.selection.core.state import SelectionState
from bestprompt.types import FloatArray

LOGIT_UNIT = 2.0
LOGIT_MEAN_VARIANCE = 2.25
IDENTITY_MEAN_VARIANCE = 1.2
STEEPEST = 4.0
# A logistic function averaged over a normal argument of variance s² is nearly one of argument / sqrt(1 + 0.346 s²).
FLATTENING = (16.0 * np.sqrt(3.0) / (15.0 * np.pi)) ** 2


@dataclass(frozen=True, slots=True)
class Link:
    """How latent levels become scores.

    Attributes:
        bounded: Logistic link for scores in [0, 1]; else the identity.
        binary: Scores are 0 or 1, so that φ is known to be 1.
        centre: Latent level around which candidates are expected.
        unit: Latent noise of one evaluation, roughly: the unit of the hypotheses' signals.
    """

    bounded: bool
    binary: bool
    centre: float
    unit: float

    @property
    def mean_variance(self) -> float:
        """Prior variance of the overall latent level around ``centre``."""
        return LOGIT_MEAN_VARIANCE if self.bounded else IDENTITY_MEAN_VARIANCE * self.unit**2

    def linearised(self, eta: FloatArray, variance: FloatArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(t,) weights ω φ and (t,) responses of ``scores`` around normal ``eta`` of this ``variance`` (t,)."""
        if not self.bounded:
            return np.ones_like(scores), scores.copy()
        inside, slope = _inside(eta), self.weights(eta, variance)
        return slope, inside + (scores - self.score(inside, variance)) / slope

    def weights(self, eta: FloatArray, variance: FloatArray) -> FloatArray:
        """(t,) weights ω φ of observations around normal ``eta`` of this ``variance`` (t,)."""
        return self.slope(_inside(eta), variance)

    def score(self, latent: FloatArray, variance: FloatArray | float) -> FloatArray:
        """Expected score at normal latent levels of this mean and ``variance`` (posterior and items together)."""
        return expit(latent / np.sqrt(1.0 + FLATTENING * variance)) if self.bounded else latent

    def slope(self, latent: FloatArray, variance: FloatArray | float) -> FloatArray:
        """Derivative of ``score`` with respect to ``latent``."""
        if not self.bounded:
            return np.ones_like(latent)
        flat = 1.0 / np.sqrt(1.0 + FLATTENING * variance)
        p = expit(latent * flat)
        return np.asarray(flat * p * (1.0 - p), dtype=np.float64)


def _inside(eta: FloatArray) -> FloatArray:
    """``eta`` where the link is not so flat that a linearised answer would mean nothing."""
    return np.minimum(np.maximum(eta, -STEEPEST), STEEPEST)


def link_of(state: SelectionState) -> Link:
    """The link that suits the scores seen so far."""
    scores = state.scores
    if scores.size == 0 or (scores.min() >= 0.0 and scores.max() <= 1.0):
        return Link(True, bool(np.all((scores == 0.0) | (scores == 1.0))), 0.0, LOGIT_UNIT)
    return Link(False, False, float(scores.mean()), score_scale(state))
