"""The moves of the search stage in the latent box, arrays only (paper, section "Search Stage", steps 2 and 3).

Notation (paper symbol → name, shape):
    𝒳 = {X_1 … X_L}    current set of latent vectors                  → ``X``       (L, D~)
    Σ_p                sample covariance of the set, (1/L) Σ (X_n−X̄)(X_n−X̄)ᵀ  → never formed, see ``sample_steps``
    ñ_l                times X_l was chosen as parent so far           → ``chosen``  (L,)
    l                  parent, P(l) ∝ exp(−ñ_l)                        → ``parent_law``
    V ~ N(0, Σ_p)      step                                            → rows of ``steps`` (k, D~)
    X' = X_l + V       proposal, kept when inside [-1, 1]^D~           → ``inside_box``
"""

from __future__ import annotations

import numpy as np
from sklearn.covariance import ledoit_wolf_shrinkage

from bestprompt.types import BoolArray, FloatArray, IntArray


def parent_law(chosen: IntArray) -> FloatArray:
    """(L,) probabilities ∝ exp(−ñ_l); the smallest count is subtracted first, which changes nothing but overflow."""
    weights = np.exp(-(chosen - chosen.min()).astype(np.float64))
    return np.asarray(weights / weights.sum())


def sample_steps(X: FloatArray, k: int, rng: np.random.Generator) -> FloatArray:
    """(k, D~) draws of N(0, Σ_p) with the exact sample covariance: V = Σ_n w_n (X_n − X̄)/√L with w_n ~ N(0, 1).

    The rank of Σ_p is at most L − 1, so every proposal stays in the affine span of the set (method.md, slip 1).
    """
    centred = X - X.mean(axis=0)
    return np.asarray(rng.standard_normal((k, len(X))) @ centred / np.sqrt(len(X)))


def shrinkage(X: FloatArray) -> float:
    """Ledoit–Wolf weight ρ of the multiple of the identity in (1 − ρ) Σ_p + ρ (tr Σ_p / D~) I."""
    return float(ledoit_wolf_shrinkage(X)) if len(X) > 1 else 1.0


def shrunk_steps(X: FloatArray, rho: float, k: int, rng: np.random.Generator, target: FloatArray) -> FloatArray:
    """(k, D~) draws with the covariance (1 − ρ) Σ_p + ρ Σ_t.

    Deviation from the paper, used in ``default`` mode: proposals may leave the span of few examples. Σ_t is the sample
    covariance of the rows of ``target`` (m, D~), sentences like the examples. Without rows it is (tr Σ_p / D~) I, the
    target of Ledoit and Wolf, in whose directions hardly any sentence lies.
    """
    if len(target) > 1:
        beyond = np.sqrt(rho) * sample_steps(target, k, rng)
    else:
        beyond = rng.standard_normal((k, X.shape[1])) * np.sqrt(rho * float(np.mean(np.var(X, axis=0))))
    return np.asarray(np.sqrt(1.0 - rho) * sample_steps(X, k, rng) + beyond)


def paraphrase_steps(
    X: FloatArray, paraphrases: tuple[FloatArray, FloatArray], each: int, rng: np.random.Generator
) -> FloatArray:
    """(k, D~) for each row X_l the way from a sentence like it to another wording of that sentence.

    Deviation from the paper, used in ``default`` mode. If saying the same otherwise moves neighbouring sentences alike,
    the step keeps what X_l means. ``paraphrases`` are (m, D~) sentences and another wording of each; one of the
    ``each`` nearest to X_l is drawn.
    """
    before, after = paraphrases
    squared = np.sum(before**2, axis=1) - 2.0 * X @ before.T
    nearest = np.argpartition(squared, min(each, len(before)) - 1, axis=1)[:, :each]
    drawn = nearest[np.arange(len(X)), rng.integers(nearest.shape[1], size=len(X))]
    return np.asarray(after[drawn] - before[drawn])


def neighbours(X: FloatArray, sentences: FloatArray, each: int) -> FloatArray:
    """(m, D~) the rows of ``sentences`` among the ``each`` nearest to some row of ``X``."""
    if not len(sentences):
        return sentences
    squared = np.sum(sentences**2, axis=1) - 2.0 * X @ sentences.T
    nearest = np.argsort(squared, axis=1, kind="stable")[:, :each]
    return sentences[np.unique(nearest)]


def inside_box(X: FloatArray) -> BoolArray:
    """(k,) whether each row lies in [-1, 1]^D~."""
    return np.asarray(np.all(np.abs(X) <= 1.0, axis=1))
