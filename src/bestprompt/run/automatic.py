"""What ``auto`` means for one run: where its prompts come from, decided before anything is spent and then recorded.

The examples are always there. Variants of them come from the latent space where every example is a sentence that the
autoencoder holds as a whole, and ideas from a model where the budget allows for judging them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bestprompt.errors import ConfigError
from bestprompt.execution import Spend
from bestprompt.latent import Autoencoder, TextAutoencoder
from bestprompt.lm.several import names_of
from bestprompt.run.given import Given, given_prompts
from bestprompt.run.plan import planned_evaluations, worst_case
from bestprompt.run.settings import Settings, changed, recorded_settings
from bestprompt.search import CandidateSource
from bestprompt.tasks import Task
from bestprompt.types import LanguageModel, SoftPromptSet

# Evaluations that a run needs: for variants, so that each gets some; for ideas, so that one can be told from luck.
FOR_VARIANTS, CALLS_EACH = 200, 5
FOR_IDEAS, PAIRS_FOR_IDEAS = 100, 12


def decided(
    task: Task,
    lm: LanguageModel,
    settings: Settings,
    candidates: Given = (),
    autoencoder: TextAutoencoder | None = None,
) -> Settings:
    """``settings`` with every ``auto`` about where prompts come from replaced by what it means here.

    Raises:
        ConfigError: Ideas are asked for where there can be none.
    """
    source, ideas = settings.search.source, settings.ideas.mode
    obstacle = _obstacle(settings, lm)
    if ideas == "on" and obstacle is not None:
        raise ConfigError(f'ideas.mode = "on" cannot be used here: {obstacle}. Set it to "off", or leave it out.')
    calls = _evaluations(task, lm, settings, candidates)
    changes: dict[str, object] = {}
    if source == "auto":
        fits = calls >= FOR_VARIANTS and _inventable(task, lm, settings, candidates, autoencoder)
        changes["search.source"] = "latent" if fits else "examples"
        if fits:
            changes["search.candidates"] = min(settings.search.candidates, calls // CALLS_EACH)
    if ideas == "auto":
        pairs = len(task.held_out(settings.holdout, settings.seed)[0])
        allowed = obstacle is None and not _given(candidates) and settings.refinement.mode in (None, "default")
        enough = calls >= FOR_IDEAS and pairs >= PAIRS_FOR_IDEAS
        changes["ideas.mode"] = "on" if allowed and enough else "off"
    return changed(settings, changes) if changes else settings


def as_recorded(settings: Settings, facts: Mapping[str, Any]) -> Settings:
    """``settings`` with every ``auto`` as it was decided when the run of ``facts`` began."""
    before = recorded_settings(facts)
    changes: dict[str, object] = {}
    if settings.search.source == "auto":
        changes |= {"search.source": before.search.source, "search.candidates": before.search.candidates}
    if settings.ideas.mode == "auto":
        changes["ideas.mode"] = before.ideas.mode
    return changed(settings, changes)


def in_words(settings: Settings, lm: LanguageModel, writer: LanguageModel | None = None) -> str:
    """Where the prompts of a run come from, once that is decided."""
    parts = ["your prompts"]
    if settings.search.source == "latent":
        parts.append(f"variants of them from the latent space, {settings.search.candidates} prompts in all")
    if settings.refining not in ("off", "psk-ei"):
        parts.append("refinement while the run goes on")
    if settings.has_ideas:
        parts.append(f"ideas that {(writer or lm).name} writes while the run goes on, where a call to one is worth it")
    return "; ".join(parts)


def _obstacle(settings: Settings, lm: LanguageModel) -> str | None:
    """Why no model can write prompts while this run goes on, or ``None``."""
    if settings.selection.mode == "paper":
        return "the published method has no ideas but its own"
    if names_of(lm):
        return "several models are compared, and a new prompt would have to be tried on each"
    if settings.search.demos:
        return "with demonstrations a new prompt would have to be tried with each set of them"
    if settings.refining in ("m-ucb-r", "psk-ei") or settings.refinement.share is not None:
        return f"refinement.mode = {settings.refining!r} has a share of the budget of its own"
    return None


def _given(candidates: Given) -> bool:
    """Whether the caller says what to choose from, so that nothing is to be invented."""
    return isinstance(candidates, SoftPromptSet | CandidateSource) or bool(candidates)


def _evaluations(task: Task, lm: LanguageModel, settings: Settings, candidates: Given) -> int:
    prompts = list(given_prompts(task, settings, candidates))
    try:
        return planned_evaluations(Spend(*settings.budget.limits()), worst_case(task, settings, lm, prompts))
    except ConfigError:  # said in its place, with what to do about it
        return 0


def _inventable(
    task: Task, lm: LanguageModel, settings: Settings, candidates: Given, autoencoder: TextAutoencoder | None
) -> bool:
    if names_of(lm) or _given(candidates) or settings.search.files:
        return False
    prompts = list(given_prompts(task, settings))
    if autoencoder is not None:
        return all(map(autoencoder.fits, prompts))
    shipped = Autoencoder.pretrained()
    known = shipped.lexicon
    return all(shipped.fits(p) and (known is None or not known.unattested(p)) for p in prompts)
