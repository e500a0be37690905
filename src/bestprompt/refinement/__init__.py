"""Refinement: prompts outside the candidate set, found by projection stochastic kriging and expected improvement."""

from bestprompt.refinement.improvement import cumulative_uncertainty
from bestprompt.refinement.refiner import Refiner, RefinerConfig, Suggestion, TextCoder
from bestprompt.refinement.split import Split, Turn
from bestprompt.refinement.stage import Stage, TurnDecision, confirming

__all__ = [
    "Refiner",
    "RefinerConfig",
    "Split",
    "Stage",
    "Suggestion",
    "TextCoder",
    "Turn",
    "TurnDecision",
    "confirming",
    "cumulative_uncertainty",
]
