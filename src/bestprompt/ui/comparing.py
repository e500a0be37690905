"""Two runs side by side: how they were made, what each found, and how their winners do on shared pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bestprompt.ledger import Entry, Ledger
from bestprompt.report.assurance import half_width
from bestprompt.run.leaderboard import LeaderboardRow
from bestprompt.ui.runs import Runs


@dataclass(frozen=True, slots=True)
class SharedPrompt:
    """A prompt that both runs tried."""

    prompt: str
    first: LeaderboardRow
    second: LeaderboardRow


@dataclass(frozen=True, slots=True)
class Compared:
    """Two runs side by side.

    Attributes:
        settings: Dotted name and both values of each setting that differs.
        shared: Prompts that both tried, the best of the first run first.
        pairs: Pairs that both winners met.
        difference: Mean score of the second's winner less that of the first's, on them.
        half: Half the width of its 95 % interval.
    """

    settings: tuple[tuple[str, Any, Any], ...]
    shared: tuple[SharedPrompt, ...]
    pairs: int
    difference: float
    half: float


def compare(runs: Runs, first: str, second: str) -> tuple[dict[str, Any], dict[str, Any], Compared]:
    """What is to be seen of two runs, and of both together."""
    a, b = runs.ended(first), runs.ended(second)
    by_text = {row.prompt: row for row in b["rows"]}
    shared = tuple(SharedPrompt(r.prompt, r, by_text[r.prompt]) for r in a["rows"] if r.prompt in by_text)
    ours, theirs = (_winner_scores(runs, name, shown["rows"]) for name, shown in ((first, a), (second, b)))
    d = np.array([theirs[text] - ours[text] for text in sorted(ours.keys() & theirs.keys())])
    settings = tuple(_differing(flat(a["facts"]["settings"]), flat(b["facts"]["settings"])))
    mean = float(d.mean()) if d.size else 0.0
    return a, b, Compared(settings, shared, int(d.size), mean, half_width(d))


def flat(tables: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Nested settings by dotted name."""
    found: dict[str, Any] = {}
    for key, value in tables.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{before}{key}.")
        else:
            found[f"{before}{key}"] = value
    return found


def _differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    names = dict.fromkeys([*first, *second])
    return [(name, first.get(name), second.get(name)) for name in names if first.get(name) != second.get(name)]


def _winner_scores(runs: Runs, name: str, rows: Sequence[LeaderboardRow]) -> dict[str, float]:
    """Input of a pair → mean score of the run's winner on it."""
    with Ledger.read(runs.path(name)) as ledger:
        pairs, entries = ledger.pairs(), list(ledger.entries())
    scores: dict[str, list[float]] = {}
    for entry in entries:
        if _counts(entry, rows[0].candidate) and entry.pair in pairs and entry.score is not None:
            scores.setdefault(pairs[entry.pair].input, []).append(entry.score)
    return {text: float(np.mean(own)) for text, own in scores.items()}


def _counts(entry: Entry, candidate: int) -> bool:
    return entry.candidate == candidate and entry.final
