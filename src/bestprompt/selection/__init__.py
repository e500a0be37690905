"""Evaluation and selection: the sequential step, the ranking-and-selection finish, and the verdict."""

from bestprompt.selection.api import select
from bestprompt.selection.belief.variance_split import variance_parts, variance_shares
from bestprompt.selection.conclusion.forecast import Forecast, calls_needed, forecast
from bestprompt.selection.conclusion.verdict import SelectionResult, Shortlisted
from bestprompt.selection.core.config import SelectorConfig
from bestprompt.selection.core.state import SelectionState, grown
from bestprompt.selection.selector import Selector
from bestprompt.selection.strategies.stand_in import in_words as chains_in_words

__all__ = [
    "Forecast",
    "SelectionResult",
    "SelectionState",
    "Selector",
    "SelectorConfig",
    "Shortlisted",
    "calls_needed",
    "chains_in_words",
    "forecast",
    "grown",
    "select",
    "variance_parts",
    "variance_shares",
]
