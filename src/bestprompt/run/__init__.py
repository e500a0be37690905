"""One run, readable top to bottom: settings → parts → search → loop → conclusion (``walk.py`` has the five lines).

Names are loaded when first used: the command line reads settings before it needs a numerical engine.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bestprompt.run.api import optimize
    from bestprompt.run.checking import CheckResult, check
    from bestprompt.run.live import Run
    from bestprompt.run.observer import Observer, Silent
    from bestprompt.run.record import as_begun, budgets, extend, open_ledger, refuse_less, run_facts
    from bestprompt.run.replay import standing
    from bestprompt.run.result import Recommendation
    from bestprompt.run.settings import Settings, load_settings, recorded_settings
    from bestprompt.run.wording import WordingUncertainty, wording_uncertainty

_HOMES = {
    "CheckResult": "checking",
    "Observer": "observer",
    "Recommendation": "result",
    "Run": "live",
    "Settings": "settings",
    "Silent": "observer",
    "WordingUncertainty": "wording",
    "as_begun": "record",
    "budgets": "record",
    "check": "checking",
    "extend": "record",
    "load_settings": "settings",
    "open_ledger": "record",
    "optimize": "api",
    "recorded_settings": "settings",
    "refuse_less": "record",
    "run_facts": "record",
    "standing": "replay",
    "wording_uncertainty": "wording",
}

__all__ = [
    "CheckResult",
    "Observer",
    "Recommendation",
    "Run",
    "Settings",
    "Silent",
    "WordingUncertainty",
    "as_begun",
    "budgets",
    "check",
    "extend",
    "load_settings",
    "open_ledger",
    "optimize",
    "recorded_settings",
    "refuse_less",
    "run_facts",
    "standing",
    "wording_uncertainty",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"bestprompt.run.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'bestprompt.run' has no attribute {name!r}")
