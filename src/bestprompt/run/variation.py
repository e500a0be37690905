"""What makes the scores of a run differ: the prompt, the item, how the two suit each other, the model, the judge.

A fold over the ledger into the arrays of :mod:`bestprompt.selection.belief.variance_split`. The record shows what
varies: a model asked at temperature 0 is taken to have no randomness of its own unless it answered the same request in
two ways, and a score is a judge's where every answer took a further call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from bestprompt.errors import TaskError
from bestprompt.ledger import Entry
from bestprompt.selection import variance_parts, variance_shares

# Fewer evaluations say next to nothing about variances.
LEAST = 30


def variation(entries: Iterable[Entry]) -> dict[str, float] | None:
    """Shares of the variance of single scores by source, those that cannot be told apart joined by `` + ``.

    ``None`` where the evaluations are too few, do not compare prompts on the same items, or all scored the same.
    """
    # In an order that does not depend on threads, so that sums are the same to the last digit.
    seen = sorted((e for e in entries if e.final), key=lambda e: (e.candidate, e.replication))
    scores = np.array([e.score for e in seen], dtype=np.float64)
    if len(seen) < LEAST or np.ptp(scores) == 0.0:
        return None
    try:
        parts = variance_parts(
            np.array([e.candidate for e in seen], dtype=np.int64),
            np.array([e.pair for e in seen], dtype=np.int64),
            np.array([e.replication for e in seen], dtype=np.int64),
            scores,
            random_model=_random_model(seen),
            random_judge=all(e.usage.calls > 1 for e in seen if e.status == "ok"),
        )
    except TaskError:
        return None
    return variance_shares(parts)


_PLAIN = {
    "prompt": "the prompt",
    "item": "easy and hard inputs",
    "interaction": "prompts that suit some inputs and not others",
    "model": "the model's own chance",
    "judge": "the judge's mood",
}


def in_words(shares: Mapping[str, float]) -> str:
    """The shares in a sentence, largest first.

    An estimate of nothing at all is no proof that there is nothing: few calls to each prompt show little.
    """
    ordered = sorted(shares.items(), key=lambda share: -share[1])
    seen = ", ".join(f"{100.0 * share:.0f} % {plainly(name)}" for name, share in ordered if share >= 0.005)
    unseen = ", ".join(plainly(name) for name, share in ordered if share < 0.005)
    return f"Why single scores differ: {seen}{f'; too little to be seen here: {unseen}' if unseen else ''}."


def plainly(name: str) -> str:
    """A source, or several that cannot be told apart, in plain words."""
    return " or ".join(_PLAIN.get(each, each) for each in name.split(" + "))


def _random_model(seen: Iterable[Entry]) -> bool:
    outputs: dict[tuple[int, int], str | None] = {}
    for e in seen:
        if e.request.get("temperature", 0.0) > 0.0 or outputs.setdefault((e.candidate, e.pair), e.output) != e.output:
            return True
    return False
