"""The refiner as one who looks outside the set: prompts found in the latent space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from bestprompt.execution import Questions
from bestprompt.latent import Autoencoder, TextAutoencoder
from bestprompt.refinement import BudgetSplit, RefinementStage, Refiner, RefinerConfig
from bestprompt.run.outside import OutsideLook
from bestprompt.run.parts import fluency_of, to_the_letter
from bestprompt.run.settings import Settings
from bestprompt.search.extension import admission, new_candidate, tuned_for, varied_prompts
from bestprompt.search.filters import SIMILARITIES
from bestprompt.search.growth import Rules
from bestprompt.search.placing import with_places
from bestprompt.selection import SelectionState, Selector
from bestprompt.selection.core.state import among
from bestprompt.types import REFINED, LanguageModel, NewCandidate, SoftPromptSet


class Explorer:
    """Looks outside the set with the refiner.

    Args:
        autoencoder: Fine-tuned as it was for the search stage.
        rules: Of acceptance, the search stage's own.
        config: Of the refiner.
        split: How the budget is shared.
    """

    def __init__(self, autoencoder: TextAutoencoder, rules: Rules, config: RefinerConfig, split: BudgetSplit) -> None:
        self.autoencoder, self._rules = autoencoder, rules
        self._stage = RefinementStage(
            Refiner(autoencoder, lambda text, parent: self._accepts(text, parent), config), split
        )
        self._accepts: Callable[[str, int], str] = lambda _text, _parent: "nothing is known yet"

    def look(
        self, candidates: SoftPromptSet, selector: Selector, state: SelectionState, past: Sequence[OutsideLook] = ()
    ) -> tuple[OutsideLook, NewCandidate | None]:
        """One look after the looks ``past``, and the candidate it adds, if any."""
        inside, rows = with_places(candidates)
        assert inside.X is not None, "without latent vectors there is nothing to look for"
        number = {int(row): n for n, row in enumerate(rows)}
        varied = varied_prompts(inside, self.autoencoder.fits)
        sentences = [each.sentence for each in varied]
        self._accepts = admission(inside, sentences, self._rules, self.autoencoder)
        made = [made for look in past if look.source == REFINED and (made := look.uncorrected) is not None]
        predicted = [replace(each, candidate=number[each.candidate]) for each in made]
        placed = None if rows.size == len(candidates.prompts) else among(state, rows)
        seen = self._stage.look(selector, state, inside.X, sentences, predicted, placed)
        values = (len(state), seen.turn, seen.selection_value, seen.refinement_value, seen.first)
        found = seen.suggestion
        if found is None:
            return OutsideLook(*values), None
        prompt, parent = varied[found.parent].around(found.text), int(rows[found.parent])
        new = new_candidate(candidates, prompt, found.vector, parent) if seen.turn == "refine" else None
        entered = None if new is None else len(candidates.prompts)
        correction = found.correction.bias, found.correction.inflation
        look = OutsideLook(*values, prompt, found.mean, found.std, found.improvement, entered, *correction)
        # What its parent must not be judged by, it must not either.
        return replace(look, barred=tuple(sorted(state.rotation.closed_to(parent)))), new


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
