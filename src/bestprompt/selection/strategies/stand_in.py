"""A run outlives its Markov chains: variational inference stands in for chains that were refused.

A run is a replay of its record, so a fit that raised would raise whenever the run is resumed or shown, and answers that
were paid for could not be used. The same network is fitted by variational inference instead, until the
evaluations have grown by half; then chains are tried again. The result says how often that happened and what the
refused chains looked like.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bestprompt.errors import SurrogateError
from bestprompt.surrogates.sampling import GROWTH
from bestprompt.types import Evidence, FittedSurrogate, FloatArray, Replaceable, Surrogate


@dataclass(frozen=True, slots=True)
class Refusal:
    """Chains that were refused.

    Attributes:
        evaluations: Evaluations when they were.
        diagnostics: Of the chains.
        times: Refusals so far.
        standing: Whether variational inference stands in still.
    """

    evaluations: int
    diagnostics: Mapping[str, float]
    times: int
    standing: bool = True


def fit(
    surrogate: Surrogate,
    Z: FloatArray,
    evidence: Evidence,
    rng: np.random.Generator,
    previous: FittedSurrogate | None,
    refusal: Refusal | None,
) -> tuple[FittedSurrogate, Refusal | None]:
    """A fit that continues ``previous``, where given, by chains unless they are refused; and the last refusal.

    Raises:
        SurrogateError: The fit failed, and not because of Markov chains.
    """
    other = surrogate.stand_in() if isinstance(surrogate, Replaceable) else None
    evaluations = int(evidence.counts.sum())
    waits = refusal is not None and refusal.standing and evaluations < GROWTH * refusal.evaluations
    if other is not None and waits:
        return other.fit(Z, evidence, rng, previous), refusal
    try:
        fitted = surrogate.fit(Z, evidence, rng, previous)
    except SurrogateError as error:
        if other is None:
            raise
        refusal = Refusal(evaluations, error.diagnostics, 1 + (0 if refusal is None else refusal.times))
        return other.fit(Z, evidence, rng, previous), refusal
    return fitted, None if refusal is None else replace(refusal, standing=False)


def diagnostics(fitted: FittedSurrogate, refusal: Refusal | None) -> dict[str, float]:
    """Of the fit or, while another stands in for them, of the refused chains; with the refusals so far, if any."""
    if refusal is None:
        return dict(fitted.diagnostics)
    shown = refusal.diagnostics if refusal.standing else fitted.diagnostics
    return {**shown, "refusals": float(refusal.times), "standing_in": float(refusal.standing)}


def chains_in_words(found: Mapping[str, float]) -> str | None:
    """How the Markov chains of the last fit did, given its diagnostics; ``None`` where there were none."""
    if "acceptance" not in found:
        return None
    words = (
        f"Markov chains of the surrogate: {found['acceptance']:.0%} accepted, {found['divergences']:.0f} divergences"
    )
    if "rhat" in found:
        words += f", R-hat {found['rhat']:.2f}, effective sample size {found['ess']:.0f}"
    if "refusals" not in found:
        return f"{words}."
    stood = "stands" if found["standing_in"] else "stood"
    return (
        f"{words}. Chains that had not mixed were refused {found['refusals']:.0f}×; variational inference {stood} in."
    )
