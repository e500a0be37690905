"""bestprompt: the best prompt for a language model with the fewest calls, and how sure that is.

>>> import bestprompt as bp
>>> task = bp.Task.load("first-letter")
>>> lm = bp.lm.embedded()
>>> rec = bp.optimize(task, lm, budget=300, seed=0)
>>> rec.prompt, rec.score, rec.interval, rec.probability_best
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from bestprompt import lm
    from bestprompt.latent import Autoencoder
    from bestprompt.replay import ReplayTask
    from bestprompt.run import CheckResult, Recommendation, check, optimize
    from bestprompt.run.calls import calls
    from bestprompt.search import build_candidates
    from bestprompt.selection import select
    from bestprompt.tasks import Task
    from bestprompt.types import Pair

# Names are loaded when first used: importing the package must not load a numerical engine.
_HOMES = {
    "Autoencoder": "bestprompt.latent",
    "CheckResult": "bestprompt.run",
    "Pair": "bestprompt.types",
    "Recommendation": "bestprompt.run",
    "ReplayTask": "bestprompt.replay",
    "Task": "bestprompt.tasks",
    "build_candidates": "bestprompt.search",
    "calls": "bestprompt.run.calls",
    "check": "bestprompt.run",
    "optimize": "bestprompt.run",
    "select": "bestprompt.selection",
}

__all__ = [
    "Autoencoder",
    "CheckResult",
    "Pair",
    "Recommendation",
    "ReplayTask",
    "Task",
    "build_candidates",
    "calls",
    "check",
    "lm",
    "optimize",
    "select",
]


def __getattr__(name: str) -> Any:
    if name == "lm":
        return importlib.import_module("bestprompt.lm")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'bestprompt' has no attribute {name!r}")
