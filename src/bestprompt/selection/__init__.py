"""Evaluation and selection: the sequential step, the ranking-and-selection finish, and the verdict.

Names are loaded when first used: what only counts calls needs no numerical engine.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bestprompt.selection.api import select
    from bestprompt.selection.belief.variance_split import variance_parts, variance_shares
    from bestprompt.selection.conclusion.forecast import Forecast, calls_needed, forecast
    from bestprompt.selection.conclusion.verdict import SelectionResult, Shortlisted
    from bestprompt.selection.core.config import SelectorConfig
    from bestprompt.selection.core.state import SelectionState, grown
    from bestprompt.selection.selector import Selector
    from bestprompt.selection.strategies.stand_in import chains_in_words

_HOMES = {
    "Forecast": "conclusion.forecast",
    "SelectionResult": "conclusion.verdict",
    "SelectionState": "core.state",
    "Selector": "selector",
    "SelectorConfig": "core.config",
    "Shortlisted": "conclusion.verdict",
    "calls_needed": "conclusion.forecast",
    "chains_in_words": "strategies.stand_in",
    "forecast": "conclusion.forecast",
    "grown": "core.state",
    "select": "api",
    "variance_parts": "belief.variance_split",
    "variance_shares": "belief.variance_split",
}

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


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"bestprompt.selection.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'bestprompt.selection' has no attribute {name!r}")
