"""Candidates from outside the set while a run goes on: from its record as long as that lasts, then from the refiner.

Every look outside the set is recorded with what it found and what was decided, so a run that is continued, and a
reader without model or autoencoder, take the recorded path instead of looking again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from bestprompt.errors import BudgetExhausted
from bestprompt.execution import Questions
from bestprompt.latent import Autoencoder, TextAutoencoder
from bestprompt.ledger import LOOK, REFINING, Ledger
from bestprompt.refinement import BudgetSplit, Prediction, RefinementStage, Refiner, RefinerConfig
from bestprompt.run.parts import fluency_of, on_top, to_the_letter
from bestprompt.run.settings import Settings
from bestprompt.search.extension import admission, new_candidate, tuned_for, varied_prompts
from bestprompt.search.filters import SIMILARITIES
from bestprompt.search.growth import Rules
from bestprompt.selection import SelectionState, Selector
from bestprompt.types import LanguageModel, NewCandidate, SoftPromptSet


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

    def look(self, candidates: SoftPromptSet, selector: Selector, state: SelectionState) -> NewCandidate | None:
        """Never asked."""
        return None


class Explorer:
    """Looks outside the set with the refiner.

    Args:
        autoencoder: Fine-tuned as it was for the search stage.
        rules: Of acceptance, the search stage's own.
        config: Of the refiner.
        split: How the budget is shared.
    """

    def __init__(self, autoencoder: TextAutoencoder, rules: Rules, config: RefinerConfig, split: BudgetSplit) -> None:
        self._autoencoder, self._rules = autoencoder, rules
        self._stage = RefinementStage(
            Refiner(autoencoder, lambda text, parent: self._accepts(text, parent), config), split
        )
        self._accepts: Callable[[str, int], str] = lambda _text, _parent: "nothing is known yet"

    def look(
        self, candidates: SoftPromptSet, selector: Selector, state: SelectionState, past: Sequence[OutsideLook] = ()
    ) -> tuple[OutsideLook, NewCandidate | None]:
        """One look after the looks ``past``, and the candidate it adds, if any."""
        assert candidates.X is not None, "without latent vectors there is nothing to look for"
        varied = varied_prompts(candidates, self._autoencoder.fits)
        sentences = [each.sentence for each in varied]
        self._accepts = admission(candidates, sentences, self._rules, self._autoencoder)
        predicted = [made for look in past if (made := look.uncorrected) is not None]
        seen = self._stage.look(selector, state, candidates.X, sentences, predicted)
        values = (len(state), seen.turn, seen.selection_value, seen.refinement_value, seen.first)
        found = seen.suggestion
        if found is None:
            return OutsideLook(*values), None
        prompt = varied[found.parent].around(found.text)
        new = new_candidate(candidates, prompt, found.vector, found.parent) if seen.turn == "refine" else None
        number = None if new is None else len(candidates.prompts)
        correction = found.correction.bias, found.correction.inflation
        return OutsideLook(*values, prompt, found.mean, found.std, found.improvement, number, *correction), new


class RecordedOutsideSearch:
    """The looks of a record and, where there is an explorer, further ones after its end.

    Args:
        split: How the budget is shared.
        ledger: The record.
        explorer: Gives what looks further when the record ends; ``None`` where it may only be read.
        looking: Called with ``True`` before a look that is not in the record, and with ``False`` after it.
    """

    def __init__(
        self,
        split: BudgetSplit,
        ledger: Ledger,
        explorer: Callable[[], Explorer] | None = None,
        looking: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self.skipped = None
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
        """As the split says."""
        return self._split.due(spent, budget, self._taken[-1].at if self._taken else -1)

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


def build_split(settings: Settings, questions: Questions) -> BudgetSplit | None:
    """How the budget is shared between selection and refinement; ``None`` when all of it is selection's."""
    chosen = settings.refinement
    if settings.refining == "off" or (settings.refining == "default" and chosen.share == 0.0):
        return None
    if settings.refining == "default":
        return BudgetSplit("rule") if chosen.share is None else BudgetSplit("share", share=chosen.share)
    if settings.refining == "psk-ei":
        return BudgetSplit("direct")
    return BudgetSplit("on-top" if on_top(settings, questions) else "tail", additional=chosen.additional)


def build_explorer(
    candidates: SoftPromptSet,
    settings: Settings,
    questions: Questions,
    lm: LanguageModel,
    split: BudgetSplit,
    autoencoder: TextAutoencoder | None = None,
) -> Explorer:
    """What looks for prompts outside the set.

    Raises:
        SearchError: The autoencoder cannot represent the examples.
    """
    tuned = tuned_for(candidates, autoencoder or Autoencoder.pretrained())
    search = settings.search
    rules = Rules(search.mode, fluency_of(lm), SIMILARITIES[search.similarity], (search.r1, search.r2))
    verbatim = to_the_letter(settings, questions) and split.kind in ("on-top", "direct")
    return Explorer(tuned, rules, refiner_config(settings, questions, verbatim), split)


def refiner_config(settings: Settings, questions: Questions, verbatim: bool = False) -> RefinerConfig:
    """How refinement learns scores from latent vectors and, if it looks, where it looks."""
    chosen = settings.selection.mode, settings.seed, settings.selection.pairing == "common"
    return RefinerConfig(*chosen, edition=questions.edition, verbatim=verbatim)


def recorded_search(
    settings: Settings,
    ledger: Ledger,
    explorer: Callable[[], Explorer] | None = None,
    looking: Callable[[bool], None] = lambda _: None,
) -> OutsideSearch:
    """The search outside the set as ``settings`` and record have it; ``explorer`` takes looks after the recorded ones.

    Args:
        settings: Of the run.
        ledger: Its record, which says whether the run refines.
        explorer: Made when it is first needed; ``None`` where the record may only be read.
        looking: Called with ``True`` before a look that is not in the record, and with ``False`` after it.
    """
    split, decided = build_split(settings, Questions.of(ledger.facts())), ledger.payloads(REFINING)
    skipped = decided[-1]["skipped"] if decided else None
    if split is None or skipped is not None:
        return NoOutsideSearch(skipped)
    return RecordedOutsideSearch(split, ledger, explorer, looking)
