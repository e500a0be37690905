"""Where candidates come from while a run goes on: from its record as long as that lasts, then from the refiner.

Every look outside the set is recorded with what it found and what was decided, so a run that is continued, and a
reader without model or decoder, take the recorded path instead of looking again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Protocol

from bestprompt.errors import BudgetExhausted
from bestprompt.latent import TextAutoencoder
from bestprompt.ledger import LOOK, Ledger
from bestprompt.refinement import Refiner, RefinerConfig, Split, Stage
from bestprompt.search.extension import admission, frames, newcomer
from bestprompt.search.growth import Rules
from bestprompt.selection import SelectionState, Selector
from bestprompt.types import Newcomer, SoftPromptSet


@dataclass(frozen=True, slots=True)
class Look:
    """One look outside the set, as recorded.

    Attributes:
        at: Evaluations made when it was taken.
        turn: ``"refine"`` when the prompt found became a candidate, else ``"select"``.
        selection_value: Score expected to be gained per call by going on in the set.
        refinement_value: The same for the prompt found; 0 when there was none.
        first: Evaluations the new candidate gets before the selection stage decides about it.
        prompt: What was found, if anything.
        mean: Its predicted mean score.
        std: The uncertainty of that prediction, σ̂(X).
        improvement: Its expected improvement.
        candidate: The number it got in the set, if it entered.
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


SKIPPED = "refinement"  # the kind of event that says whether a run that should refine can


def why_skipped(ledger: Ledger) -> str | None:
    """Why the run in ``ledger`` does not refine although its settings say so; ``None`` if it does."""
    decided = ledger.payloads(SKIPPED)
    return decided[-1]["skipped"] if decided else None


class Newcomers(Protocol):
    """What the loop asks for new candidates."""

    @property
    def looks(self) -> tuple[Look, ...]:
        """The looks taken so far."""
        ...

    def selecting_until(self, budget: int) -> int:
        """How many of ``budget`` evaluations selection plans for at first."""
        ...

    def due(self, spent: int, budget: int) -> bool:
        """Whether to look now, after ``spent`` of ``budget`` evaluations."""
        ...

    def look(self, candidates: SoftPromptSet, selector: Selector, state: SelectionState) -> Newcomer | None:
        """Looks: a candidate that has to be added, or ``None``.

        Raises:
            BudgetExhausted: The record may only be read, and ends here.
        """
        ...


class Nobody:
    """No newcomers: the set stays as it is."""

    looks: tuple[Look, ...] = ()

    def selecting_until(self, budget: int) -> int:
        """All of them."""
        return budget

    def due(self, spent: int, budget: int) -> bool:
        """Never."""
        return False

    def look(self, candidates: SoftPromptSet, selector: Selector, state: SelectionState) -> Newcomer | None:
        """Nobody."""
        return None


class Explorer:
    """Looks outside the set with the refiner.

    Args:
        decoder: The autoencoder, fine-tuned as it was for the search stage.
        rules: Of acceptance, the search stage's own.
        config: Of the refiner.
        split: How the budget is shared.
    """

    def __init__(self, decoder: TextAutoencoder, rules: Rules, config: RefinerConfig, split: Split) -> None:
        self._decoder, self._rules = decoder, rules
        self._stage = Stage(Refiner(decoder, lambda text, parent: self._accepts(text, parent), config), split)
        self._accepts: Callable[[str, int], str] = lambda _text, _parent: "nothing is known yet"

    def look(
        self, candidates: SoftPromptSet, selector: Selector, state: SelectionState
    ) -> tuple[Look, Newcomer | None]:
        """One look, and the candidate it adds, if any."""
        assert candidates.X is not None, "without latent vectors there is nothing to look for"
        framed = frames(candidates, self._decoder.fits)
        sentences = [frame.sentence for frame in framed]
        self._accepts = admission(candidates, sentences, self._rules, self._decoder)
        seen = self._stage.look(selector, state, candidates.X, sentences)
        values = (len(state), seen.turn, seen.selection_value, seen.refinement_value, seen.looks)
        found = seen.suggestion
        if found is None:
            return Look(*values), None
        prompt = framed[found.parent].around(found.text)
        new = newcomer(candidates, prompt, found.vector, found.parent) if seen.turn == "refine" else None
        number = None if new is None else len(candidates.prompts)
        return Look(*values, prompt, found.mean, found.std, found.improvement, number), new


class Recorded:
    """The looks of a record.

    Args:
        split: How the budget is shared.
        ledger: The record.
        explorer: Gives what looks further when the record ends; ``None`` where it may only be read.
        looking: Called with ``True`` before a look that is not in the record, and with ``False`` after it.
    """

    def __init__(
        self,
        split: Split,
        ledger: Ledger,
        explorer: Callable[[], Explorer] | None = None,
        looking: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._split, self._ledger, self._explorer, self._looking = split, ledger, explorer, looking
        self._recorded = [Look(**payload) for payload in ledger.payloads(LOOK)]
        self._newcomers = ledger.newcomers()
        self._taken: list[Look] = []

    @property
    def looks(self) -> tuple[Look, ...]:
        """The looks taken so far."""
        return tuple(self._taken)

    def selecting_until(self, budget: int) -> int:
        """As the split says; direct search never selects alone."""
        return 0 if self._split.kind == "direct" else self._split.selecting_until(budget)

    def due(self, spent: int, budget: int) -> bool:
        """As the split says."""
        return self._split.due(spent, budget, self._taken[-1].at if self._taken else -1)

    def look(self, candidates: SoftPromptSet, selector: Selector, state: SelectionState) -> Newcomer | None:
        """The next look of the record or, after its end, a new one, which is recorded before it counts."""
        position = len(self._taken)
        if position == len(self._recorded):
            self._recorded.append(self._look_further(candidates, selector, state))
        self._taken.append(self._recorded[position])
        entered = sum(look.candidate is not None for look in self._taken)
        return None if self._taken[-1].candidate is None else self._newcomers[entered - 1]

    def _look_further(self, candidates: SoftPromptSet, selector: Selector, state: SelectionState) -> Look:
        if self._explorer is None:
            raise BudgetExhausted("the record ends here")
        self._looking(True)
        look, new = self._explorer().look(candidates, selector, state)
        self._ledger.look(asdict(look), new)
        if new is not None:
            self._newcomers.append(new)
        self._looking(False)
        return look
