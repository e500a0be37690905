"""Synthetic latent surfaces with a known optimum outside the candidate set, and a decoder that needs no network.

A "text" is a point u of a fine lattice in k dimensions, written out; its latent vector is X = tanh(0.08 F s(u)) in
[-1, 1]^3584 with s(u) on a curved k-dimensional manifold of R^128. ``decode`` reads u off any X and snaps it to the
lattice, so nearby vectors decode to the same text, as with a real decoder. The true score of a text is a smooth
function of u plus, in the ``rough`` family, something of the text's own.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from bestprompt.latent.box import LATENT_DIM, frame_matrix
from bestprompt.search import perturb

CODE, LATTICE, TAU = 128, 0.1, 0.08
FAMILIES = ("bump", "ridge", "rough", "items")
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(41)


@dataclass
class Surface:
    """One problem; ``score`` is a function of (family, seed, text, replication) alone.

    Attributes:
        k: Dimensions of the manifold.
        basis: (CODE, k) orthogonal columns; ``curl`` (CODE, k) others, orthogonal to them.
        optimum: (k,) where the smooth part is highest.
        graded: Scores in quarters instead of right or wrong.
        item_sd: Spread of item difficulties (logit scale), family ``items``.
        own: Standard deviation of what a text has of its own (logit scale).
    """

    family: str
    seed: int
    k: int
    basis: np.ndarray
    curl: np.ndarray
    optimum: np.ndarray
    widths: np.ndarray
    graded: bool
    item_sd: float
    own: float
    latent_dim: int = LATENT_DIM
    _own: dict[str, float] = field(default_factory=dict)

    # ------------------------------------------------------------------------------------------ the "autoencoder"
    def _vectors(self, u: np.ndarray) -> np.ndarray:
        code = u @ self.basis.T + 0.5 * np.sin(u) @ self.curl.T
        return np.tanh(TAU * code @ frame_matrix(CODE).T)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(n, D~) latent vectors of texts."""
        return self._vectors(np.array([self.point(text) for text in texts]))

    def decode(self, X: np.ndarray) -> list[str]:
        """The lattice point nearest to what each row of ``X`` (n, D~) stands for."""
        code = np.arctanh(np.clip(X, -0.999999, 0.999999)) @ frame_matrix(CODE) * (CODE / LATENT_DIM / TAU)
        u = code @ self.basis / (self.basis**2).sum(axis=0)
        return [" ".join(str(int(i)) for i in row) for row in np.rint(u / LATTICE)]

    def point(self, text: str) -> np.ndarray:
        """(k,) the u of a text."""
        return LATTICE * np.array([int(i) for i in text.split()], dtype=np.float64)

    # ------------------------------------------------------------------------------------------ the "language model"
    def _logit(self, text: str) -> float:
        smooth = self._smooth(self.point(text)[None])[0]
        if not self.own:
            return float(smooth)
        if text not in self._own:
            key = zlib.crc32(f"{self.family} {self.seed} {text}".encode())
            self._own[text] = self.own * float(np.random.default_rng(key).standard_normal())
        return float(smooth + self._own[text])

    def _smooth(self, u: np.ndarray) -> np.ndarray:
        away = (((u - self.optimum) / self.widths) ** 2).sum(axis=1)
        if self.family == "ridge":
            return 2.2 - 5.0 * away / (1.0 + np.sqrt(away))
        return -1.7 + 4.4 * np.exp(-0.5 * away)

    def truth(self, text: str) -> float:
        """v(text), averaged over items."""
        return float(expit(self._logit(text) + self.item_sd * NODES) @ WEIGHTS / WEIGHTS.sum())

    @property
    def best(self) -> float:
        """Score of the best point of the smooth part."""
        top = self._smooth(self.optimum[None])[0]
        return float(expit(top + self.item_sd * NODES) @ WEIGHTS / WEIGHTS.sum())

    def score(self, text: str, replication: int) -> float:
        """One evaluation."""
        key = zlib.crc32(f"{self.family} {self.seed} {text} {replication}".encode())
        rng = np.random.default_rng([key, replication])
        item = np.random.default_rng([self.seed, replication, 77]).standard_normal() if self.item_sd else 0.0
        chance = expit(self._logit(text) + self.item_sd * item)
        return float(rng.binomial(4, chance) / 4.0) if self.graded else float(rng.random() < chance)


def surface(family: str, seed: int) -> Surface:
    """Problem ``seed`` of a family."""
    rng = np.random.default_rng([zlib.crc32(family.encode()), seed])
    k = int(rng.choice([4, 6, 8]))
    axes = np.linalg.qr(rng.standard_normal((CODE, 2 * k)))[0]
    sizes = np.sqrt(CODE / k) * np.geomspace(1.3, 0.6, k)
    direction = rng.standard_normal(k)
    optimum = rng.uniform(1.2, 2.0) * np.sqrt(k) * direction / np.linalg.norm(direction)
    widths = np.sqrt(k) * rng.uniform(0.9, 1.8, k)
    return Surface(
        family, seed, k, axes[:, :k] * sizes, axes[:, k:] * sizes, optimum, widths,
        graded=family != "items" and bool(rng.random() < 0.5),
        item_sd=1.5 if family == "items" else 0.0,
        own=0.8 if family == "rough" else 0.0,
    )  # fmt: skip


def candidate_set(problem: Surface, n: int, examples: int = 8) -> tuple[list[str], np.ndarray]:
    """Texts and latent vectors (n, D~) of a set grown from ``examples`` random ones by the paper's moves."""
    rng = np.random.default_rng([zlib.crc32(problem.family.encode()), problem.seed, 5])
    texts = list(dict.fromkeys(problem.decode(problem._vectors(rng.standard_normal((examples, problem.k))))))
    X = problem.encode(texts)
    chosen = [0] * len(texts)
    while len(texts) < n:
        parent = int(rng.choice(len(texts), p=perturb.parent_law(np.array(chosen))))
        chosen[parent] += 1
        moved = X[parent] + 0.5 * perturb.sample_steps(X, 1, rng)
        text = problem.decode(moved)[0]
        if text not in texts and perturb.inside_box(moved)[0]:
            texts.append(text)
            X = np.vstack([X, problem.encode([text])])
            chosen.append(0)
    return texts, X
