"""Refinement: prompts outside the candidate set, found by projection stochastic kriging and expected improvement."""

from bestprompt.refinement.calibration import Correction, Prediction
from bestprompt.refinement.improvement import cumulative_uncertainty
from bestprompt.refinement.refiner import Refiner, RefinerConfig, Suggestion, TextCoder
from bestprompt.refinement.split import BudgetSplit, Turn
from bestprompt.refinement.stage import RefinementStage, TurnDecision, completing, confirming

__all__ = [
    "BudgetSplit",
    "Correction",
    "Prediction",
    "RefinementStage",
    "Refiner",
    "RefinerConfig",
    "Suggestion",
    "TextCoder",
    "Turn",
    "TurnDecision",
    "completing",
    "confirming",
    "cumulative_uncertainty",
]
