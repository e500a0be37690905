"""Candidates from outside the set while a run goes on: from its record as long as that lasts, then from who looks.

Every look outside the set is recorded with what it found and what was decided, so a run that is continued, and a
reader without model or autoencoder, take the recorded path instead of looking again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol

from bestprompt.errors import BudgetExhausted
from bestprompt.execution import Questions
from bestprompt.ledger import LOOK, REFINING, Ledger
from bestprompt.refinement import BudgetSplit, Prediction
from bestprompt.run.parts import on_top
from bestprompt.run.settings import Settings
from bestprompt.selection import SelectionState, Selector
from bestprompt.types import REFINED, WRITTEN_SOURCES, NewCandidate, SoftPromptSet

# Written proposals in a row that were refused, after which the writer is taken to be unable to write.
GIVEN_UP = 4
# Evaluations between two looks, at most, where a writer alone is asked: such a look takes no time.
PAUSE = 8


@dataclass(frozen=True, slots=True)
class OutsideLook:
    """One look outside the set, as recorded.

    Attributes:
        at: Evaluations made when it was taken.
        turn: ``"refine"`` when the prompt found became a candidate, else ``"select"``.
        selection_value: Score expected to be gained per call by going on in the set.
        refinement_value: The same for the prompt found; 0 when there was none.
        first: Evaluations the new candidate gets before the selection stage decides about it.
        prompt: What was found, if anything.
        mean: Its predicted mean score.
        std: The uncertainty of that prediction.
        improvement: Its expected improvement.
        candidate: The number it got in the set, if it entered.
        bias: What the errors of earlier looks added to ``mean``.
        inflation: What they widened ``std`` by.
        source: Who proposed the prompt, or was asked to.
        worths: What a call to a proposal of each source was expected to gain, those of its author included.
        refused: Why what was written did not become a candidate.
        barred: Items that the candidate must not be judged by, because it or a prompt it descends from was made with
            them in view.
        spend: Calls, tokens and dollars that went to authors since the look before.
        cost: The evaluations that could have been made for that.
    """

    at: int
    turn: str
    selection_value: float
    refinement_value: float
    first: int = 0
    prompt: str | None = None
    mean: float | None = None
    std: float | None = None
    improvement: float | None = None
    candidate: int | None = None
    bias: float = 0.0
    inflation: float = 1.0
    source: str = REFINED
    worths: Mapping[str, float] = field(default_factory=dict)
    refused: str | None = None
    barred: Sequence[int] = ()
    spend: Sequence[float] = (0.0, 0.0, 0.0)
    cost: int = 0

    def __post_init__(self) -> None:
        for name in ("barred", "spend"):  # a record has lists
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def written(self) -> bool:
        """Whether a model was asked to write."""
        return self.source in WRITTEN_SOURCES

    @property
    def uncorrected(self) -> Prediction | None:
        """What the model predicted of the candidate that entered, before it was corrected."""
        if self.candidate is None or self.mean is None or self.std is None:
            return None
        return Prediction(self.candidate, self.mean - self.bias, self.std / self.inflation)


class OutsideSearch(Protocol):
    """What the loop asks for candidates from outside the set.

    Attributes:
        skipped: Why there is no such search although the settings ask for it; ``None`` if there is, or they do not.
    """

    @property
    def skipped(self) -> str | None: ...

    @property
    def looks(self) -> tuple[OutsideLook, ...]:
        """The looks taken so far."""
        ...

    def selecting_until(self, budget: int) -> int:
        """How many of ``budget`` evaluations selection plans for at first."""
        ...

    def due(self, spent: int, budget: int) -> bool:
        """Whether to look now, after ``spent`` of ``budget`` evaluations."""
        ...

    def due_before_stopping(self, spent: int) -> bool:
        """Whether to look before a run ends, after ``spent`` evaluations, because its set is settled."""
        ...

    def look(self, candidates: SoftPromptSet, selector: Selector, state: SelectionState) -> NewCandidate | None:
        """Looks: a candidate that has to be added, or ``None``.

        Raises:
            BudgetExhausted: The record may only be read, and ends here.
        """
        ...


class NoOutsideSearch:
    """The set stays as it is."""

    def __init__(self, skipped: str | None = None) -> None:
        self.skipped = skipped
        self.looks: tuple[OutsideLook, ...] = ()

    def selecting_until(self, budget: int) -> int:
        """All of them."""
        return budget

    def due(self, spent: int, budget: int) -> bool:
        """Never."""
        return False

    def due_before_stopping(self, spent: int) -> bool:
        """Never."""
        return False

    def look(self, candidates: SoftPromptSet, selector: Selector, state: SelectionState) -> NewCandidate | None:
        """Never asked."""
        return None


class Looks(Protocol):
    """Who looks outside the set."""

    def look(
        self, candidates: SoftPromptSet, selector: Selector, state: SelectionState, past: Sequence[OutsideLook] = ()
    ) -> tuple[OutsideLook, NewCandidate | None]:
        """One look after the looks ``past``, and the candidate it adds, if any."""
        ...


class RecordedOutsideSearch:
    """The looks of a record and, where there is somebody to look, further ones after its end.

    Args:
        split: How the budget is shared.
        ledger: The record.
        explorer: Gives who looks further when the record ends; ``None`` where it may only be read.
        looking: Called with ``True`` before a look that is not in the record, and with ``False`` after it.
        skipped: Why there is no refinement although the settings ask for it.
        refines: Whether the latent space is looked into.
        writes: Whether a model writes prompts.
    """

    def __init__(
        self,
        split: BudgetSplit,
        ledger: Ledger,
        explorer: Callable[[], Looks] | None = None,
        looking: Callable[[bool], None] = lambda _: None,
        *,
        skipped: str | None = None,
        refines: bool = True,
        writes: bool = False,
    ) -> None:
        self.skipped, self._refines, self._writes = skipped, refines, writes
        self._split, self._ledger, self._explorer, self._looking = split, ledger, explorer, looking
        self._recorded = [OutsideLook(**payload) for payload in ledger.payloads(LOOK)]
        self._added = ledger.added_candidates()
        self._taken: list[OutsideLook] = []

    @property
    def looks(self) -> tuple[OutsideLook, ...]:
        """The looks taken so far."""
        return tuple(self._taken)

    def selecting_until(self, budget: int) -> int:
        """As the split says; direct search never selects alone."""
        return 0 if self._split.kind == "direct" else self._split.selecting_until(budget)

    def due(self, spent: int, budget: int) -> bool:
        """As the split says, as long as anybody can find something."""
        if self._writes:  # when the record looked, whatever rule it went by
            if len(self._taken) < len(self._recorded):
                return self._recorded[len(self._taken)].at <= spent
            if self._explorer is None:
                return False
        able = self._refines or self._may_write
        return able and self._split.due(spent, budget, self._taken[-1].at if self._taken else -1)

    def due_before_stopping(self, spent: int) -> bool:
        """As long as a writer may write, and the look before did not say that it is not worth a call."""
        last = self._taken[-1] if self._taken else None
        declined = last is not None and last.at == spent and not last.written and last.candidate is None
        return self._may_write and not declined

    @property
    def _may_write(self) -> bool:
        return self._writes and not given_up(self._taken)

    def look(self, candidates: SoftPromptSet, selector: Selector, state: SelectionState) -> NewCandidate | None:
        """The next look of the record or, after its end, a new one, which is recorded before it counts."""
        position = len(self._taken)
        if position == len(self._recorded):
            self._recorded.append(self._look_further(candidates, selector, state))
        self._taken.append(self._recorded[position])
        entered = sum(look.candidate is not None for look in self._taken)
        return None if self._taken[-1].candidate is None else self._added[entered - 1]

    def _look_further(self, candidates: SoftPromptSet, selector: Selector, state: SelectionState) -> OutsideLook:
        if self._explorer is None:
            raise BudgetExhausted("the record ends here")
        self._looking(True)
        look, new = self._explorer().look(candidates, selector, state, self._taken)
        self._ledger.record_look(asdict(look), new)
        if new is not None:
            self._added.append(new)
        self._looking(False)
        return look


def given_up(looks: Sequence[OutsideLook]) -> bool:
    """Whether the last proposals that a model wrote were all refused, so often that it is not asked again."""
    last = [look for look in looks if look.written][-GIVEN_UP:]
    return len(last) == GIVEN_UP and all(look.refused is not None for look in last)


def build_split(settings: Settings, questions: Questions) -> BudgetSplit | None:
    """How the budget is shared between the set and looks outside it; ``None`` when all of it is selection's."""
    chosen = settings.refinement
    if settings.refining == "off" or (settings.refining == "default" and chosen.share == 0.0):
        return BudgetSplit("rule", pause=PAUSE) if settings.has_ideas else None
    if settings.refining == "default":
        return BudgetSplit("rule") if chosen.share is None else BudgetSplit("share", share=chosen.share)
    if settings.refining == "psk-ei":
        return BudgetSplit("direct")
    return BudgetSplit("on-top" if on_top(settings, questions) else "tail", additional=chosen.additional)


def recorded_search(
    settings: Settings,
    ledger: Ledger,
    explorer: Callable[[], Looks] | None = None,
    looking: Callable[[bool], None] = lambda _: None,
) -> OutsideSearch:
    """The search outside the set as ``settings`` and record have it; ``explorer`` takes looks after the recorded ones.

    Args:
        settings: Of the run.
        ledger: Its record, which says whether the run can refine.
        explorer: Made when it is first needed; ``None`` where the record may only be read.
        looking: Called with ``True`` before a look that is not in the record, and with ``False`` after it.
    """
    split, decided = build_split(settings, Questions.of(ledger.facts())), ledger.payloads(REFINING)
    skipped = decided[-1]["skipped"] if decided else None
    refines, writes = settings.refining != "off" and skipped is None, settings.has_ideas
    if split is None or not (refines or writes):
        return NoOutsideSearch(skipped)
    return RecordedOutsideSearch(split, ledger, explorer, looking, skipped=skipped, refines=refines, writes=writes)
