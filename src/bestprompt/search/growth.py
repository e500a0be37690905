"""Growing the set of latent vectors from the examples' to N (paper, section "Search Stage", step 2).

Notation as in ``perturb.py``, and
    r1 < sim(Dec(X'), Dec(X_l)) < r2   acceptance                → ``bounds``
    λ                                  factor on the step, an own addition of ``default`` mode → ``step``

``paper`` mode is verbatim: one proposal at a time, exact Σ_p of the current set, greedy Dec, box and similarity only,
and no text twice, because z ↔ X ↔ text must stay one-to-one.
``default`` mode deviates, each time for yield:
    covariance shrunk towards that of similar sentences of the corpus, by the weight of Ledoit and Wolf; a share of the
    steps (none at present) goes the way from a sentence of the corpus like the parent to another wording of it instead;
    λ adapts so that neither "too close" nor "too far" dominates the rejections;
    a beam search offers several readings of a point; they must be whole, no near-duplicates, similar to the parent,
    close (r1) to an example, about the same subject, or generations would drift off the task, and worded like the
    examples or the corpus (``wording.py``); of those left, the three closest to the examples are shown to the language
    model, and the one that follows best from the examples is taken (``context_fluency.py``);
    the candidate takes the vector Enc(text), which must decode to the same text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from bestprompt.choices import DEFAULT_BOUNDS, Mode
from bestprompt.errors import SearchError
from bestprompt.latent import TextAutoencoder
from bestprompt.search import perturb
from bestprompt.search.context_fluency import context_fluency
from bestprompt.search.filters import (
    Fluency,
    Similarity,
    content_stems,
    looks_whole,
    near_duplicate,
    plain,
    subject,
    word_similarity,
)
from bestprompt.search.wording import Wording
from bestprompt.types import FloatArray, IntArray

BATCH = 32
PROPOSALS_PER_CANDIDATE, STALLED = 40, 192  # limits of proposals: on average, and without a single acceptance
READINGS = 3  # how many readings of one point the language model is asked about, at most
MOST_LENIENT = 0.6  # in nats per token, below the language model's floor
NEIGHBOURS = 6  # corpus sentences per prompt that shape the step besides the prompts themselves
# Share of the steps that say the same otherwise, and sentences like the parent to learn them from. None with the
# shipped weights: at a share of .5 candidates read as well and are more different, but the best of them scored lower on
# a real model (``experiments/search_quality/reading_steps.md``).
PARAPHRASED, ALIKE = 0.0, 32
# λ was chosen on the prompts of ``experiments/search_quality/other_tasks.py``, not on the bundled tasks.
INITIAL_STEP, STEP_RANGE = 0.8, (0.1, 4.0)
TOLERATED_CLOSE = 0.4  # share of points without a new reading that does not lengthen the step: they cost little
CLOSE, FAR = (
    frozenset({"repeated", "too similar"}),
    frozenset({"outside box", "too different", "broken", "not fluent", "not exact"}),
)


@dataclass(frozen=True)
class Rules:
    """What decides acceptance."""

    mode: Mode
    fluency: Fluency | None
    similarity: Similarity = word_similarity
    bounds: tuple[float, float] = DEFAULT_BOUNDS


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
        target: (m, D~) rows whose covariance the step is shrunk towards, in ``default`` mode.
        paraphrases: (m, D~) twice, sentences and another wording of each, in ``default`` mode.
        leniency: By how much a reading may miss the language model's floor.
        wording: Rules on words, in ``default`` mode, if the autoencoder knows words.
        shortfall: Why the set is smaller than asked for.
    """

    sentences: list[str]
    X: FloatArray
    parents: list[int]
    chosen: list[int]
    step: float = INITIAL_STEP
    outcomes: Counter[str] = field(default_factory=Counter)
    history: list[tuple[int, int, float]] = field(default_factory=list)
    similarities: list[float] = field(default_factory=list)
    target: FloatArray = field(default_factory=lambda: np.zeros((0, 1)))
    paraphrases: tuple[FloatArray, FloatArray] = field(default_factory=lambda: (np.zeros((0, 1)), np.zeros((0, 1))))
    leniency: float = 0.0
    wording: Wording | None = None
    shortfall: str | None = None

    @property
    def starts(self) -> tuple[str, ...]:
        """The sentences that the set began with."""
        return tuple(text for text, parent in zip(self.sentences, self.parents, strict=True) if parent < 0)

    @property
    def proposals(self) -> int:
        """Proposals made so far."""
        return self.outcomes.total()

    @property
    def idle(self) -> int:
        """Proposals since the last one that was accepted."""
        return sum(k for k, _, _ in takewhile(lambda row: row[1] == 0, reversed(self.history)))


def grow(
    autoencoder: TextAutoencoder, sentences: Sequence[str], n: int, rules: Rules, rng: np.random.Generator
) -> Growth:
    """Grow the set of ``sentences`` to ``n``, or as far as it goes: ``shortfall`` then says why and what to change.

    Raises:
        SearchError: No proposal is accepted at all; the message says the same.
    """
    growth = begin(autoencoder, sentences, rules.mode)
    limit = PROPOSALS_PER_CANDIDATE * max(n - len(sentences), 10)
    while len(growth.sentences) < n:
        if growth.proposals >= limit or growth.idle >= STALLED:
            growth.shortfall = _advice(growth, n)
            if len(growth.sentences) == len(sentences):
                raise SearchError(growth.shortfall)
            break
        (_paper_round if rules.mode == "paper" else _default_round)(autoencoder, growth, n, rules, rng)
    return growth


def begin(autoencoder: TextAutoencoder, sentences: Sequence[str], mode: Mode) -> Growth:
    """A set of the examples alone, with what the steps of ``mode`` go by."""
    known = list(sentences)
    growth = Growth(known, autoencoder.encode(known), [-1] * len(known), [0] * len(known))
    if mode == "default":
        growth.paraphrases = autoencoder.paraphrases()
        growth.target = perturb.neighbours(growth.X, growth.paraphrases[0], NEIGHBOURS)
        growth.wording = Wording.of(autoencoder, known)
    return growth


def _paper_round(autoencoder: TextAutoencoder, growth: Growth, n: int, rules: Rules, rng: np.random.Generator) -> None:
    parent = int(_choose_parents(growth, 1, rng)[0])
    moved = growth.X[parent] + perturb.sample_steps(growth.X, 1, rng)
    end = "outside box"
    if perturb.inside_box(moved)[0]:
        text = autoencoder.decode(moved)[0]
        end = _judge(text, parent, growth.sentences, growth, rules)
        if end == "accepted":
            _accept(growth, parent, moved[0], text, rules)
    growth.outcomes[end] += 1
    growth.history.append((1, int(end == "accepted"), growth.step))


def _default_round(
    autoencoder: TextAutoencoder, growth: Growth, n: int, rules: Rules, rng: np.random.Generator
) -> None:
    parents = _choose_parents(growth, BATCH, rng)
    moved = growth.X[parents] + growth.step * propose_steps(growth, parents, rng)
    inside = perturb.inside_box(moved)
    parents, moved = parents[inside], moved[inside]
    chosen, ends = choose_readings(autoencoder.hypotheses(moved), parents, growth, rules)
    exact = exact_vectors(autoencoder, moved, chosen)
    accepted = 0
    for at, text in chosen.items():
        if at not in exact:
            ends[at] = "not exact"
        elif len(growth.sentences) < n:
            _accept(growth, int(parents[at]), exact[at], text, rules)
            accepted += 1
        else:
            ends[at] = ""  # the set is full: this proposal was not needed
    counted = Counter(end for end in ends if end) + Counter({"outside box": BATCH - len(parents)})
    growth.outcomes += counted
    close, far = (sum(counted[reason] for reason in group) / BATCH for group in (CLOSE, FAR))
    growth.step = float(np.clip(growth.step * np.exp(0.3 * (max(0.0, close - TOLERATED_CLOSE) - far)), *STEP_RANGE))
    if counted["not fluent"] > BATCH / 2:  # examples that foretell each other well set a floor that few others reach
        growth.leniency = min(MOST_LENIENT, growth.leniency + 0.1)
    growth.history.append((BATCH, accepted, growth.step))


def propose_steps(growth: Growth, parents: IntArray, rng: np.random.Generator) -> FloatArray:
    """(k, D~) a step of ``default`` mode from each of the ``parents`` (k,), before the factor λ."""
    X, target = growth.X, growth.target
    # One example alone has no spread; without target its neighbourhood is explored by steps of the size of the vector.
    spread = X if len(X) > 1 or len(target) > 1 else np.vstack([X, -X])
    steps = perturb.shrunk_steps(spread, perturb.shrinkage(spread), len(parents), rng, target)
    if not len(growth.paraphrases[0]):
        return steps
    otherwise = perturb.paraphrase_steps(X[parents], growth.paraphrases, ALIKE, rng)
    return np.where(rng.random(len(parents))[:, None] < PARAPHRASED, otherwise, steps)


def choose_readings(
    readings: Sequence[Sequence[str]], parents: IntArray, growth: Growth, rules: Rules
) -> tuple[dict[int, str], list[str]]:
    """The reading taken at each point, by the point's number; and how each point ended.

    A point without one ends the way its likeliest reading does. The language model is the slowest judge and is asked
    last, about one reading of every point at once, and again about the next where the answer leaves room for better.
    """
    in_context = context_fluency(rules.fluency, growth.starts) if rules.fluency is not None else None
    ends = ["broken"] * len(readings)
    best: dict[int, tuple[float, str]] = {}
    asked: dict[int, set[str]] = {at: set() for at in range(len(readings))}
    open_points = list(asked)
    wording = growth.wording
    order = [found if wording is None else sorted(found, key=wording.novelty) for found in readings]
    for attempt in range(READINGS if in_context is not None else 1):
        tried: dict[int, str] = {}
        for at in open_points:
            known = [*growth.sentences, *(text for _, text in best.values()), *tried.values()]
            for text in (text for text in order[at] if text not in asked[at]):
                end = _judge(text, int(parents[at]), known, growth, rules)
                if end == "accepted":
                    tried[at] = text
                    asked[at].add(text)
                    break
                if attempt == 0 and text == readings[at][0]:
                    ends[at] = end
        margins = in_context.margins(list(tried.values())) if in_context is not None else np.zeros(len(tried))
        for (at, text), margin in zip(tried.items(), margins, strict=True):
            best[at] = max(best.get(at, (-np.inf, "")), (float(margin), text))
        open_points = [at for at in tried if in_context is not None and best[at][0] < in_context.enough]
    for at, (margin, _) in best.items():
        ends[at] = "accepted" if margin >= -growth.leniency else "not fluent"
    return {at: best[at][1] for at in sorted(best) if ends[at] == "accepted"}, ends


def _choose_parents(growth: Growth, k: int, rng: np.random.Generator) -> IntArray:
    parents = np.empty(k, dtype=np.int64)
    for i in range(k):
        law = perturb.parent_law(np.array(growth.chosen))
        parents[i] = rng.choice(len(law), p=law)
        growth.chosen[int(parents[i])] += 1
    return parents


def _judge(text: str, parent: int, known: Sequence[str], growth: Growth, rules: Rules) -> str:
    low, high = rules.bounds
    if rules.mode == "paper":
        if not text or text in known:  # one text, one vector: z ↔ X ↔ text must stay one-to-one
            return "repeated"
    elif not looks_whole(text, growth.sentences[parent]) or text[0].islower() > growth.sentences[parent][0].islower():
        return "broken"
    elif near_duplicate(plain(text), [plain(other) for other in known]):
        return "repeated"
    elif growth.wording is not None and (fault := growth.wording.fault(text, growth.sentences[parent])) is not None:
        return fault
    value = rules.similarity(text, growth.sentences[parent])
    if not low < value or (rules.mode == "default" and not _near_an_example(growth, text, parent, rules)):
        return "too different"
    if not value < high:
        return "too similar"
    return "accepted"


def admits(growth: Growth, parent: int, text: str, rules: Rules) -> str:
    """``"accepted"``, or why ``text``, moved from ``parent``, may not enter a set that exists already."""
    end = _judge(text, parent, growth.sentences, growth, rules)
    if end != "accepted" or rules.mode == "paper" or rules.fluency is None:
        return end
    return end if context_fluency(rules.fluency, growth.starts).margins([text])[0] >= 0.0 else "not fluent"


def _near_an_example(growth: Growth, text: str, parent: int, rules: Rules) -> bool:
    starts = growth.starts
    about = subject(starts)
    # A child may not lose the subject; the child of an example that does not name it has none to lose.
    if about & content_stems(growth.sentences[parent]) and not about & content_stems(text):
        return False
    return any(rules.similarity(text, start) > rules.bounds[0] for start in starts)


def _accept(growth: Growth, parent: int, vector: FloatArray, text: str, rules: Rules) -> None:
    growth.similarities.append(rules.similarity(text, growth.sentences[parent]))
    growth.sentences.append(text)
    growth.X = np.vstack([growth.X, vector])
    growth.parents.append(parent)
    growth.chosen.append(0)


def exact_vectors(autoencoder: TextAutoencoder, moved: FloatArray, chosen: dict[int, str]) -> dict[int, FloatArray]:
    """A latent vector that decodes to the chosen text, where there is one: Enc(text), else the moved point itself."""
    if not chosen:
        return {}
    at, texts = list(chosen), list(chosen.values())
    vectors = np.concatenate([autoencoder.encode(texts), moved[at]])
    back = autoencoder.decode(vectors)
    found = {}
    for i, text in enumerate(texts):
        row = next((row for row in (i, i + len(texts)) if back[row] == text), None)
        if row is not None:
            found[at[i]] = vectors[row]
    return found


def _advice(growth: Growth, n: int) -> str:
    reason, count = max(
        ((reason, c) for reason, c in growth.outcomes.items() if reason != "accepted"), key=lambda item: item[1]
    )
    advice = {
        "outside box": "set mode = 'default' under [search], whose step adapts",
        "repeated": "give more, and more different, example prompts, or ask for fewer candidates",
        "too similar": "give more different example prompts, or raise r2 under [search] (--r2)",
        "too different": "lower r1 under [search] (--r1), or give example prompts that are closer to each other",
        "broken": "reword the example prompts as short English instructions",
        "not exact": "reword the example prompts as short English instructions",
        "not fluent": "reword the example prompts as short English instructions",
    }[reason]
    found = len(growth.sentences)
    return (
        f"Only {found} of {n} candidate prompts were found in {growth.proposals:,} proposals; most proposals"
        f" ({count / growth.proposals:.0%}) were rejected as '{reason}'. What helps: {advice}."
    )
