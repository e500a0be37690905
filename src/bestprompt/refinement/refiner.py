"""Refinement in latent space: what prompt outside the set is worth evaluating next (paper, section "Refinement").

Notation (paper symbol → name, shape):
    X_n, 𝒳     latent vectors of the candidates            → ``X``                      (N, D~)
    X̃          vector that maximises EI                    → ``Suggestion.vector``      (D~,)
    μ̂, σ̂       PSK prediction at it                        → ``Suggestion.mean``, ``.std``
    v*         score to beat: the best posterior mean, or (``paper``) the best single observed score

Deviations of the default from the paper: v* (a lucky single score is not a score to beat); ascent stays in a trust
region around evaluated vectors instead of the whole box, because the decoder writes sentences only near the set; EI is
judged at the re-encoded text, so that model and text agree; a text that repeats a known one or that ``accepts`` refuses
gives way to the next best; predictions are corrected by the errors of earlier ones (:mod:`calibration`). To the letter
(``verbatim``) none of these holds: EI climbs anywhere in the box and is judged where it was maximised, and the text
there is taken as it is, unless it is empty or known already (z ↔ X ↔ text stay one-to-one), when the vector with the
next highest EI takes its place. Ã is retrained on a fixed geometric grid of observation counts, from the observations
up to there, and conditioned on all of them: a suggestion is a function of the record alone, whenever it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from bestprompt.choices import Edition, Mode
from bestprompt.kriging.inputs import Observed
from bestprompt.kriging.kernels import squared_distances
from bestprompt.kriging.projection import (
    FittedProjection,
    Principal,
    ProjectionKriging,
    kriging_projection,
    paper_kriging,
)
from bestprompt.refinement.calibration import Correction, Prediction, corrected
from bestprompt.refinement.evidence import first_observations, observed_vectors
from bestprompt.refinement.improvement import expected_improvement, value_per_call
from bestprompt.refinement.maximize import ascend, ascend_in_box
from bestprompt.rng import stream
from bestprompt.selection import SelectionState
from bestprompt.types import FloatArray, IntArray

Accepts = Callable[[str, int], str]

LENGTHS = (0.6, 1.0, 1.5, 2.0)  # of the ascent's displacement, each decoded: longer ones where shorter ones repeat
DRAWS_OF_BOX = 8  # times that ``verbatim`` starts anew where all texts found were known


class TextCoder(Protocol):
    """The two directions of a text autoencoder, all that refinement needs of one."""

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """(n, D~) latent vectors in [-1, 1]."""
        ...

    def decode(self, X: FloatArray) -> list[str]:
        """One text per row of ``X`` (n, D~)."""
        ...


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A prompt outside the set that is worth a look.

    Attributes:
        text: The varied sentence as decoded.
        vector: (D~,) Enc(text) where that decodes to ``text`` again, else the point it was decoded from.
        parent: The evaluated candidate whose neighbourhood it came from.
        mean: Predicted mean score at ``vector`` before any evaluation of it.
        std: Its uncertainty, σ̂(X) and what the prompt may have of its own.
        correction: What the two were corrected by.
        improvement: Expected improvement over the best candidate.
        value_per_call: Most that m calls to it may gain, per call; comparable with ``value_of_next_call``.
    """

    text: str
    vector: FloatArray
    parent: int
    mean: float
    std: float
    improvement: float
    value_per_call: float
    correction: Correction = field(default_factory=Correction)


@dataclass(frozen=True, slots=True)
class RefinerConfig:
    """Settings of the refiner.

    Attributes:
        mode: ``"default"``, or ``"paper"`` for PSK and EI as published.
        seed: Seed of every random choice.
        common: Whether replication r is the same item for every candidate.
        starts: Ascents, S.
        parents: Best candidates they start from.
        radius: Of the trust region, in median distances between nearest neighbours of the set.
        growth: Ã is trained anew each time the observations have grown by this factor.
        tries: Texts judged by ``accepts`` before giving up.
        kriging: The recipe of the fit; that of the mode if left out.
        edition: Of paper mode; in the first the projection's training could stop before it began.
        verbatim: The paper's search to the letter, without trust region, re-encoding or acceptance.
    """

    mode: Mode = "default"
    seed: int = 0
    common: bool = False
    starts: int = 16
    parents: int = 6
    radius: float = 1.5
    growth: float = 1.6
    tries: int = 24
    kriging: ProjectionKriging | None = None
    edition: Edition = "second"
    verbatim: bool = False

    @property
    def recipe(self) -> ProjectionKriging:
        """The recipe of the fit."""
        if self.kriging is not None:
            return self.kriging
        return paper_kriging(self.edition == "first") if self.mode == "paper" else kriging_projection()


class Refiner:
    """Proposes prompts outside the set.

    Args:
        coder: Latent vectors ↔ texts.
        accepts: ``accepts(text, parent)`` is ``"accepted"``, or the reason why the text is refused.
        config: Settings.
    """

    def __init__(self, coder: TextCoder, accepts: Accepts, config: RefinerConfig) -> None:
        self.coder, self.accepts, self.config = coder, accepts, config
        self._trained: tuple[int, FittedProjection] | None = None  # what training at that count gave; no more

    def suggest(
        self,
        X: FloatArray,
        state: SelectionState,
        known: Sequence[str],
        remaining: int,
        past: Sequence[Prediction] = (),
        beat: float = -np.inf,
    ) -> Suggestion | None:
        """The most promising new prompt, or ``None`` when nothing acceptable was found.

        Args:
            X: (N, D~) latent vectors of all candidates, refined ones included, in the order of ``state``.
            state: Everything observed so far.
            known: Texts (varied sentences) that must not come again.
            remaining: Evaluations left.
            past: What was predicted of the candidates that were suggested before; not used to the letter.
            beat: A score to beat that the vectors know nothing of.
        """
        fitted, data = self.fitted(X, state)
        best = max(self._score_to_beat(fitted, data, state), beat)
        rng = stream(self.config.seed, "refine", len(state), state.n_candidates)
        if self.config.verbatim:
            return self._anywhere(fitted, data, X, best, known, rng)
        points, parents = self._climbed(fitted, data, X, best, rng)
        texts, vectors, parents = self._read(points, parents, known)
        if not texts:
            return None
        mean, std = fitted.predict(vectors)
        correction = corrected(past, data, fitted.unit) if self.config.mode == "default" else Correction()
        mean, total = correction(mean, np.sqrt(std**2 + fitted.nugget))
        gains = expected_improvement(mean, total, best)
        for i in np.argsort(-gains, kind="stable")[: self.config.tries]:
            parent = int(parents[i])
            if self.accepts(texts[i], parent) != "accepted":
                continue
            noise = self._noise_at(fitted, X, state, vectors[i])
            value = value_per_call(float(mean[i]), float(total[i]), noise, best, remaining)
            figures = float(mean[i]), float(total[i]), float(gains[i]), value
            return Suggestion(texts[i], vectors[i], parent, *figures, correction)
        return None

    def fitted(self, X: FloatArray, state: SelectionState) -> tuple[FittedProjection, Observed]:
        """PSK conditioned on every observation of ``state``, and those observations."""
        trained = self._trained_at(training_count(len(state), self.config.growth), X, state)
        coordinates = trained.principal.coordinates(X)
        data, _ = observed_vectors(X, coordinates, state, self.config.common)
        return trained.conditioned(data), data

    # ------------------------------------------------------------------------------------------------------ internals
    def _anywhere(
        self,
        fitted: FittedProjection,
        data: Observed,
        X: FloatArray,
        best: float,
        known: Sequence[str],
        rng: np.random.Generator,
    ) -> Suggestion | None:
        """The vector of the box with the highest EI whose text is new; half the ascents start at evaluated vectors."""
        order = np.argsort(-fitted.evaluated(data), kind="stable")
        taken = {"", *known}
        for _ in range(DRAWS_OF_BOX):
            near = X[data.rows[order[np.arange(self.config.starts) % order.size]]]
            starts = np.concatenate([near, rng.uniform(-1.0, 1.0, near.shape)])
            starts[: len(near)] += 0.3 * fitted.principal.unit * rng.standard_normal(near.shape) / np.sqrt(X.shape[1])
            points = np.concatenate([ascend_in_box(fitted, starts, best), np.clip(starts, -1.0, 1.0)])
            mean, std = fitted.predict(points)
            gains = expected_improvement(mean, std, best)
            texts = self.coder.decode(points)
            for i in np.argsort(-gains, kind="stable").tolist():
                if texts[i] not in taken:
                    parent = int(((X - points[i]) ** 2).sum(axis=1).argmin())
                    gain = float(gains[i])
                    return Suggestion(texts[i], points[i], parent, float(mean[i]), float(std[i]), gain, gain)
        return None

    def _trained_at(self, count: int, X: FloatArray, state: SelectionState) -> FittedProjection:
        if self._trained is None or self._trained[0] != count:
            # Candidates that came later are unknown to the record up to here, so the fit must not see them either.
            n = int(state.candidates[:count].max()) + 1
            recipe = self.config.recipe
            principal = Principal.of(X[:n], recipe.inputs)
            past = first_observations(state, count, n)
            data, _ = observed_vectors(X[:n], principal.rows, past, self.config.common)
            rng = stream(self.config.seed, "project", count)
            self._trained = (count, recipe.fit(principal, data, rng))
        return self._trained[1]

    def _score_to_beat(self, fitted: FittedProjection, data: Observed, state: SelectionState) -> float:
        if self.config.mode == "paper":
            return float(state.scores.max())
        return float(fitted.evaluated(data).max())

    def _noise_at(self, fitted: FittedProjection, X: FloatArray, state: SelectionState, vector: FloatArray) -> float:
        coordinates = fitted.principal.coordinates(np.vstack([X, vector]))
        return float(observed_vectors(X, coordinates, state, self.config.common)[1][-1])

    def _climbed(
        self, fitted: FittedProjection, data: Observed, X: FloatArray, best: float, rng: np.random.Generator
    ) -> tuple[FloatArray, IntArray]:
        """Latent vectors (S · len(LENGTHS), D~) inside the box along each ascent, and the candidates they left."""
        order = np.argsort(-fitted.evaluated(data), kind="stable")[: self.config.parents]
        parents = data.rows[order[np.arange(self.config.starts) % order.size]]
        principal = fitted.principal
        anchors = principal.coordinates(X[parents])
        radius = self.config.radius * neighbour_distance(principal.rows)
        spread = principal.rows.std(axis=0)
        jitter = rng.standard_normal(anchors.shape) * spread
        jitter *= 0.3 * radius / max(float(np.sqrt((spread**2).sum())), 1e-12)
        top = ascend(fitted, anchors + jitter, anchors, radius, best)
        moved = principal.steps(top - anchors)
        points = np.concatenate([X[parents] + length * moved for length in LENGTHS])
        return np.clip(points, -1.0, 1.0), np.tile(parents, len(LENGTHS))

    def _read(
        self, points: FloatArray, parents: IntArray, known: Sequence[str]
    ) -> tuple[list[str], FloatArray, IntArray]:
        """Distinct new texts the points decode to, their vectors, and their parents."""
        taken, kept = set(known), []
        decoded = self.coder.decode(points)
        for i, text in enumerate(decoded):
            if text and text not in taken:
                taken.add(text)
                kept.append(i)
        texts = [decoded[i] for i in kept]
        if not texts:
            return [], points[:0], parents[:0]
        again = self.coder.encode(texts)
        same = np.array([a == b for a, b in zip(self.coder.decode(again), texts, strict=True)])
        return texts, np.where(same[:, None], again, points[kept]), parents[kept]


def training_count(observations: int, growth: float) -> int:
    """The largest point of the grid 8, ⌈8 growth⌉, … that is at most ``observations`` (all of them below 8)."""
    if observations < 8:
        return observations
    return int(np.ceil(8.0 * growth ** np.floor(np.log(observations / 8.0) / np.log(growth) + 1e-9)))


def neighbour_distance(rows: FloatArray) -> float:
    """Median distance of a row of ``rows`` (N, d) to the nearest other; 1 where there is none."""
    squared = squared_distances(rows, rows)
    np.fill_diagonal(squared, np.inf)
    nearest = squared.min(axis=1)
    positive = nearest[np.isfinite(nearest) & (nearest > 1e-18)]
    return float(np.sqrt(np.median(positive))) if positive.size else 1.0
