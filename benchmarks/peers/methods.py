"""The methods of the comparison: which environment, which worker, which options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Method:
    """One row of the comparison.

    Attributes:
        label: As tables and figures name it.
        environment: Whose packages it needs; a file in ``requirements/``.
        worker: A script in ``workers/``.
        options: What the worker is told besides the data.
    """

    label: str
    environment: str
    worker: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ours(self) -> bool:
        """Whether it is this package."""
        return self.environment == "bestprompt"


WRITTEN = {"written": 1 / 15}  # the share of the calls that asks for prompts, where a method is handed them to judge


def _ours(label: str, told: Mapping[str, float] | None = None, **settings: Any) -> Method:
    return Method(label, "bestprompt", "bestprompt_worker", {"settings": settings, **(told or {})})


METHODS: Mapping[str, Method] = {
    "uniform": Method("every example, best mean", "plain", "plain_worker", {"method": "uniform"}),
    "uniform-proposals": Method("paraphrases, best mean", "plain", "plain_worker", {"method": "uniform", **WRITTEN}),
    "halving": Method("paraphrases + halving", "plain", "plain_worker", {"method": "halving", **WRITTEN}),
    "ours-examples": _ours("bestprompt, examples", **{"search.source": "examples"}),
    "ours-latent": _ours("bestprompt, latent", **{"search.source": "latent"}),
    "ours-demos": _ours("bestprompt, demonstrations", **{"search.source": "examples", "search.demos": 4}),
    "ours-default": _ours("bestprompt, default"),
    "ours-proposals": _ours("bestprompt, paraphrases", WRITTEN, **{"search.source": "examples"}),
    "ours-ideas": _ours("bestprompt, own ideas", **{"search.source": "examples", "ideas.mode": "on"}),
    "gepa": Method("gepa", "gepa", "gepa_worker"),
    "gepa-screened": Method("gepa from the best example", "gepa", "gepa_worker", {"screened": True}),
    "mipro": Method("MIPROv2", "dspy", "mipro_worker"),
    "mipro-demos": Method("MIPROv2, demonstrations", "dspy", "mipro_worker", {"demos": 4}),
    "mipro-proposals": Method("MIPROv2's search, paraphrases", "dspy", "mipro_worker", WRITTEN),
    "dspy-gepa": Method("GEPA in DSPy", "dspy", "dspy_gepa_worker"),
    "capo": Method("CAPO", "promptolution", "promptolution_worker", {"method": "capo"}),
    "evoprompt": Method("EvoPrompt", "promptolution", "promptolution_worker", {"method": "evoprompt"}),
    "capo-proposals": Method(
        "CAPO, paraphrases", "promptolution", "promptolution_worker", {"method": "capo", **WRITTEN}
    ),
    "evoprompt-proposals": Method(
        "EvoPrompt, paraphrases", "promptolution", "promptolution_worker", {"method": "evoprompt", **WRITTEN}
    ),
}
