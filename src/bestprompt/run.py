"""A whole run: search, evaluate and select, recommend; new or continued."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

from bestprompt import __version__
from bestprompt.builders import (
    build_evaluator,
    build_explorer,
    build_prompt_set,
    build_questions,
    build_split,
    planned_evaluations,
    refuse_unusable,
    worst_case,
)
from bestprompt.config import BudgetSettings, Settings, load_settings, recorded_settings
from bestprompt.errors import BudgetExhausted, ConfigError, LedgerError, SearchError
from bestprompt.execution import Evaluator, Questions, Spend, spent, spent_writing
from bestprompt.last_look import looks, rival_of
from bestprompt.latent import TextAutoencoder
from bestprompt.ledger import EXTENDED, Entry, Ledger
from bestprompt.lm.embedded import current_fingerprint
from bestprompt.loop import Loop, concluded
from bestprompt.newcomers import SKIPPED, Explorer, Newcomers, Nobody, Recorded, why_skipped
from bestprompt.outcome import Course, Recommendation
from bestprompt.selection import SelectionState
from bestprompt.tasks import Task, floor_warning
from bestprompt.types import LanguageModel, SoftPromptSet
from bestprompt.writing import with_shortfall, write_prompts

LOOKED_AT_LAST = 2  # prompts that are tried on held-out pairs: the winner, and what it is compared with


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
    autoencoder: TextAutoencoder | None = None,
    holdout: float | None = None,
) -> Recommendation:
    """Finds the best prompt for ``task`` on ``lm``.

    Args:
        task: Pairs, example prompts and score.
        lm: The language model.
        budget: Calls allowed; 300 unless ``config`` says otherwise.
        seed: Decides every random choice; 0 unless ``config`` says otherwise.
        candidates: Prompts to choose from besides the task's examples; when given, no others are invented but those
            that ``search.rewrites`` asks for.
        ledger: Folder of the run. A run that is already there is continued, with a larger budget if that is given.
            Nothing is kept when left out.
        config: Settings, or a TOML file of them.
        observer: Is told how the run goes.
        autoencoder: Invents candidates and refines them, where the settings ask for that; the shipped one if left out.
        holdout: Share of the pairs on which nothing is chosen: winner and incumbent (or best example) are tried on them
            at last, within the budget. None are held out unless ``config`` says otherwise.

    Raises:
        LedgerError: If the folder holds a run with another task, model or configuration, or a larger budget.
        LMError: If the model cannot be used. All answers so far are in the ledger; call again to continue.
        BudgetExhausted: If the budget ended before a single evaluation was made.
    """
    settings = config if isinstance(config, Settings) else load_settings(Path(config) if config else None)
    changes = {"budget": {**settings.budget.model_dump(), "calls": budget}} if budget is not None else {}
    changes |= {"seed": seed} if seed is not None else {}  # type: ignore[dict-item]
    changes |= {"holdout": holdout} if holdout is not None else {}  # type: ignore[dict-item]
    settings = Settings.model_validate({**settings.model_dump(), **changes})
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(ledger) if ledger is not None else Path(scratch) / "run"
        with open_ledger(folder, run_facts(task, lm, settings, candidates)) as opened:
            return Run(task, lm, settings, opened, candidates, observer, autoencoder).execute()


def run_facts(task: Task, lm: LanguageModel, settings: Settings, candidates: Sequence[str] = ()) -> dict[str, Any]:
    """What a run depends on; but for the version, it must be equal for the run to be continued.

    Raises:
        ConfigError: If the settings cannot be used together: said before there is a record.
    """
    refuse_unusable(settings)
    return {
        "version": __version__,
        "task": task.name,
        "task_fingerprint": task.fingerprint,
        **asdict(build_questions(task, settings, lm)),
        "lm": lm.name,
        "lm_fingerprint": lm.fingerprint,
        "settings": settings.model_dump(mode="json", exclude={"output"}),
        "given": list(candidates),
    }


def open_ledger(folder: Path, facts: Mapping[str, Any], extra: Mapping[str, Any] | None = None) -> Ledger:
    """The ledger in ``folder``, new or to be continued; a larger budget in ``facts`` extends the run.

    Raises:
        LedgerError: If it belongs to a run with other ``facts``.
    """
    if not (folder / "ledger.db").exists():
        return Ledger.create(folder, {**facts, **(extra or {})})
    ledger = Ledger.open(folder)
    try:
        _check(ledger, facts, folder)
    except LedgerError:
        ledger.close()
        raise
    return ledger


def _check(ledger: Ledger, facts: Mapping[str, Any], folder: Path) -> None:
    # The budget may differ: it is checked, and raised, by itself.
    recorded = _comparable(ledger.facts())
    wanted = _comparable(facts)
    as_recorded = ("version", "items", "repeats", "next_item")
    differing = [key for key in wanted if key not in as_recorded and recorded.get(key) != wanted[key]]
    if differing:
        names = ", ".join(name for key in differing for name in _difference(key, recorded.get(key), wanted[key]))
        raise LedgerError(
            f"{folder} holds a run with another {names}. Restore what it was started with, or give a new --output."
        )
    extend(ledger, recorded_settings(facts).budget)


def _comparable(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **facts,
        "lm_fingerprint": current_fingerprint(facts["lm_fingerprint"]),
        "settings": recorded_settings(facts).model_dump(mode="json", exclude={"output", "budget"}),
    }


def _difference(key: str, recorded: Any, wanted: Any) -> list[str]:
    if isinstance(recorded, dict) and isinstance(wanted, dict):
        return [f"{key}.{k}" for k in {**recorded, **wanted} if recorded.get(k) != wanted.get(k)]
    return [key]


def budgets(ledger: Ledger) -> list[BudgetSettings]:
    """The budget a run was started with, and each it was extended to."""
    extensions = [BudgetSettings.model_validate(payload) for payload in ledger.payloads(EXTENDED)]
    return [recorded_settings(ledger.facts()).budget, *extensions]


def extend(ledger: Ledger, wanted: BudgetSettings) -> None:
    """Raises the budget of a run to ``wanted`` and records that; the plan so far is carried out first.

    Raises:
        LedgerError: If a limit would fall.
    """
    refuse_less(ledger, wanted)
    if wanted != budgets(ledger)[-1]:
        ledger.event(EXTENDED, **wanted.model_dump(mode="json"))


def refuse_less(ledger: Ledger, wanted: BudgetSettings) -> None:
    """Raises ``LedgerError`` if ``wanted`` is below the present budget in any limit."""
    so_far = spent(ledger)
    present = budgets(ledger)[-1].limits()
    for name, limit, before in zip(("calls", "tokens", "dollars"), wanted.limits(), present, strict=True):
        used = getattr(so_far, name)
        if limit * (1 + 1e-12) < used:  # the budget's own tolerance of rounding in sums of dollars
            raise LedgerError(
                f"The run in {ledger.path.parent} has used {used:g} {name}; a budget of {limit:g} is less."
            )
        if limit < before:
            raise LedgerError(
                f"The run in {ledger.path.parent} has a budget of {before:g} {name}; it can be raised, not lowered."
            )


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
        autoencoder: TextAutoencoder | None = None,
    ) -> None:
        self._task, self._lm, self._settings, self._ledger = task, lm, settings, ledger
        self._given, self._observer, self._autoencoder = candidates, observer or Silent(), autoencoder
        self._limits = [Spend(*budget.limits()) for budget in budgets(ledger)]
        self._planned = 0

    def execute(self) -> Recommendation:
        """Runs to the end, or continues to it."""
        if self._ledger.facts()["lm_fingerprint"] != self._lm.fingerprint:
            self._observer.warn("the answers so far are by an earlier engine for the same weights; they stand")
        self._warn_if_on_the_floor(())
        candidates = self._search()
        newcomers = self._newcomers(candidates)
        evaluator = build_evaluator(
            self._task, self._settings, self._lm, candidates, self._ledger, self._limits[-1], self._observer.evaluated
        )

        def plan(position: int, state: SelectionState | None) -> int | None:
            return self._plan(candidates, position, state)

        questions = Questions.of(self._ledger.facts())
        loop = Loop(candidates, questions, self._settings, evaluator, plan, newcomers, self._warn_if_on_the_floor)
        course = replace(loop.run(), skipped=why_skipped(self._ledger))
        if not course.choice.counts.any():
            raise BudgetExhausted("The budget was spent on failed attempts; not one evaluation was made.")
        self._look_at_held_out(course, evaluator)
        recommendation = concluded(course, self._ledger, self._settings)
        self._ledger.event("finished", **recommendation.as_dict())
        return recommendation

    # ------------------------------------------------------------------------------------------------------ internals
    @property
    def _held_out(self) -> int:
        """Pairs kept for the last look."""
        questions = Questions.of(self._ledger.facts())
        return len(questions.pairs(self._task, self._settings.holdout, self._settings.seed)[1])

    def _look_at_held_out(self, course: Course, evaluator: Evaluator) -> None:
        """Winner and rival on the held-out pairs, as far as failures have left calls for it."""
        if not self._held_out:
            return
        rival = rival_of(course.choice, course.candidates, self._settings.selection.incumbent)
        self._show("looking at held-out pairs")
        with suppress(BudgetExhausted):
            evaluator.evaluate(looks(course.choice.candidate, rival, self._held_out))

    def _search(self) -> SoftPromptSet:
        if self._ledger.candidates() is None:
            written = self._written()
            self._observer.stage("searching", self._settings.search.candidates)
            made = build_prompt_set(
                self._task,
                self._settings,
                self._lm,
                self._given,
                lambda done, _total: self._observer.advance(done),
                self._autoencoder,
                written,
            )
            made = with_shortfall(made, written, self._settings)
            if made.details.get("shortfall"):
                self._observer.warn(made.details["shortfall"])
            self._ledger.set_candidates(made)
        # As stored, with the digits that are stored, so that a run that is continued sees the same numbers.
        stored = self._ledger.candidates()
        assert stored is not None, "it was stored a moment ago"
        return stored

    def _written(self) -> list[str]:
        if self._settings.search.rewrites:
            self._observer.stage("rewriting the examples", None)
        # Within the budget at the start, even if it was raised before the candidates were there.
        limits = self._limits[0]
        return write_prompts(self._task, self._settings, self._lm, self._ledger, limits, self._given, self._autoencoder)

    def _newcomers(self, candidates: SoftPromptSet) -> Newcomers:
        split = build_split(self._settings)
        if split is None:
            return Nobody()
        explorer = cache(partial(build_explorer, candidates, self._settings, self._lm, split, self._autoencoder))
        if not self._ledger.payloads(SKIPPED):
            self._ledger.event(SKIPPED, skipped=self._obstacle(candidates, explorer))
        skipped = why_skipped(self._ledger)
        if skipped is not None:
            self._observer.warn(f"no refinement: {skipped}")
            return Nobody()
        return Recorded(
            split, self._ledger, explorer, lambda looking: self._show("refining" if looking else "evaluating")
        )

    def _obstacle(self, candidates: SoftPromptSet, explorer: Callable[[], Explorer]) -> str | None:
        """Why this run cannot look beyond its set, or ``None``."""
        if self._given and self._settings.refinement.mode is None:
            return "the prompts to choose from were given"
        if candidates.X is None:
            return "these prompts have no place in the autoencoder's latent space"
        try:
            explorer()
        except SearchError as error:
            return str(error).rstrip(".")
        return None

    def _plan(self, candidates: SoftPromptSet, position: int, state: SelectionState | None) -> int | None:
        """T, by the most an evaluation may need and, once some were made, by what they did need.

        The first two plans share the budget the run was started with; each further one is an extension's.
        """
        if position > len(self._limits):
            return None
        recorded = self._ledger.payloads("planned")
        if position == len(recorded):
            each = self._mean_spend(state) if state is not None else None
            if each is None:
                each = worst_case(self._task, self._settings, self._lm, candidates.prompts)
            limits = self._limits[max(position - 1, 0)] - spent_writing(self._ledger)
            evaluations = planned_evaluations(limits, each) - LOOKED_AT_LAST * self._held_out
            if evaluations < 1:
                raise ConfigError(
                    f"The last look at {self._held_out} held-out pairs takes {LOOKED_AT_LAST * self._held_out} calls, "
                    "and the budget leaves none to choose with. Raise it, or hold fewer pairs out."
                )
            self._ledger.event("planned", evaluations=evaluations)
        else:
            evaluations = int(recorded[position]["evaluations"])
        self._planned = evaluations + LOOKED_AT_LAST * self._held_out
        self._show("evaluating")
        return evaluations

    def _show(self, stage: str) -> None:
        self._observer.stage(stage, self._planned)
        self._observer.advance(sum(entry.final for entry in self._ledger.entries()))

    def _mean_spend(self, state: SelectionState) -> Spend | None:
        """What the evaluations in ``state`` needed on average, by the ledger: the same after a restart."""
        done = set(zip(state.candidates.tolist(), state.replications.tolist(), strict=True))
        used = [e for e in self._ledger.entries() if (e.candidate, e.replication) in done]
        if not used:
            return None
        total = sum((Spend(e.usage.calls, e.usage.tokens, e.cost) for e in used), Spend())
        # An answer that another evaluation had got costs nothing, but is no reason to plan more evaluations than calls.
        return Spend(max(total.calls / len(done), 1.0), total.tokens / len(done), total.dollars / len(done))

    def _warn_if_on_the_floor(self, scores: Sequence[Sequence[float]]) -> None:
        message = floor_warning(self._task, self._lm.name, scores)
        if message:
            self._observer.warn(message)
