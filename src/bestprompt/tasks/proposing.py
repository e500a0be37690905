"""What a task leaves open: the score and the length of an answer, proposed from its pairs and said in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bestprompt.scoring import ScorerSpec, propose_length, propose_score
from bestprompt.scoring.proposal import DEFAULT_LENGTH, labels_of
from bestprompt.tasks.spec import TaskSpec
from bestprompt.types import Pair, Scorer


def resolved(spec: TaskSpec) -> tuple[ScorerSpec, int, dict[str, Any]]:
    """(score, ``max_tokens``, what of the two was proposed) of a task."""
    proposed: dict[str, Any] = {}
    score = spec.scorer
    if score == "auto":
        score = proposed["scorer"] = dict(propose_score(spec.pairs).spec)
    elif score == "label" or (isinstance(score, Mapping) and score.get("kind") == "label" and "options" not in score):
        score = {"kind": "label", "options": list(labels_of(spec.pairs))}
    length = spec.max_tokens
    if length is None:
        length = proposed["max_tokens"] = propose_length(spec.pairs)
    return score, length, proposed


def former_proposal(pairs: Sequence[Pair]) -> dict[str, Any]:
    """What tasks left open before anything was proposed."""
    return {
        "scorer": "choice" if all(pair.meta.get("options") for pair in pairs) else "exact",
        "max_tokens": DEFAULT_LENGTH,
    }


def described_score(scorer: Scorer, proposed: Mapping[str, Any] | None, pairs: Sequence[Pair]) -> str:
    """How answers are scored, and whether that was chosen or proposed."""
    kind = str(getattr(scorer, "kind", "your own function"))
    if proposed is None:
        return f"{kind}, as set"
    return f"{kind}, proposed from {len(pairs)} pairs: {propose_score(pairs).sentence}"
