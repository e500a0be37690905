"""A whole run: search, evaluate and select, recommend; new or continued."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from bestprompt import __version__
from bestprompt.builders import build_evaluator, build_prompt_set, planned_evaluations, worst_case
from bestprompt.config import Settings, load_settings
from bestprompt.errors import BudgetExhausted, LedgerError
from bestprompt.execution import Spend
from bestprompt.ledger import Entry, Ledger
from bestprompt.loop import select_sequentially
from bestprompt.outcome import Recommendation, recommend
from bestprompt.selection import SelectionState
from bestprompt.tasks import Task, floor_warning
from bestprompt.types import LanguageModel, SoftPromptSet


class Observer(Protocol):
    """Is told how a run goes; the command line draws progress bars with it."""

    def stage(self, name: str, total: int | None) -> None:
        """A stage begins; ``total`` steps are expected."""
        ...

    def advance(self, done: int) -> None:
        """``done`` steps of the stage are finished."""
        ...

    def evaluated(self, entry: Entry) -> None:
        """An attempt was recorded."""
        ...

    def warn(self, message: str) -> None:
        """Something the user should know before more is spent."""
        ...


class Silent:
    """An observer that says nothing."""

    def stage(self, name: str, total: int | None) -> None: ...
    def advance(self, done: int) -> None: ...
    def evaluated(self, entry: Entry) -> None: ...
    def warn(self, message: str) -> None: ...


def optimize(
    task: Task,
    lm: LanguageModel,
    *,
    budget: int | None = None,
    seed: int | None = None,
    candidates: Sequence[str] = (),
    ledger: str | Path | None = None,
    config: Settings | str | Path | None = None,
    observer: Observer | None = None,
) -> Recommendation:
    """Finds the best prompt for ``task`` on ``lm``.

    Args:
        task: Pairs, example prompts and score.
        lm: The language model.
        budget: Calls allowed; 300 unless ``config`` says otherwise.
        seed: Decides every random choice; 0 unless ``config`` says otherwise.
        candidates: Prompts to choose from besides the task's examples; when given, no others are invented.
        ledger: Folder of the run. A run that is already there is continued. Nothing is kept when left out.
        config: Settings, or a TOML file of them.
        observer: Is told how the run goes.

    Raises:
        LedgerError: If the folder holds a run with another task, model or configuration.
        LMError: If the model cannot be used. All answers so far are in the ledger; call again to continue.
        BudgetExhausted: If the budget ended before a single evaluation was made.
    """
    settings = config if isinstance(config, Settings) else load_settings(Path(config) if config else None)
    changes = {"budget": {**settings.budget.model_dump(), "calls": budget}} if budget is not None else {}
    changes |= {"seed": seed} if seed is not None else {}  # type: ignore[dict-item]
    settings = Settings.model_validate({**settings.model_dump(), **changes})
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(ledger) if ledger is not None else Path(scratch) / "run"
        with open_ledger(folder, run_facts(task, lm, settings, candidates)) as opened:
            return Run(task, lm, settings, opened, candidates, observer or Silent()).execute()


def run_facts(task: Task, lm: LanguageModel, settings: Settings, candidates: Sequence[str] = ()) -> dict[str, Any]:
    """What must be equal for a run to be continued."""
    return {
        "version": __version__,
        "task": task.name,
        "task_fingerprint": task.fingerprint,
        "lm": lm.name,
        "lm_fingerprint": lm.fingerprint,
        "settings": settings.model_dump(mode="json", exclude={"output"}),
        "given": list(candidates),
    }


def open_ledger(folder: Path, facts: Mapping[str, Any], extra: Mapping[str, Any] | None = None) -> Ledger:
    """The ledger in ``folder``, new or to be continued.

    Raises:
        LedgerError: If it belongs to a run with other ``facts``.
    """
    if not (folder / "ledger.db").exists():
        return Ledger.create(folder, {**facts, **(extra or {})})
    ledger = Ledger.open(folder)
    recorded = ledger.facts()
    differing = [key for key, value in facts.items() if key != "version" and recorded.get(key) != value]
    if differing:
        ledger.close()
        names = ", ".join(name for key in differing for name in _difference(key, recorded.get(key), facts[key]))
        raise LedgerError(
            f"{folder} holds a run with another {names}. Restore what it was started with, or give a new --output."
        )
    return ledger


def _difference(key: str, recorded: Any, wanted: Any) -> list[str]:
    if isinstance(recorded, dict) and isinstance(wanted, dict):
        return [f"{key}.{k}" for k in {**recorded, **wanted} if recorded.get(k) != wanted.get(k)]
    return [key]


class Run:
    """One run over an open ledger."""

    def __init__(
        self,
        task: Task,
        lm: LanguageModel,
        settings: Settings,
        ledger: Ledger,
        candidates: Sequence[str] = (),
        observer: Observer | None = None,
    ) -> None:
        self._task, self._lm, self._settings, self._ledger = task, lm, settings, ledger
        self._given, self._observer = candidates, observer or Silent()

    def execute(self) -> Recommendation:
        """Runs to the end, or continues to it."""
        self._warn_if_on_the_floor(())
        candidates = self._search()
        evaluator = build_evaluator(
            self._task, self._settings, self._lm, candidates, self._ledger, self._observer.evaluated
        )
        choice, reason = select_sequentially(
            candidates,
            self._settings,
            evaluator,
            lambda state: self._plan(candidates, state),
            self._warn_if_on_the_floor,
        )
        if not choice.counts.any():
            raise BudgetExhausted("The budget was spent on failed attempts; not one evaluation was made.")
        recommendation = recommend(candidates, choice, evaluator.spent, reason)
        self._ledger.event("finished", **recommendation.as_dict())
        return recommendation

    # ------------------------------------------------------------------------------------------------------ internals
    def _search(self) -> SoftPromptSet:
        stored = self._ledger.candidates()
        if stored is not None:
            return stored
        self._observer.stage("searching", self._settings.search.candidates)
        made = build_prompt_set(
            self._task, self._settings, self._lm, self._given, lambda done, _total: self._observer.advance(done)
        )
        self._ledger.set_candidates(made)
        return made

    def _plan(self, candidates: SoftPromptSet, state: SelectionState | None) -> int:
        """T, by the most an evaluation may need and, once some were made, by what they did need."""
        each = self._mean_spend(state) if state is not None else None
        if each is None:
            each = worst_case(self._task, self._settings, self._lm, candidates.prompts)
        evaluations = planned_evaluations(self._settings, each)
        position = 0 if state is None else 1
        if sum(kind == "planned" for kind, _, _ in self._ledger.events()) <= position:
            self._ledger.event("planned", evaluations=evaluations)
        self._observer.stage("evaluating", evaluations)
        self._observer.advance(sum(entry.final for entry in self._ledger.entries()))
        return evaluations

    def _mean_spend(self, state: SelectionState) -> Spend | None:
        """What the evaluations in ``state`` needed on average, by the ledger: the same after a restart."""
        done = set(zip(state.candidates.tolist(), state.replications.tolist(), strict=True))
        used = [e for e in self._ledger.entries() if (e.candidate, e.replication) in done]
        if not used:
            return None
        total = sum((Spend(e.usage.calls, e.usage.tokens, e.cost) for e in used), Spend())
        return Spend(total.calls / len(done), total.tokens / len(done), total.dollars / len(done))

    def _warn_if_on_the_floor(self, scores: Sequence[Sequence[float]]) -> None:
        message = floor_warning(self._task, self._lm.name, scores)
        if message:
            self._observer.warn(message)
