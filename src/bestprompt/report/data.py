"""What the report shows of the prompts beside the leaderboard, as plain values: pure functions of its rows.

Each figure is one function here or beside (``course``, ``answers``, ``wording``, ``assurance``, ``refining``) and one
drawing function in ``figures.py``, so tests check numbers, not pixels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bestprompt.ledger import Entry
from bestprompt.report.course import Estimates
from bestprompt.run.leaderboard import LeaderboardRow, answer_costs
from bestprompt.types import SoftPromptSet


def provisional(candidates: SoftPromptSet, known: Estimates, entries: Sequence[Entry] = ()) -> list[LeaderboardRow]:
    """The leaderboard while a run goes on: by what each prompt's own answers say, those without any last."""
    order = sorted(range(len(candidates.prompts)), key=lambda n: (known.counts[n] == 0, -known.mean[n], n))
    costs, best = answer_costs(entries), order[0]
    rows = []
    for rank, n in enumerate(order, start=1):
        mean, half = float(known.mean[n]), 1.96 * float(known.deviation[n])
        took = costs.get(n)
        # Within two standard deviations of the leader: nobody can tell them apart yet.
        near = known.mean[best] - mean <= 2.0 * float(np.hypot(known.deviation[n], known.deviation[best]))
        rows.append(
            LeaderboardRow(
                rank=rank,
                candidate=n,
                prompt=candidates.prompts[n],
                source=candidates.sources[n],
                estimate=mean,
                low=max(0.0, mean - half),
                high=min(1.0, mean + half),
                observed=None,
                evaluations=int(known.counts[n]),
                tied=bool(known.counts[n]) and bool(near),
                model=candidates.models[n] if candidates.models else None,
                cost=took.dollars if took else None,
                latency=took.seconds if took else None,
            )
        )
    return rows
