"""A run that spends: from a task and a model, new or continued; what the record holds is never paid for again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import cache, partial

from bestprompt.errors import BudgetExhausted, LedgerError, LMError, NothingScored, SearchError
from bestprompt.execution import Budget, Questions, Writer
from bestprompt.latent import TextAutoencoder
from bestprompt.ledger import FINISHED, PAUSED, PLANNED, REFINING, TURNED_AWAY, Entry, Ledger
from bestprompt.lm.abilities import patience
from bestprompt.run.demonstrations import parted
from bestprompt.run.explorer import Explorer, build_explorer
from bestprompt.run.given import Given
from bestprompt.run.held_out import calls_on_held_out, last_proposals, rival_of
from bestprompt.run.ideas import EvaluationCosts, Ideas
from bestprompt.run.observer import EvaluationProgress, Narrator, Observer, Silent
from bestprompt.run.outside import Looks, OutsideSearch, build_split, recorded_search
from bestprompt.run.pace import Evaluations
from bestprompt.run.parts import build_evaluator, price_of
from bestprompt.run.pilot import PilotObserver, likely_cause, read_answers
from bestprompt.run.plan import Estimator, Plan
from bestprompt.run.record import limits
from bestprompt.run.result import LoopResult, Recommendation
from bestprompt.run.search import search
from bestprompt.run.settings import Settings
from bestprompt.run.walk import walk
from bestprompt.tasks import Task, floor_warning
from bestprompt.types import LanguageModel, SoftPromptSet


class Run:
    """One run over an open ledger, and the parts it is made of.

    Args:
        task: The task.
        lm: The language model.
        settings: Of the run.
        ledger: Its record, new or to be continued.
        candidates: What the caller gives to choose from.
        observer: Is told how the run goes.
        autoencoder: The shipped one if left out.
        writer: The model that writes prompts while the run goes on; the one that answers if left out.
    """

    def __init__(
        self,
        task: Task,
        lm: LanguageModel,
        settings: Settings,
        ledger: Ledger,
        candidates: Given = (),
        observer: Observer | None = None,
        autoencoder: TextAutoencoder | None = None,
        writer: LanguageModel | None = None,
    ) -> None:
        self.settings, self.ledger = settings, ledger
        # From here on nobody sees the pairs that are shown as demonstrations as pairs that judge.
        task, self._shown = parted(task, settings)
        self._writer = writer if writer is not None else lm
        self._task, self._lm, self._given, self._autoencoder = task, lm, candidates, autoencoder
        self._observer = Narrator(observer or Silent())
        self._watcher: PilotObserver | None = observer if isinstance(observer, PilotObserver) else None
        self._budgets = limits(ledger)
        self._budget = Budget(self._budgets[-1])
        self._questions = Questions.of(ledger.facts())
        self._pairs = self._questions.pairs(task, settings.holdout, settings.seed)
        self._held_out = len(self._pairs[1])
        self._progress = EvaluationProgress(self._observer, ledger, calls_on_held_out(self._held_out))

    def execute(self) -> Recommendation:
        """Runs to the end, or continues to it."""
        if self.ledger.facts()["lm_fingerprint"] != self._lm.fingerprint:
            self._observer.warn("the answers so far are by an earlier engine for the same weights; they stand")
        self.ledger.set_pairs([pair for part in self._pairs for pair in part])
        self._warn_if_on_the_floor(())
        self._warn_if_places_are_few()
        with ExitStack() as listening:
            found = (patience(self._lm), patience(self._task.scorer), patience(self._writer))
            for waits in {each for each in found if each is not None}:
                listening.enter_context(waits.heard_by(self._turned_away))
            recommendation = walk(self)
        try:
            self.ledger.event(FINISHED, **recommendation.as_dict())
        except LedgerError as error:  # the money is spent: what it bought is shown all the same
            self._observer.warn(f"the end of the run is not on record. {error}")
        return recommendation

    # ---------------------------------------------------------------------------------------------- parts of the walk
    def candidates(self) -> SoftPromptSet:
        """Searched for, or as stored."""
        return search(
            self._task,
            self.settings,
            self._lm,
            self.ledger,
            limits(self.ledger)[0],
            self._given,
            self._observer,
            self._autoencoder,
            self._shown,
        )

    def outside_search(self, candidates: SoftPromptSet) -> OutsideSearch:
        """The record's looks first, then new ones; the refiner takes no part where it is off or has an obstacle."""
        split = build_split(self.settings, self._questions)
        if split is None:
            return recorded_search(self.settings, self.ledger)
        parts = (candidates, self.settings, self._questions, self._lm, split, self._autoencoder)
        explorer = cache(partial(build_explorer, *parts))
        if self.settings.refining != "off" and not self.ledger.payloads(REFINING):
            self.ledger.event(REFINING, skipped=self._obstacle(candidates, explorer))
        looks: Callable[[], Looks] = cache(partial(self._ideas, explorer)) if self.settings.has_ideas else explorer
        found = recorded_search(self.settings, self.ledger, looks, self._looking)
        if found.skipped is not None:
            self._observer.warn(f"no refinement: {found.skipped}")
        return found

    def evaluations(self, candidates: SoftPromptSet) -> Evaluations:
        """The model's answers and their scores, within the latest budget."""
        return build_evaluator(
            self._task, self.settings, self._lm, candidates, self.ledger, self._budget, self._evaluated
        )

    def plan(self, candidates: SoftPromptSet) -> Plan:
        """As recorded, then by what evaluations need."""
        estimate = Estimator(self._task, self.settings, self._lm, candidates.prompts, self.ledger, self._held_out)
        items, ends = self._questions.items, self._questions.repeats == "never" and not self._grows
        most = len(candidates.prompts) * items if ends and items is not None else math.inf
        # A budget may allow more than there is to ask.
        return Plan.live(self.ledger, estimate, lambda planned: self._progress.planned(int(min(planned, most))))

    def after_pilot(self, scores: Sequence[Sequence[float]]) -> None:
        """Shows a few answers, and stops a run in which all of them scored 0 before more is spent.

        Raises:
            NothingScored: If they did and nobody wants to go on; the run can be continued all the same.
        """
        entries = list(self.ledger.entries())
        pairs = [pair for part in self._pairs for pair in part]
        made, seen = sum(map(len, scores)), sum(entry.final for entry in entries)
        # A run that is continued has gone on from here before; what is in flight may have come back meanwhile.
        went_on = seen > made + (self.settings.selection.in_flight or 0)
        stored = self.ledger.candidates()
        if self._watcher is not None and stored is not None and not went_on:
            self._watcher.pilot(read_answers(entries, pairs, stored.prompts))
        self._warn_if_on_the_floor(scores)
        all_zero = made > 0 and not any(map(any, scores))
        left = self.ledger.payloads(PLANNED)[-1]["evaluations"] > seen
        # A run that has gone on before, or is continued after it was stopped here, was meant to.
        if not all_zero or not left or went_on or self.ledger.payloads(PAUSED):
            return
        why = likely_cause(entries, pairs, self._task)
        if self.settings.all_zero == "continue":
            self._observer.warn(why)
        elif self._watcher is None or not self._watcher.goes_on(why):
            self.ledger.event(PAUSED, why=why)
            raise NothingScored(f"All {made} answers so far scored 0, so the run stopped. {why}")

    def after_loop(self, result: LoopResult, evaluations: Evaluations) -> LoopResult:
        """Winner and rival on the held-out pairs, as far as failures have left calls for it."""
        if not result.choice.counts.any():
            raise BudgetExhausted("The budget was spent on failed attempts; not one evaluation was made.")
        if self._held_out:
            rival = rival_of(result.choice, result.candidates, self.settings.selection.incumbent)
            self._progress.show("looking at held-out pairs")
            with suppress(BudgetExhausted):
                evaluations.evaluate(last_proposals(result.choice.candidate, rival, self._held_out))
        return result

    # ------------------------------------------------------------------------------------------------------ internals
    @property
    def _grows(self) -> bool:
        return self.settings.refining != "off" or self.settings.has_ideas

    def _ideas(self, explorer: Callable[[], Explorer]) -> Ideas:
        """Who writes, beside the refiner where that has no obstacle."""
        decided = self.ledger.payloads(REFINING)
        refines = bool(decided) and decided[-1]["skipped"] is None
        price = price_of(self.settings, self._writer.name)
        writer = Writer(self._writer, self.ledger, self._budget, price, idea=True)
        costs = EvaluationCosts(self.ledger, self._budgets[-1])
        pairs = [pair for part in self._pairs for pair in part]
        return Ideas(writer, price, self.ledger, pairs, costs, self.settings.seed, explorer() if refines else None)

    def _obstacle(self, candidates: SoftPromptSet, explorer: Callable[[], Explorer]) -> str | None:
        """Why this run cannot look beyond its set, or ``None``."""
        if candidates.models:
            return "several models are compared"
        if self._shown:
            return "demonstrations are chosen along with the prompt"
        if self._given and self.settings.refinement.mode is None:
            return "the prompts to choose from were given"
        if candidates.X is None:
            return "these prompts have no place in the autoencoder's latent space"
        try:
            explorer()
        except SearchError as error:
            return str(error).rstrip(".")
        return None

    def _evaluated(self, entry: Entry) -> None:
        self._observer.goes_on()
        self._observer.evaluated(entry)

    def _turned_away(self, error: LMError, seconds: float | None) -> None:
        self.ledger.event(TURNED_AWAY, error=str(error), wait=seconds)
        if seconds is not None:
            self._observer.waits(str(error), seconds)

    def _looking(self, outside: bool) -> None:
        self._progress.show("refining" if outside else "evaluating")

    def _warn_if_places_are_few(self) -> None:
        asked, places = self.settings.selection.in_flight or 0, self._lm.concurrency * self._lm.batch_size
        if asked > places:
            self._observer.warn(
                f"{asked} evaluations are kept in flight, but {self._lm.name} takes {places} requests at a time. Raise "
                "model.concurrency if it can answer more."
            )

    def _warn_if_on_the_floor(self, scores: Sequence[Sequence[float]]) -> None:
        message = floor_warning(self._task, self._lm.name, scores)
        if message:
            self._observer.warn(message)
