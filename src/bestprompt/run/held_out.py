"""A last look at pairs that nothing was chosen on: the winner there, beside what the user had before.

Choosing the best of many on some pairs favours a prompt that was lucky on them. The verdict's estimate allows for that
by a model; pairs that were held out need none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import numpy as np

from bestprompt.execution import HELD_OUT
from bestprompt.ledger import Entry
from bestprompt.selection import SelectionResult
from bestprompt.types import FloatArray, Proposal, SoftPromptSet

# Prompts that are tried on held-out pairs: the winner, and the one it is compared with.
_COMPARED = 2


@dataclass(frozen=True, slots=True)
class HeldOutResult:
    """The recommended prompt on held-out pairs, beside the prompt in use or the best example.

    Attributes:
        pairs: Held-out pairs that were answered.
        score: Mean score of the recommended prompt on them.
        error: Its standard error.
        rival: The prompt it is compared with; ``None`` if there is no other.
        rival_score: That one's mean score on the same pairs.
        difference_error: Standard error of the difference.
    """

    pairs: int
    score: float
    error: float
    rival: str | None = None
    rival_score: float | None = None
    difference_error: float | None = None

    @property
    def sentence(self) -> str:
        """The same in words."""
        text = f"On {self.pairs} pairs that were held out it scores {self.score:.3f} ± {self.error:.3f}"
        if self.rival is None or self.rival_score is None:
            return f"{text}."
        difference = f"{self.score - self.rival_score:+.3f} ± {self.difference_error:.3f}"
        rival = shorten(self.rival, 80, placeholder="…")
        return f"{text}, “{rival}” {self.rival_score:.3f}: a difference of {difference}."

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "pairs": self.pairs,
            "score": self.score,
            "standard_error": self.error,
            "rival": self.rival,
            "rival_score": self.rival_score,
            "difference_standard_error": self.difference_error,
        }


def rival_of(choice: SelectionResult, candidates: SoftPromptSet, incumbent: str | None) -> int | None:
    """The candidate the winner is compared with: the one in use, or the best of the other examples."""
    if incumbent is not None:
        number = candidates.prompts.index(incumbent.strip())
        return number if number != choice.candidate else None
    own = [n for n, source in enumerate(candidates.sources) if source == "example" and n != choice.candidate]
    return max(own, key=lambda n: float(choice.estimates[n]), default=None)


def calls_on_held_out(pairs: int) -> int:
    """The most evaluations that the last look at so many held-out pairs takes."""
    return _COMPARED * pairs


def last_proposals(winner: int, rival: int | None, pairs: int) -> list[Proposal]:
    """The evaluations of the last look, pair by pair."""
    who = [winner] if rival is None else [winner, rival]
    return [Proposal(n, HELD_OUT + m) for m in range(pairs) for n in who]


def held_out_result(
    entries: Iterable[Entry], winner: int, rival: int | None, prompts: tuple[str, ...]
) -> HeldOutResult | None:
    """What the record says; ``None`` where nothing was held out, or the last look has not been taken."""
    seen: dict[int, dict[int, float]] = {n: {} for n in (winner, rival) if n is not None}
    for entry in entries:
        if entry.final and entry.replication >= HELD_OUT and entry.candidate in seen and entry.score is not None:
            seen[entry.candidate][entry.replication] = entry.score
    both = sorted(set.intersection(*(set(scores) for scores in seen.values())))
    if not both:
        return None
    ours = np.array([seen[winner][r] for r in both])
    if rival is None:
        return HeldOutResult(len(both), float(ours.mean()), _error(ours))
    theirs = np.array([seen[rival][r] for r in both])
    return HeldOutResult(
        len(both), float(ours.mean()), _error(ours), prompts[rival], float(theirs.mean()), _error(ours - theirs)
    )


def _error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else float("inf")
