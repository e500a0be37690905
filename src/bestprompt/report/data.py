"""What the report shows of the prompts beside the leaderboard, as plain values: pure functions of its rows.

Each figure is one function here or beside (``course``, ``answers``, ``wording``, ``assurance``, ``refining``) and one
drawing function in ``figures.py``, so tests check numbers, not pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bestprompt.run.leaderboard import LeaderboardRow


@dataclass(frozen=True, slots=True)
class SourceRow:
    """What the prompts of one source gave: how many there are, calls to them, the best of them."""

    source: str
    prompts: int
    calls: int
    best: LeaderboardRow
    tied: int


def sources(rows: Sequence[LeaderboardRow]) -> list[SourceRow]:
    """What each source gave, the one with the best prompt first."""
    found: dict[str, list[LeaderboardRow]] = {}
    for row in rows:  # best first
        found.setdefault(row.source, []).append(row)
    return [
        SourceRow(source, len(own), sum(r.evaluations for r in own), own[0], sum(r.tied for r in own))
        for source, own in found.items()
    ]
