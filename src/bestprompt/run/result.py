"""What a run returns: the recommended prompt and how sure that is, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from bestprompt.run.confirmation import Comparison
from bestprompt.run.held_out import HeldOutResult
from bestprompt.run.leaderboard import LeaderboardRow, cheapest
from bestprompt.run.outside import OutsideLook
from bestprompt.run.sources import sources
from bestprompt.run.variation import in_words
from bestprompt.selection import SelectionResult, chains_in_words
from bestprompt.types import SoftPromptSet


@dataclass(frozen=True, slots=True)
class ShortlistedPrompt:
    """A prompt that cannot be told from the recommended one, or is it."""

    prompt: str
    probability_best: float
    score: float
    evaluations: int


@dataclass(frozen=True, slots=True)
class LoopResult:
    """What the loop ends with.

    Attributes:
        candidates: All candidates, added ones included.
        choice: The selection stage's result, by candidate number.
        reason: What ended the run.
        looks: The looks outside the set.
        comparisons: Of each refined prompt with the best of the set.
        skipped: Why there was no refinement although the settings ask for it.
    """

    candidates: SoftPromptSet
    choice: SelectionResult
    reason: str
    looks: tuple[OutsideLook, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class RefinedPrompt:
    """A prompt that refinement added: what was predicted of it, and what was seen.

    Attributes:
        prompt: The text.
        source: How it was found: one of ``types.ADDED``.
        parent: The prompt it was made from.
        predicted: Mean score predicted before its first evaluation.
        std: The uncertainty of that prediction.
        observed: Its mean score.
        evaluations: How often it was evaluated.
        comparison: With the best prompt of the set.
        returned: Whether it is the prompt the run recommends.
    """

    prompt: str
    source: str
    parent: str
    predicted: float
    std: float
    observed: float
    evaluations: int
    comparison: Comparison
    returned: bool


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """How one source of new prompts did in a run.

    Attributes:
        source: One of ``types.ADDED``.
        proposed: Prompts it was asked for, or found worth a look.
        tried: Those that became candidates.
        refused: Why the others did not → how often.
        calls: Calls to the model that wrote.
        gain: By how much the best of them scored more than the best prompt of the set, on the pairs that both met and
            where these are enough; ``None`` if none was compared.
        won: Whether the run recommends one of them.
    """

    source: str
    proposed: int
    tried: int
    refused: Mapping[str, int]
    calls: int
    gain: float | None
    won: bool


@dataclass(frozen=True, slots=True)
class Refinement:
    """What came from outside the set while the run went on: by refinement, or written by a model.

    Attributes:
        mode: As set.
        tried: The prompts it added, in order.
        looks: When it looked outside the set, what either stage was worth then, and whose turn it was.
        uncertainty: U_I, the sum of the squared uncertainties of the predictions at the prompts tried.
        sentence: The outcome in words.
        skipped: Why it was not done, if it was not.
    """

    mode: str
    tried: tuple[RefinedPrompt, ...]
    looks: tuple[OutsideLook, ...]
    uncertainty: float
    sentence: str
    skipped: str | None
    sources: tuple[SourceRecord, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "mode": self.mode,
            "skipped": self.skipped,
            "sentence": self.sentence,
            "uncertainty": self.uncertainty,
            "sources": [asdict(each) for each in self.sources],
            "tried": [
                {
                    "prompt": r.prompt,
                    "source": r.source,
                    "predicted": r.predicted,
                    "std": r.std,
                    "observed": r.observed,
                    "evaluations": r.evaluations,
                    "shared": r.comparison.shared,
                    "difference": r.comparison.difference,
                    "returned": r.returned,
                }
                for r in self.tried
            ],
        }


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The chosen prompt and how sure that is.

    Attributes:
        prompt: The winner, as plain text.
        score: Estimated mean score on pairs like the task's.
        interval: 95 % interval of that mean, corrected for having chosen the best of many.
        probability_best: Probability that no other candidate is better.
        shortlist: Candidates that cannot be told from the winner, best first.
        verdict: The same in one or two sentences.
        calls: Language-model calls made, failures and judging included.
        tokens: Tokens used.
        dollars: Their price.
        stopped_because: Which rule ended the run.
        candidates: All candidates.
        choice: The selection stage's own result, by candidate number.
        refinement: What refinement did; ``None`` where it is off.
        variation: Shares of the variance of single scores that are due to prompt, item, model and judge, as far as the
            run can tell them apart; ``None`` where it cannot.
        last_look: The winner on pairs that were held out, where some were.
        leaderboard: Every candidate, the winner first, then by estimated score.
        unspent: Calls of the budget that were not made; ``None`` where calls have no limit.
        model: Which model answers best with it, where several were compared.
        demonstrations: How many pairs the winner shows; none of them judged a prompt.
    """

    prompt: str
    score: float
    interval: tuple[float, float]
    probability_best: float
    shortlist: tuple[ShortlistedPrompt, ...]
    verdict: str
    calls: int
    tokens: int
    dollars: float
    stopped_because: str
    candidates: SoftPromptSet
    choice: SelectionResult
    refinement: Refinement | None = None
    variation: Mapping[str, float] | None = None
    last_look: HeldOutResult | None = None
    leaderboard: tuple[LeaderboardRow, ...] = ()
    unspent: int | None = None
    model: str | None = None
    demonstrations: int = 0

    @property
    def prompt_to_use(self) -> str:
        """The winner, or the prompt you use now where the verdict says to keep it."""
        return self.candidates.prompts[self.candidate_to_use]

    @property
    def candidate_to_use(self) -> int:
        """Its number."""
        choice = self.choice
        return choice.incumbent if choice.keep_incumbent and choice.incumbent is not None else choice.candidate

    @property
    def source(self) -> str:
        """Where the winner came from: ``"example"``, ``"latent"``, …, or a tool or file, as ``"GEPA: my-run"``."""
        return self.candidates.sources[self.choice.candidate]

    @property
    def cheapest(self) -> LeaderboardRow | None:
        """Where several models were compared: the cheapest candidate that cannot be told from the winner."""
        return cheapest(self.leaderboard)

    def table(self) -> dict[str, list[Any]]:
        """The leaderboard by columns, as ``pandas.DataFrame(rec.table())`` and others take it."""
        return {field.name: [getattr(row, field.name) for row in self.leaderboard] for field in fields(LeaderboardRow)}

    @property
    def shortfall(self) -> str | None:
        """Why there were fewer candidates than asked for, in words; ``None`` if there were as many."""
        return self.candidates.details.get("shortfall")

    @property
    def outlook(self) -> str:
        """What further calls could gain, what the pairs can show, why scores differ and how the model did, in words."""
        parts = (
            f"As many calls again are expected to gain {self.choice.value_of_more:.3f}.",
            self.choice.reach.sentence if self.choice.reach is not None else None,
            in_words(self.variation) if self.variation is not None else None,
            chains_in_words(self.choice.diagnostics),
            self.choice.remark,
        )
        return " ".join(part for part in parts if part)

    def as_dict(self) -> dict[str, Any]:
        """What a script wants to read, as plain values."""
        return {
            "prompt": self.prompt,
            "model": self.model,
            "source": self.source,
            "demonstrations": self.demonstrations,
            "prompt_to_use": self.prompt_to_use,
            "candidate_to_use": self.candidate_to_use,
            "cheapest": asdict(self.cheapest) if self.cheapest is not None else None,
            "score": self.score,
            "interval": list(self.interval),
            "probability_best": self.probability_best,
            "probability_within_delta": self.choice.probability_within_delta,
            "expected_loss": self.choice.expected_loss,
            "probability_beats_incumbent": self.choice.probability_beats_incumbent,
            "keep_incumbent": self.choice.keep_incumbent,
            "check": (
                {**asdict(self.choice.checked), "sentence": self.choice.checked.sentence}
                if self.choice.checked is not None
                else None
            ),
            "shortlist": [
                {
                    "prompt": c.prompt,
                    "score": c.score,
                    "probability_best": c.probability_best,
                    "evaluations": c.evaluations,
                }
                for c in self.shortlist
            ],
            "verdict": self.verdict,
            "calls": self.calls,
            "tokens": self.tokens,
            "dollars": self.dollars,
            "unspent": self.unspent,
            "stopped_because": self.stopped_because,
            "outlook": self.outlook,
            "shortfall": self.shortfall,
            "on_these_pairs": asdict(self.choice.on_these_items) if self.choice.on_these_items is not None else None,
            "reach": asdict(self.choice.reach) if self.choice.reach is not None else None,
            "last_look": self.last_look.as_dict() if self.last_look is not None else None,
            "value_of_more": self.choice.value_of_more,
            "variation": dict(self.variation) if self.variation is not None else None,
            "diagnostics": dict(self.choice.diagnostics),
            "refinement": self.refinement.as_dict() if self.refinement is not None else None,
            "sources": [each.as_dict() for each in sources(self.leaderboard)],
            "leaderboard": [asdict(row) for row in self.leaderboard],
        }
