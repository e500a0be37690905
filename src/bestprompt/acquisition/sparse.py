"""θ ∈ [0, 1]^N of PR-M-UCB without ever writing N numbers down.

Notation (paper symbol → name):
    θ              parameters, p(z_i; θ) = θ_i / Σθ                  → ``SparseTheta``
    θ^(0)          random start                                      → strata in random order, see below
    η              gradient estimate [eq.gradient]                   → ``ascend``

One step of REINFORCE adds to every coordinate the same number, −ℓ mean(a)/Σθ, and something more to the few that were
sampled; then all are projected onto [0, 1]. Shifts and projections compose: after any number of them an untouched
coordinate that started at u stands at clip(u + shift, low, high), three numbers for all. Touched coordinates are
stored one by one. Both are exact.

The start is the one deviation: instead of N independent uniforms, θ^(0)_i = (π(i) + ½)/N with π a random affine
permutation of the N strata. Each coordinate is uniform over the strata, and Σθ and the inverse of its running sum have
closed forms, so that drawing from p takes O(1) whatever N is.
"""

from __future__ import annotations

from math import ceil, gcd

import numpy as np

from bestprompt.types import FloatArray, IntArray

# Give up drawing untouched coordinates by rejection after this many rounds and list them instead.
REJECTION_ROUNDS = 32


class SparseTheta:
    """θ of one start; changes only in ``ascend``."""

    def __init__(self, n_candidates: int, rng: np.random.Generator) -> None:
        self.n = n_candidates
        multiplier = int(rng.integers(1, max(2, n_candidates)))
        while gcd(multiplier, n_candidates) != 1:
            multiplier = int(rng.integers(1, max(2, n_candidates)))
        self._multiplier, self._inverse = multiplier, pow(multiplier, -1, n_candidates) if n_candidates > 1 else 0
        self._offset = int(rng.integers(n_candidates))
        self._shift, self._low, self._high = 0.0, 0.0, 1.0
        self._slot: dict[int, int] = {}
        self._rows = np.empty(0, dtype=np.int64)
        self._values = np.empty(0)

    # ------------------------------------------------------------------------------------------------ untouched part
    def _rank(self, rows: IntArray) -> IntArray:
        return np.asarray((rows * self._multiplier + self._offset) % self.n)

    def _row(self, ranks: IntArray) -> IntArray:
        return np.asarray((ranks - self._offset) * self._inverse % self.n)

    def _as_untouched(self, ranks: IntArray) -> FloatArray:
        return np.clip((ranks + 0.5) / self.n + self._shift, self._low, self._high)

    def _corners(self) -> tuple[int, int, float, float]:
        """Ranks where the clipped ramp leaves ``low`` and reaches ``high``, and its running sums there."""
        first, last = (
            min(max(ceil(self.n * (level - self._shift) - 0.5), 0), self.n) for level in (self._low, self._high)
        )
        flat = self._low * first
        ramp = (last**2 - first**2) / (2.0 * self.n) + self._shift * (last - first)
        return first, last, flat, flat + ramp

    def _untouched_total(self) -> float:
        """Σ of clip(u + shift, low, high) over all N strata, touched ones included."""
        _, last, _, to_last = self._corners()
        return to_last + self._high * (self.n - last)

    def _draw_rank(self, target: FloatArray) -> IntArray:
        """Rank whose interval of the running sum holds ``target``; the ramp's running sum is a parabola, so a root."""
        first, last, to_first, to_last = self._corners()
        with np.errstate(divide="ignore", invalid="ignore"):
            flat = np.floor(target / self._low)
            top = last + np.floor((target - to_last) / self._high)
        start = self.n * self._shift
        root = np.sqrt(np.maximum((first + start) ** 2 + 2.0 * self.n * (target - to_first), 0.0)) - start
        ramp = np.clip(np.floor(root), first, max(first, last - 1))
        rank = np.where(target < to_first, flat, np.where(target < to_last, ramp, top))
        return np.asarray(np.clip(np.nan_to_num(rank), 0, self.n - 1), dtype=np.int64)

    # -------------------------------------------------------------------------------------------------------- public
    def value(self, rows: IntArray) -> FloatArray:
        """θ at ``rows`` (k,)."""
        values = self._as_untouched(self._rank(np.asarray(rows, dtype=np.int64)))
        for position, row in enumerate(rows.tolist()):
            if (slot := self._slot.get(row)) is not None:
                values[position] = self._values[slot]
        return values

    def total(self) -> float:
        """Σθ."""
        return self._untouched_mass() + float(self._values.sum())

    def probability(self, rows: IntArray) -> FloatArray:
        """p(z; θ) at ``rows`` (k,)."""
        return self.value(rows) / self.total()

    def _untouched_mass(self) -> float:
        if len(self._rows) == self.n:
            return 0.0
        return max(self._untouched_total() - float(self._as_untouched(self._rank(self._rows)).sum()), 0.0)

    def sample(self, k: int, rng: np.random.Generator) -> IntArray:
        """(k,) independent draws from p(z; θ)."""
        touched, untouched = float(self._values.sum()), self._untouched_mass()
        rows = np.empty(k, dtype=np.int64)
        from_touched = rng.random(k) * (touched + untouched) < touched
        if (n_touched := int(from_touched.sum())) > 0:
            running = np.cumsum(self._values)
            found = np.searchsorted(running, rng.random(n_touched) * running[-1], side="right")
            rows[from_touched] = self._rows[np.minimum(found, len(running) - 1)]
        open_places = np.flatnonzero(~from_touched)
        for _ in range(REJECTION_ROUNDS):
            if open_places.size == 0:
                return rows
            drawn = self._row(self._draw_rank(rng.random(open_places.size) * self._untouched_total()))
            fresh = np.array([row not in self._slot for row in drawn.tolist()])
            rows[open_places[fresh]] = drawn[fresh]
            open_places = open_places[~fresh]
        if open_places.size:
            rows[open_places] = self._sample_listed(open_places.size, rng)
        return rows

    def _sample_listed(self, k: int, rng: np.random.Generator) -> IntArray:
        """The same from an explicit list, for when most of the mass belongs to touched strata.

        Then the list is short.
        """
        lowest = self._corners()[0] if self._low == 0.0 else 0
        ranks = np.arange(lowest, self.n, dtype=np.int64)
        rows = self._row(ranks)
        weights = self._as_untouched(ranks)
        weights[np.isin(rows, self._rows)] = 0.0
        running = np.cumsum(weights)
        found = np.searchsorted(running, rng.random(k) * running[-1], side="right")
        return np.asarray(rows[np.minimum(found, len(rows) - 1)])

    def ascend(self, rows: IntArray, advantages: FloatArray, rate: float) -> None:
        """θ ← projection of θ + rate · η, η = mean_i a_i (e_i/θ_i − 1/Σθ) over sampled ``rows`` (I,).

        A step that would leave Σθ = 0, where p is undefined, is not taken.
        """
        gains = rate * advantages / (len(rows) * self.value(rows))
        shift = -rate * float(advantages.mean()) / self.total()
        before = self._shift, self._low, self._high
        self._touch(rows)
        kept = self._values
        values = kept.copy()
        np.add.at(values, [self._slot[row] for row in rows.tolist()], gains)
        self._values = np.clip(values + shift, 0.0, 1.0)
        self._shift += shift
        self._low, self._high = (min(max(level + shift, 0.0), 1.0) for level in (self._low, self._high))
        if self.total() <= 1e-12:
            self._shift, self._low, self._high = before
            self._values = kept

    def _touch(self, rows: IntArray) -> None:
        """Store the present value of coordinates about to move on their own."""
        new = [row for row in dict.fromkeys(rows.tolist()) if row not in self._slot]
        values = self._as_untouched(self._rank(np.array(new, dtype=np.int64)))
        for row in new:
            self._slot[row] = len(self._slot)
        self._rows = np.concatenate([self._rows, np.array(new, dtype=np.int64)])
        self._values = np.concatenate([self._values, values])
