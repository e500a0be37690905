"""Every prompt without demonstrations and with some sets of them: instruction and demonstrations are chosen jointly.

Notation (symbol → name):
    k       pairs of one set                                          → ``size``
    z_p     soft prompt of instruction p (D,)                         → ``candidates.Z``
    e_s     unit vector of set s (S,)
    z_ps    (z_p, c 1[s], c/2 e_s), the candidate (p, s); without a set (z_p, 0, 0)      → ``Z`` of the result
    c       root mean square distance of the prompts from their centre, as in ``across.py``

So an answer to an instruction with one set tells something about the same instruction with other sets and without one,
and about other instructions with the same set; two sets (c²/2 apart) are closer than either is to none (5c²/4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import comb

import numpy as np

from bestprompt.rng import stream
from bestprompt.search.across import spread
from bestprompt.types import DEMONSTRATED, FloatArray, SoftPromptSet

SETS = 4  # drawn at most
# With so many candidates or fewer, every prompt is tried with every set; of more prompts each gets fewer sets.
ROOM = 64
DEMONSTRATIONS = "demonstrations"  # the detail of a set that says which candidate shows which pairs


def draw_sets(answers: Sequence[str], size: int, seed: int) -> list[tuple[int, ...]]:
    """Up to ``SETS`` different sets of ``size`` pairs each, numbers into ``answers``, in the order they are shown.

    Two sets at a time share no pair, as far as there are enough, and a set shows as many different answers as it can.
    """
    found: dict[frozenset[int], tuple[int, ...]] = {}
    wanted, draw = min(SETS, comb(len(answers), size)), 0
    while len(found) < wanted:
        order = _alternating(stream(seed, DEMONSTRATIONS, "set", draw).permutation(len(answers)).tolist(), answers)
        for one in (tuple(order[:size]), tuple(order[-size:])):
            if len(found) < wanted:
                found.setdefault(frozenset(one), one)
        draw += 1
    return list(found.values())


def with_demonstrations(
    candidates: SoftPromptSet, sets: Sequence[tuple[int, ...]], show: Callable[[str, tuple[int, ...]], str], seed: int
) -> SoftPromptSet:
    """``candidates`` as they are, and behind them the same prompts with demonstrations.

    Args:
        candidates: The instructions.
        sets: Of pairs, by number.
        show: A prompt with the pairs of a set.
        seed: Of the run: decides who gets which set where not everybody gets all.
    """
    prompts, each = len(candidates.prompts), len(sets)
    share = _sets_each(prompts, each)
    turns = stream(seed, DEMONSTRATIONS, "turns").permutation(prompts)
    given = [(p, (int(turns[p]) + s) % each) for s in range(share) for p in range(prompts)]
    shown: dict[str, tuple[int, int]] = {}
    for p, s in given:
        shown.setdefault(show(candidates.prompts[p], sets[s]), (p, s))
    texts = {text: row for text, row in shown.items() if text not in candidates.prompts}
    rows = [*((p, -1) for p in range(prompts)), *texts.values()]
    return replace(
        candidates,
        prompts=(*candidates.prompts, *texts),
        Z=np.hstack([candidates.Z[[p for p, _ in rows]], _blocks([s for _, s in rows], each, spread(candidates.Z))]),
        X=None,  # a place of the instruction alone, which several candidates would share
        parents=np.append(candidates.parents, [p for p, _ in rows[prompts:]]).astype(np.int64),
        sources=(*candidates.sources, *(candidates.sources[p] + DEMONSTRATED for p, _ in rows[prompts:])),
        details={**candidates.details, DEMONSTRATIONS: {"sets": [list(s) for s in sets], "of": [s for _, s in rows]}},
    )


def with_sets(prompts: int, pool: int, size: int) -> int:
    """How many candidates ``prompts`` become, with demonstrations from a pool of so many pairs."""
    return prompts * (1 + _sets_each(prompts, min(SETS, comb(pool, size)))) if pool else prompts


def _sets_each(prompts: int, sets: int) -> int:
    return min(max(ROOM // prompts - 1, 1), sets)


def _blocks(sets: Sequence[int], count: int, scale: float) -> FloatArray:
    """(N, 1 + S) the coordinates of the sets; -1 is none."""
    blocks = np.zeros((len(sets), 1 + count))
    for row, number in enumerate(sets):
        if number >= 0:
            blocks[row, 0], blocks[row, 1 + number] = scale, scale / 2
    return blocks


def _alternating(order: Sequence[int], answers: Sequence[str]) -> list[int]:
    """``order`` with one pair of each answer first, then the second of each, and so on."""
    seen: dict[str, int] = {}
    turn = {}
    for number in order:
        turn[number] = seen.get(answers[number], 0)
        seen[answers[number]] = turn[number] + 1
    return sorted(order, key=lambda number: turn[number])
