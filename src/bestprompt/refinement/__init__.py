"""Refinement: prompts outside the candidate set, found by projection stochastic kriging and expected improvement."""

from bestprompt.refinement.improvement import cumulative_uncertainty
from bestprompt.refinement.refiner import Decoder, Refiner, RefinerConfig, Suggestion
from bestprompt.refinement.split import Split, Turn
from bestprompt.refinement.stage import Assessment, Stage, confirming

__all__ = [
    "Assessment",
    "Decoder",
    "Refiner",
    "RefinerConfig",
    "Split",
    "Stage",
    "Suggestion",
    "Turn",
    "confirming",
    "cumulative_uncertainty",
]
