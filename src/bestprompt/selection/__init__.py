"""Evaluation and selection: the sequential step, the ranking-and-selection finish, and the verdict."""

from bestprompt.selection.api import select
from bestprompt.selection.config import SelectorConfig
from bestprompt.selection.forecast import Forecast, calls_needed, forecast
from bestprompt.selection.selector import Selector
from bestprompt.selection.stand_in import in_words as chains_in_words
from bestprompt.selection.state import SelectionState, grown
from bestprompt.selection.variance_split import variance_parts, variance_shares
from bestprompt.selection.verdict import Contender, Recommendation

__all__ = [
    "Contender",
    "Forecast",
    "Recommendation",
    "SelectionState",
    "Selector",
    "SelectorConfig",
    "calls_needed",
    "chains_in_words",
    "forecast",
    "grown",
    "select",
    "variance_parts",
    "variance_shares",
]
