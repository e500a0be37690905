"""What a run concludes, in words and plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bestprompt.execution import Spend
from bestprompt.selection import Recommendation as Choice
from bestprompt.types import SoftPromptSet


@dataclass(frozen=True, slots=True)
class Contender:
    """A candidate that may be the best."""

    prompt: str
    probability_best: float
    score: float
    evaluations: int


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
    """

    prompt: str
    score: float
    interval: tuple[float, float]
    probability_best: float
    shortlist: tuple[Contender, ...]
    verdict: str
    calls: int
    tokens: int
    dollars: float
    stopped_because: str
    candidates: SoftPromptSet
    choice: Choice

    def as_dict(self) -> dict[str, Any]:
        """What a script wants to read, as plain values."""
        return {
            "prompt": self.prompt,
            "score": self.score,
            "interval": list(self.interval),
            "probability_best": self.probability_best,
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
            "stopped_because": self.stopped_because,
        }


def recommend(candidates: SoftPromptSet, choice: Choice, spent: Spend, reason: str) -> Recommendation:
    """The selection stage's result in words."""
    return Recommendation(
        prompt=candidates.prompts[choice.candidate],
        score=choice.score,
        interval=choice.interval,
        probability_best=choice.probability_best,
        shortlist=tuple(
            Contender(candidates.prompts[s.candidate], s.probability_best, s.score, int(choice.counts[s.candidate]))
            for s in choice.shortlist
        ),
        verdict=choice.verdict.replace(f"Candidate {choice.candidate} ", "This prompt ", 1),
        calls=int(spent.calls),
        tokens=int(spent.tokens),
        dollars=spent.dollars,
        stopped_because=reason,
        candidates=candidates,
        choice=choice,
    )
