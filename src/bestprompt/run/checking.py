"""``check``: is a new prompt worse than the one in use? A run that asks nothing else and ends when that is settled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bestprompt.choices import IfUndecided
from bestprompt.errors import ConfigError
from bestprompt.run.api import optimize
from bestprompt.run.observer import Observer
from bestprompt.run.result import Recommendation
from bestprompt.run.settings import Settings, changed, load_settings
from bestprompt.selection.conclusion.against_incumbent import Outcome
from bestprompt.tasks import Task
from bestprompt.types import LanguageModel

SAME = "The new prompt is the one in use: there is nothing to compare."
# Answers that are told together: few, so that no more are asked for than are needed.
BATCH = 4


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Whether a new prompt may take the place of the one in use.

    Attributes:
        passed: It is not worse, or undecided where that is enough.
        outcome: What is settled with the probability asked for.
        probability_worse: P(it scores less by more than the margin).
        difference: Expected score of the new prompt less that of the one in use.
        interval: 95 % interval of that difference.
        shared: Pairs that both have met.
        calls: Calls made.
        verdict: The same in a sentence.
        recommendation: The whole result of the run; ``None`` where both prompts are the same and nothing was asked.
    """

    passed: bool
    outcome: Outcome
    probability_worse: float
    difference: float
    interval: tuple[float, float]
    shared: int
    calls: int
    verdict: str
    recommendation: Recommendation | None

    @classmethod
    def of(cls, found: Recommendation) -> CheckResult:
        """What a run that checked something found."""
        seen = found.choice.checked
        assert seen is not None, "the run was asked to check"
        figures = (seen.probability_worse, seen.difference, seen.interval, seen.shared)
        return cls(seen.passes, seen.outcome, *figures, found.calls, seen.sentence, found)


def check(
    task: Task,
    lm: LanguageModel,
    *,
    incumbent: str,
    new: str,
    probability: float = 0.95,
    margin: float = 0.0,
    if_undecided: IfUndecided = "pass",
    budget: int | None = None,
    seed: int | None = None,
    ledger: str | Path | None = None,
    config: Settings | str | Path | None = None,
    observer: Observer | None = None,
) -> CheckResult:
    """Whether ``new`` is worse than ``incumbent`` on pairs like those of ``task``, at the fewest calls.

    Both prompts meet the same pairs, a few at a time, until "worse" or "not worse" is settled, or the rest of the pairs
    would not change the decision.

    Args:
        task: Pairs and score; its example prompts are left aside.
        lm: The language model.
        incumbent: The prompt in use.
        new: The one that may take its place.
        probability: How sure the answer must be.
        margin: A new prompt that scores less by no more than this is not worse.
        if_undecided: Whether the new prompt passes when neither could be settled.
        budget: Calls allowed; 300 unless ``config`` says otherwise.
        seed: Decides every random choice; 0 unless ``config`` says otherwise.
        ledger: Folder of the run, as in :func:`bestprompt.optimize`: what it holds is not asked again.
        config: Settings, or a TOML file of them.
        observer: Is told how the run goes.
    """
    if is_same(incumbent, new):
        return CheckResult(True, "not worse", 0.0, 0.0, (0.0, 0.0), 0, 0, SAME, None)
    settings = config if isinstance(config, Settings) else load_settings(Path(config) if config else None)
    settings = changed(settings, check_settings(incumbent, probability, margin, if_undecided))
    only_these = replace(task, examples=(incumbent.strip(), new.strip()))
    found = optimize(only_these, lm, budget=budget, seed=seed, ledger=ledger, config=settings, observer=observer)
    return CheckResult.of(found)


def is_same(incumbent: str, new: str) -> bool:
    """Whether there is nothing to compare.

    Raises:
        ConfigError: One of the two is empty.
    """
    for name, text in (("incumbent", incumbent), ("new", new)):
        if not text.strip():
            raise ConfigError(f"The {name} prompt is empty.")
    return incumbent.strip() == new.strip()


def check_settings(incumbent: str, probability: float, margin: float, if_undecided: str) -> Mapping[str, object]:
    """What makes a run a check, as dotted settings: two prompts, no others, and one question about them."""
    return {
        "selection.incumbent": incumbent.strip(),
        "selection.incumbent_check": {"probability": probability, "margin": margin, "if_undecided": if_undecided},
        "selection.batch": BATCH,
        "search.source": "examples",
        "search.file": (),
        "search.rewrites": 0,
        "search.demos": 0,
        "ideas.mode": "off",
        "refinement.mode": "off",
        "holdout": 0.0,
    }
