"""Where prompts came from: in words, and what each source gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bestprompt.types import DEMONSTRATED

if TYPE_CHECKING:  # whoever shows a record needs the words alone, and not the numerical engines
    from bestprompt.run.leaderboard import LeaderboardRow

_IN_WORDS: Mapping[str, str] = {
    "example": "yours",
    "file": "from your file",
    "latent": "varied from yours",
    "rewrite": "written by the model",
    "proposed": "from your own source",
    "refined": "found by refinement",
    "reflected": "written after looking at mistakes",
    "restyled": "the leader, rewritten",
    "crossed": "made of the two best",
}


@dataclass(frozen=True, slots=True)
class SourceRow:
    """What the prompts of one source gave: how many there are, calls to them, the best of them."""

    source: str
    prompts: int
    calls: int
    best: LeaderboardRow
    tied: int

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "source": self.source,
            "prompts": self.prompts,
            "calls": self.calls,
            "best_candidate": self.best.candidate,
            "best_score": self.best.estimate,
            "tied": self.tied,
        }


def source_in_words(source: str) -> str:
    """E.g. "yours"; "from ideas.txt" and "from GEPA (my-run)" where a file or a tool is named."""
    if source.endswith(DEMONSTRATED):
        return f"{source_in_words(source.removesuffix(DEMONSTRATED))}, with demonstrations"
    tool, named, file = source.partition(": ")
    if not named:
        return _IN_WORDS.get(source, source)
    return f"from {file}" if tool == "file" else f"from {tool} ({file})"


def sources(rows: Sequence[LeaderboardRow]) -> list[SourceRow]:
    """What each source gave, the one with the best prompt first."""
    found: dict[str, list[LeaderboardRow]] = {}
    for row in rows:  # best first
        found.setdefault(row.source, []).append(row)
    return [
        SourceRow(source, len(own), sum(r.evaluations for r in own), own[0], sum(r.tied for r in own))
        for source, own in found.items()
    ]


def winning_source(rows: Sequence[LeaderboardRow]) -> str | None:
    """Which source gave the winner, in a sentence; ``None`` where all prompts are from one."""
    count = len({row.source for row in rows})
    return f"Of {count} sources, the winning prompt is {source_in_words(rows[0].source)}." if count > 1 else None
