"""Growing the set of latent vectors from the examples' to N (paper, section "Search Stage", step 2).

Notation as in ``perturb.py``; besides
    r1 < sim(Dec(X'), Dec(X_l)) < r2   acceptance                → ``bounds``
    λ                                  factor on the step, an own addition of ``default`` mode → ``step``

``paper`` mode is verbatim: one proposal at a time, exact Σ_p of the current set, box and similarity only,
and besides no text twice, because z ↔ X ↔ text must stay one-to-one.
``default`` mode deviates, each time for yield: Ledoit–Wolf covariance; λ adapts so that neither "too close" nor "too
far" dominates the rejections; a candidate must also be similar (r1) to an example, or generations would drift off the
task; proposals are decoded in batches; near-duplicates, broken and disfluent decodes are dropped; an accepted
candidate takes the vector Enc(text) when that decodes to the same text, so that drift off the set of sentences does
not accumulate over generations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from bestprompt.errors import SearchError
from bestprompt.latent import TextAutoencoder
from bestprompt.search import perturb
from bestprompt.search.filters import Fluency, Similarity, fluency_floor, looks_whole, near_duplicate, plain
from bestprompt.types import FloatArray, IntArray

Mode = Literal["default", "paper"]

BATCH = 64
PROPOSALS_PER_CANDIDATE = 40
# Two thirds of the decodes repeat a known prompt at this λ and most others are whole; at 2 half are new, but they
# drift. The isotropic part of the shrunken covariance hardly reaches the code: λ = 1.5 is about the paper's step.
INITIAL_STEP, STEP_RANGE = 1.5, (0.1, 4.0)
TOLERATED_CLOSE = 0.65  # share of repeated decodes that does not lengthen the step: they cost little, broken ones more
CLOSE, FAR = frozenset({"repeated", "too similar"}), frozenset({"outside box", "too different", "broken", "not fluent"})


@dataclass(frozen=True)
class Rules:
    """What decides acceptance."""

    mode: Mode
    similarity: Similarity
    bounds: tuple[float, float]
    fluency: Fluency | None
    fluency_level: float = 0.0


@dataclass
class Growth:
    """The growing set; sentence n belongs to row n of ``X``.

    Attributes:
        sentences: Varied sentences, the examples first.
        X: (L, D~) latent vectors.
        parents: -1 for an example.
        chosen: ñ_l.
        step: λ.
        outcomes: How proposals ended, counted.
        history: Per round: proposals, accepted, λ.
    """

    sentences: list[str]
    X: FloatArray
    parents: list[int]
    chosen: list[int]
    step: float = INITIAL_STEP
    outcomes: Counter[str] = field(default_factory=Counter)
    history: list[tuple[int, int, float]] = field(default_factory=list)
    similarities: list[float] = field(default_factory=list)

    @property
    def proposals(self) -> int:
        """Proposals made so far."""
        return self.outcomes.total()


def grow(
    autoencoder: TextAutoencoder, sentences: Sequence[str], n: int, rules: Rules, rng: np.random.Generator
) -> Growth:
    """Grow the set of ``sentences`` to ``n``.

    Raises:
        SearchError: Too few proposals are accepted; the message says why and what to change.
    """
    known = list(sentences)
    growth = Growth(known, autoencoder.encode(known), [-1] * len(known), [0] * len(known))
    k = 1 if rules.mode == "paper" else BATCH
    limit = PROPOSALS_PER_CANDIDATE * max(n - len(known), 10)
    while len(growth.sentences) < n:
        if growth.proposals >= limit:
            raise SearchError(_advice(growth, n))
        _round(autoencoder, growth, n, k, rules, rng)
    return growth


def _round(
    autoencoder: TextAutoencoder, growth: Growth, n: int, k: int, rules: Rules, rng: np.random.Generator
) -> None:
    parents = _choose_parents(growth, k, rng)
    if rules.mode == "paper":
        steps = perturb.sample_steps(growth.X, k, rng)
    else:
        # One example alone has no spread: its neighbourhood is explored by steps of the size of the latent coordinates.
        spread = growth.X if len(growth.X) > 1 else np.vstack([growth.X, -growth.X])
        steps = growth.step * perturb.shrunk_steps(spread, perturb.shrinkage(spread), k, rng)
    moved = growth.X[parents] + steps
    inside = perturb.inside_box(moved)
    growth.outcomes["outside box"] += int(np.sum(~inside))
    parents, moved = parents[inside], moved[inside]
    ends = Counter({"outside box": k - len(parents)})
    before = len(growth.sentences)
    if len(parents):
        texts = autoencoder.decode(moved)
        fluent = _fluent(growth, parents, texts, rules)
        for parent, vector, text, good in zip(parents, moved, texts, fluent, strict=True):
            if len(growth.sentences) == n:
                break
            end = _judge(growth, int(parent), text, rules)
            end = "not fluent" if end == "accepted" and not good else end
            growth.outcomes[end] += 1
            ends[end] += 1
            if end == "accepted":
                _accept(growth, int(parent), vector, text, rules)
    if rules.mode == "default":
        _snap(autoencoder, growth, before)
        close, far = (sum(ends[reason] for reason in group) / k for group in (CLOSE, FAR))
        growth.step = float(np.clip(growth.step * np.exp(0.3 * (max(0.0, close - TOLERATED_CLOSE) - far)), *STEP_RANGE))
    growth.history.append((k, len(growth.sentences) - before, growth.step))


def _choose_parents(growth: Growth, k: int, rng: np.random.Generator) -> IntArray:
    parents = np.empty(k, dtype=np.int64)
    for i in range(k):
        law = perturb.parent_law(np.array(growth.chosen))
        parents[i] = rng.choice(len(law), p=law)
        growth.chosen[int(parents[i])] += 1
    return parents


def _fluent(growth: Growth, parents: IntArray, texts: Sequence[str], rules: Rules) -> list[bool]:
    """Judged for those that pass everything else only: the language model is the slowest filter."""
    if rules.mode == "paper" or rules.fluency is None:
        return [True] * len(texts)
    passing = [_judge(growth, int(p), text, rules) == "accepted" for p, text in zip(parents, texts, strict=True)]
    asked = list(dict.fromkeys(text for text, passes in zip(texts, passing, strict=True) if passes))
    values = dict(zip(asked, rules.fluency(asked) if asked else [], strict=True))
    return [bool(text not in values or values[text] >= fluency_floor(text) + rules.fluency_level) for text in texts]


def _judge(growth: Growth, parent: int, text: str, rules: Rules) -> str:
    low, high = rules.bounds
    if rules.mode == "paper":
        if not text or text in growth.sentences:  # one text, one vector: z ↔ X ↔ text must stay one-to-one
            return "repeated"
    elif not looks_whole(text) or text[0].islower() > growth.sentences[parent][0].islower():
        return "broken"
    elif near_duplicate(plain(text), [plain(known) for known in growth.sentences]):
        return "repeated"
    value = rules.similarity(text, growth.sentences[parent])
    if not low < value or (rules.mode == "default" and not _near_an_example(growth, text, rules)):
        return "too different"
    if not value < high:
        return "too similar"
    return "accepted"


def _near_an_example(growth: Growth, text: str, rules: Rules) -> bool:
    starts = (sentence for sentence, parent in zip(growth.sentences, growth.parents, strict=True) if parent < 0)
    return any(rules.similarity(text, start) > rules.bounds[0] for start in starts)


def _accept(growth: Growth, parent: int, vector: FloatArray, text: str, rules: Rules) -> None:
    growth.similarities.append(rules.similarity(text, growth.sentences[parent]))
    growth.sentences.append(text)
    growth.X = np.vstack([growth.X, vector])
    growth.parents.append(parent)
    growth.chosen.append(0)


def _snap(autoencoder: TextAutoencoder, growth: Growth, first: int) -> None:
    fresh = growth.sentences[first:]
    if not fresh:
        return
    on_set = autoencoder.encode(fresh)
    same = [a == b for a, b in zip(autoencoder.decode(on_set), fresh, strict=True)]
    growth.X[first:][same] = on_set[same]


def _advice(growth: Growth, n: int) -> str:
    reason, count = max(
        ((reason, c) for reason, c in growth.outcomes.items() if reason != "accepted"), key=lambda item: item[1]
    )
    advice = {
        "outside box": "use mode 'default', whose step adapts",
        "repeated": "give more, and more different, example prompts, or ask for fewer candidates",
        "too similar": "give more different example prompts, or raise r2",
        "too different": "lower r1, or give example prompts that are closer to each other",
        "broken": "reword the example prompts as short English instructions",
        "not fluent": "reword the example prompts as short English instructions, or pass fluency=None",
    }[reason]
    found = len(growth.sentences)
    return (
        f"Only {found} of {n} candidate prompts were found in {growth.proposals:,} proposals; most proposals"
        f" ({count / growth.proposals:.0%}) were rejected as '{reason}'. What helps: {advice}."
    )
