"""Candidates that the language model of a run writes itself, within the run's budget and on its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bestprompt.errors import ConfigError, SearchError
from bestprompt.execution import Budget, Spend, Writer
from bestprompt.latent import Autoencoder, TextAutoencoder
from bestprompt.latent.sentences import varied_sentence
from bestprompt.ledger import Ledger
from bestprompt.run.given import Given, given_prompts
from bestprompt.run.parts import prices
from bestprompt.run.plan import planned_evaluations, worst_case
from bestprompt.run.settings import Settings
from bestprompt.search import rewrite
from bestprompt.search.rewrite import CALLS_EACH, largest_call
from bestprompt.tasks import Task
from bestprompt.types import LanguageModel


def write_prompts(
    task: Task,
    settings: Settings,
    lm: LanguageModel,
    ledger: Ledger,
    limits: Spend,
    candidates: Given = (),
    autoencoder: TextAutoencoder | None = None,
) -> list[str]:
    """The variants of the examples that ``lm`` writes: ``search.rewrites`` of them, or fewer.

    Every answer is recorded in ``ledger`` as it comes; those it holds are not asked for again.

    Raises:
        ConfigError: If ``limits`` do not allow that and one evaluation more; before anything is spent.
    """
    if not settings.search.rewrites:
        return []
    prompts = given_prompts(task, settings, candidates)
    most = writing_limits(settings, lm, prompts, limits)
    planned_evaluations(limits - most, worst_case(task, settings, lm, list(prompts)))
    writer = Writer(lm, ledger, Budget(most), prices(settings, lm).model)
    accepts = _place_finder(prompts, settings, autoencoder)
    return rewrite(writer, _starts(prompts), settings.search.rewrites, settings.seed, accepts)[0]


def writing_limits(settings: Settings, lm: LanguageModel, prompts: Mapping[str, str], limits: Spend) -> Spend:
    """The most that writing may use: every call it may make at its largest, but half of ``limits`` at most.

    Args:
        settings: Of the run.
        lm: The model that writes.
        prompts: What is given → where it comes from.
        limits: Of the run.

    Raises:
        ConfigError: If that half may not do for as many calls as there are prompts to be written.
    """
    wanted = settings.search.rewrites
    if not wanted:
        return Spend()
    each = Spend.of(largest_call(lm, _starts(prompts)), prices(settings, lm).model)
    shares = {}
    for name in ("calls", "tokens", "dollars"):
        one, limit = getattr(each, name), getattr(limits, name)
        if 2 * wanted * one > limit:
            raise ConfigError(
                f"search.rewrites = {wanted} may need {wanted * one:g} {name}; at most half of the budget of "
                f"{limit:g} {name} goes to writing candidates. Ask for fewer, or raise budget.{name}."
            )
        shares[name] = min(CALLS_EACH * wanted * one, limit / 2)
    return Spend(**shares)


def _starts(prompts: Mapping[str, str]) -> list[str]:
    """What variants are written of: the examples or, where there are none, what was given instead."""
    return [prompt for prompt, source in prompts.items() if source == "example"] or list(prompts)


def _place_finder(
    prompts: Mapping[str, str], settings: Settings, autoencoder: TextAutoencoder | None
) -> Callable[[str], bool]:
    """Whether a written prompt can join ``prompts``: where those move in the latent space, it needs a place of its own.

    Raises:
        SearchError: The given prompts have none themselves; before anything is spent on further ones.
    """
    if settings.search.source != "latent" and settings.refining == "off":
        return lambda text: True
    fits = (autoencoder or Autoencoder.pretrained()).fits
    try:
        taken = {varied_sentence(prompt, fits)[1] for prompt in prompts}
    except SearchError:
        if settings.search.source == "latent":
            raise
        return lambda text: True  # refinement will be skipped, whatever is written

    def has_place(text: str) -> bool:
        try:
            return varied_sentence(text, fits)[1] not in taken
        except SearchError:
            return False

    return has_place
