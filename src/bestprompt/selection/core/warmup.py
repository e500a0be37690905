"""Which candidates are looked at before there is anything to learn from.

``examples`` takes the user's own prompts; ``random`` the paper's random share of the candidates; ``space-filling``
starts at the candidate nearest the centre and adds, each time, the one farthest from those taken. ``auto`` takes the
examples where there are any, and in default mode adds to them, so that a few candidates are far apart.
"""

from __future__ import annotations

import numpy as np

from bestprompt.rng import stream
from bestprompt.selection.core.config import SelectorConfig
from bestprompt.types import FloatArray, IntArray


def spread_out(Z: FloatArray, count: int, first: tuple[int, ...] = ()) -> IntArray:
    """``count`` rows of ``Z`` (N, D), far from one another, after the rows ``first``."""
    count = min(count, Z.shape[0])
    chosen = list(dict.fromkeys(first))[:count]
    if not chosen and count:
        chosen = [int(np.argmin(((Z - Z.mean(axis=0)) ** 2).sum(axis=1)))]
    if len(chosen) == count:
        return np.array(chosen, dtype=np.int64)
    nearest = np.full(Z.shape[0], np.inf)
    for c in chosen:
        nearest = np.minimum(nearest, ((Z - Z[c]) ** 2).sum(axis=1))
    nearest[chosen] = -1.0
    while len(chosen) < count:
        c = int(np.argmax(nearest))
        chosen.append(c)
        nearest = np.minimum(nearest, ((Z - Z[c]) ** 2).sum(axis=1))
        nearest[chosen] = -1.0
    return np.array(chosen, dtype=np.int64)


def warmup_plan(Z: FloatArray, config: SelectorConfig) -> IntArray:
    """Candidates of the warm-up in order, one entry per evaluation, never more than the budget.

    Paper mode: N_W candidates (the examples, or a share of all) R times each. Default mode: the examples and a few
    far-apart candidates once each; repeating them would buy knowledge of the noise, which the pooled estimate gets
    anyway.
    """
    n = Z.shape[0]
    first = config.examples if config.warmup in ("auto", "examples") else ()
    if config.mode == "paper":
        count = len(first) or max(2, round(config.warmup_fraction * n))
    elif config.warmup == "examples":
        count = len(first)
    else:
        count = max(len(first), min(10, n // 5 + 1, config.budget // 5), 1)
    count = min(count, config.budget)
    if config.warmup == "random":
        taken = stream(config.seed, "warmup").permutation(n)[:count].astype(np.int64)
    else:
        taken = spread_out(Z, count, first)
    each = min(config.replications, config.rotation.most) if config.mode == "paper" else 1
    return np.tile(taken, int(each))[: config.budget]
