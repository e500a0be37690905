"""What a budget can settle, before anything is spent.

Notation (symbol → name):
    T, N, M  evaluations, candidates and items        → ``budget``, ``n_candidates``, ``items``
    σ        standard deviation of one score          → ``noise``
    ι        share of σ² that is the item's           → ``item_share`` (common pairs remove it from differences)
    r        evaluations each finalist ends up with   → ``Forecast.replications``
    δ        smallest difference told apart           → ``Forecast.difference``

Elimination spends about as much on each halving of the field, T / log₂ N, so two finalists share the last such part,
and earlier parts add as much again: r ≈ T / log₂ N, at most T/2. Two means of r scores each are put in the right order
with probability p when their difference is δ = z_p σ sqrt(2 (1 − ι) / r). Where no question is asked twice there are
M N of them, r is at most M, and no budget shows less than M items can (:mod:`reach`). Before a run ι is what was found
on score tables of real models (``benchmarks/tables``): a tenth.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2, sqrt

from scipy.stats import norm

from bestprompt.choices import Repeats
from bestprompt.errors import ConfigError
from bestprompt.selection.conclusion.reach import in_points, reach

TYPICAL_NOISE = 0.45
TYPICAL_ITEM_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a budget can settle.

    Attributes:
        budget: Evaluations.
        useful: How many of them there is something to ask for.
        replications: Evaluations each of the last two candidates will have had.
        difference: Smallest difference in mean score put in the right order with ``probability``.
        probability: The probability asked for.
        sentence: The same in words.
    """

    budget: int
    useful: int
    replications: float
    difference: float
    probability: float
    sentence: str


def forecast(
    budget: int,
    n_candidates: int,
    *,
    items: int | None = None,
    repeats: Repeats = "same-item",
    noise: float = TYPICAL_NOISE,
    item_share: float = TYPICAL_ITEM_SHARE,
    probability: float = 0.9,
) -> Forecast:
    """The difference ``budget`` evaluations of ``n_candidates`` candidates can tell apart.

    Args:
        budget: Evaluations, T.
        n_candidates: Candidates, N.
        items: Pairs, M, where their number is known.
        repeats: ``"never"`` where no question is asked twice.
        noise: Standard deviation of one score; the default suits right-or-wrong scores.
        item_share: Share of the noise variance that common pairs remove (see ``SelectionResult.variance_split``).
        probability: How sure the order should be.
    """
    if budget < 1 or n_candidates < 1 or not 0.5 < probability < 1.0 or not 0.0 <= item_share < 1.0 or noise < 0.0:
        raise ConfigError(
            "a forecast needs a positive budget and number of candidates, a probability between 0.5 and 1, an item "
            "share in [0, 1) and a noise that is not negative"
        )
    once = items is not None and repeats == "never"
    questions = items * n_candidates if items is not None and once else budget
    useful = min(budget, questions)
    replications = max(min(useful / max(log2(n_candidates), 1.0), useful / 2.0), 1.0)
    replications = min(replications, items) if items is not None and once else replications
    spread = noise * sqrt(2.0 * (1.0 - item_share))
    difference = float(norm.ppf(probability)) * spread / sqrt(replications)
    sentence = (
        f"With {useful} calls you can separate prompts that differ by {in_points(difference)} "
        f"({probability:.0%} sure, {n_candidates} candidates)."
    )
    if useful < budget:
        sentence += (
            f" There are no more than {questions} questions, {n_candidates} prompts on {items} pairs, each asked once: "
            f"{budget - useful} calls will be left."
        )
    if items is not None and items > 1:
        sentence += f" {reach(items, spread).sentence}"
    return Forecast(budget, useful, replications, difference, probability, sentence)


def calls_needed(
    difference: float,
    n_candidates: int,
    *,
    noise: float = TYPICAL_NOISE,
    item_share: float = TYPICAL_ITEM_SHARE,
    probability: float = 0.9,
) -> int:
    """Evaluations needed to tell a ``difference`` in mean score apart: the inverse of ``forecast``."""
    if difference <= 0.0:
        raise ConfigError("only a positive difference can be told apart")
    # Raises on the other arguments as forecast does; with a single call per finalist the difference is largest.
    forecast(1, n_candidates, noise=noise, item_share=item_share, probability=probability)
    replications = 2.0 * (1.0 - item_share) * (float(norm.ppf(probability)) * noise / difference) ** 2
    return max(ceil(max(replications, 1.0) * max(log2(n_candidates), 2.0)), 1)
