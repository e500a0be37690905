"""From settings to the parts of a run: language model, candidate set, selector, evaluator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial

import numpy as np

from bestprompt import lm as models
from bestprompt.choices import SelectionMethod, name_of
from bestprompt.config import ModelSettings, Settings
from bestprompt.errors import ConfigError, SearchError
from bestprompt.execution import Budget, Evaluator, Price, Prices, Questions, Schedule, Spend
from bestprompt.latent import Autoencoder, TextAutoencoder
from bestprompt.ledger import Entry, Ledger
from bestprompt.newcomers import Explorer
from bestprompt.refinement import RefinerConfig, Split
from bestprompt.search import build_candidates, embed_candidates
from bestprompt.search.extension import tuned_for
from bestprompt.search.filters import Fluency
from bestprompt.search.growth import Rules
from bestprompt.selection import Selector, SelectorConfig
from bestprompt.selection.core.rotation import BLOCK
from bestprompt.tasks import Task, read_prompts
from bestprompt.types import Deterministic, LanguageModel, Pair, Request, SoftPromptSet


def build_lm(settings: ModelSettings) -> LanguageModel:
    """The language model that ``settings`` describe."""
    if settings.kind == "embedded":
        return models.embedded(settings.path, threads=settings.threads)
    assert settings.name is not None, "load_settings checks this"
    return models.openai(
        settings.name,
        settings.base_url,
        api=settings.api,
        api_key_env=settings.api_key_env,
        timeout=settings.timeout,
        max_retries=settings.max_retries,
        concurrency=settings.concurrency,
        requests_per_second=settings.requests_per_second,
        tokens_per_second=settings.tokens_per_second,
    )


def given_prompts(task: Task, settings: Settings, candidates: Sequence[str] = ()) -> dict[str, str]:
    """The prompts a run starts from → where each comes from: the incumbent, the task's examples, files and arguments.

    Raises:
        ConfigError: If there is none.
    """
    incumbent = [settings.selection.incumbent] if settings.selection.incumbent else []
    listed = [*(read_prompts(settings.search.file) if settings.search.file else []), *candidates]
    prompts = dict.fromkeys((p.strip() for p in (*incumbent, *task.examples)), "example")
    for prompt in listed:
        prompts.setdefault(prompt.strip(), "file")
    if not prompts:
        raise ConfigError(
            f"Task {task.name} has no example prompts. Add some under [task] examples, or name a [search] file."
        )
    return prompts


def fluency_of(lm: LanguageModel) -> Fluency | None:
    """What judges how fluent invented prompts are: the model itself, if it can say how likely a given text is."""
    return getattr(lm, "mean_logprob", None) if getattr(lm, "weighs_texts", True) else None


def build_prompt_set(
    task: Task,
    settings: Settings,
    lm: LanguageModel,
    candidates: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
    autoencoder: TextAutoencoder | None = None,
    written: Sequence[str] = (),
) -> SoftPromptSet:
    """The candidate set: what is given and ``written`` and, unless ``candidates`` fix it, what is found around it."""
    prompts, search = given_prompts(task, settings, candidates), settings.search
    for prompt in written:
        prompts.setdefault(prompt, "rewrite")
    enough = bool(candidates) or search.candidates <= len(prompts) or settings.refining == "psk-ei"
    if search.source == "examples" or enough:
        given = embed_candidates(list(prompts), sources=list(prompts.values()))
        return given if settings.refining == "off" else _with_latent_vectors(given, autoencoder)
    return build_candidates(
        [prompt for prompt, source in prompts.items() if source == "example"],
        n=search.candidates,
        seed=settings.seed,
        mode=search.mode,
        given={kind: [p for p, source in prompts.items() if source == kind] for kind in ("file", "rewrite")},
        fluency=fluency_of(lm),
        progress=progress,
        autoencoder=autoencoder,
    )


def _with_latent_vectors(given: SoftPromptSet, autoencoder: TextAutoencoder | None) -> SoftPromptSet:
    """``given`` in the latent space, where refinement can move on from it; as it is, if it cannot be put there."""
    try:
        tuned = tuned_for(given, autoencoder or Autoencoder.pretrained())
    except SearchError:
        return given
    return embed_candidates(given.prompts, sources=given.sources, autoencoder=tuned)


def build_split(settings: Settings) -> Split | None:
    """How the budget is shared between selection and refinement; ``None`` when all of it is selection's."""
    chosen = settings.refinement
    if settings.refining == "off" or (settings.refining == "default" and chosen.share == 0.0):
        return None
    if settings.refining == "default":
        return Split("rule") if chosen.share is None else Split("share", share=chosen.share)
    return Split("tail", additional=chosen.additional) if settings.refining == "m-ucb-r" else Split("direct")


def build_explorer(
    candidates: SoftPromptSet,
    settings: Settings,
    lm: LanguageModel,
    split: Split,
    autoencoder: TextAutoencoder | None = None,
) -> Explorer:
    """What looks for prompts outside the set.

    Raises:
        SearchError: The autoencoder cannot represent the examples.
    """
    decoder = tuned_for(candidates, autoencoder or Autoencoder.pretrained())
    rules = Rules.of(settings.search.mode, fluency_of(lm))
    common = settings.selection.pairing == "common"
    return Explorer(decoder, rules, RefinerConfig(settings.selection.mode, settings.seed, common), split)


def selector_config(settings: Settings, questions: Questions, evaluations: int) -> SelectorConfig:
    """The settings of a selection with ``evaluations`` evaluations of these ``questions``, whatever the candidates.

    That the set is settled is no reason to stop where prompts outside it are looked for, or in paper mode.
    """
    chosen, items = settings.selection, questions.items
    settles = chosen.mode == "default" and settings.refining == "off" and not questions.as_before
    shared = {field.name: getattr(chosen, field.name) for field in fields(SelectionMethod)}
    return SelectorConfig(
        **{**shared, "stop_gain": chosen.stop_gain if settles else None},
        budget=evaluations,
        pairs=chosen.pairing,
        items=items,
        repeats=questions.repeats,
        repeat_every=repeat_every(settings, questions),
        block=1 if items is None else BLOCK,
        seed=settings.seed,
    )


def refuse_unusable(settings: Settings) -> None:
    """Finds out whether a selector can be built and its parts recorded, before anything is paid for.

    Raises:
        ConfigError: If it cannot.
    """
    for part in (settings.selection.surrogate, settings.selection.acquisition, settings.selection.maximizer):
        name_of(part)
    one = selector_config(settings, Questions(1, "same-item"), evaluations=1)
    Selector(np.zeros((1, 1)), replace(one, examples=(0,)))


def repeat_every(settings: Settings, questions: Questions) -> int:
    """Of how many evaluations of a prompt the last repeats a question; 0 where it would get the same answer."""
    share = settings.selection.repeat_items
    return round(1.0 / share) if share and questions.repeats != "never" and settings.model.temperature > 0 else 0


def same_answer(settings: Settings, lm: LanguageModel) -> bool:
    """Whether the same question has the same answer: at temperature 0, or from a model that says so of itself."""
    return settings.model.temperature == 0 or (isinstance(lm, Deterministic) and lm.deterministic)


def build_questions(task: Task, settings: Settings, lm: LanguageModel) -> Questions:
    """The questions of a new run."""
    chosen_on, _ = task.held_out(settings.holdout, settings.seed)
    return Questions(len(chosen_on), "never" if same_answer(settings, lm) else "same-item")


def build_selector(candidates: SoftPromptSet, questions: Questions, settings: Settings, evaluations: int) -> Selector:
    """The selector for ``evaluations`` evaluations of these candidates."""
    incumbent = settings.selection.incumbent
    config = replace(
        selector_config(settings, questions, evaluations),
        examples=tuple(n for n, source in enumerate(candidates.sources) if source == "example"),
        incumbent=candidates.prompts.index(incumbent.strip()) if incumbent else None,
        # A longer prompt costs more with every call it will ever be used for.
        costs=tuple(float(len(prompt)) for prompt in candidates.prompts),
    )
    return Selector(candidates.Z, config)


def build_evaluator(
    task: Task,
    settings: Settings,
    lm: LanguageModel,
    candidates: SoftPromptSet,
    ledger: Ledger,
    limits: Spend,
    on_entry: Callable[[Entry], None] | None = None,
) -> Evaluator:
    """The evaluator of a run: draws from the pairs that are chosen on, and at last from those held out."""
    questions = Questions.of(ledger.facts())
    chosen_on, last = questions.pairs(task, settings.holdout, settings.seed)
    return Evaluator(
        prompts=candidates.prompts,
        pairs=(*chosen_on, *last),
        render=renderer(task, settings),
        lm=lm,
        scorer=task.scorer,
        ledger=ledger,
        budget=Budget(limits),
        schedule=Schedule(
            len(chosen_on),
            settings.seed,
            settings.selection.pairing,
            repeat_every(settings, questions),
            questions.repeats,
        ),
        same_answer=questions.repeats == "never",
        prices=prices(settings, lm),
        on_entry=on_entry,
    )


def renderer(task: Task, settings: Settings) -> Callable[[str, Pair, int], Request]:
    """How a prompt, a pair and a sampling seed become a request."""
    sampling = {"temperature": settings.model.temperature, "top_p": settings.model.top_p}
    return partial(_render, task, sampling)


def _render(task: Task, sampling: dict[str, float], prompt: str, pair: Pair, seed: int) -> Request:
    return task.render(prompt, pair, seed=seed, **sampling)


def prices(settings: Settings, lm: LanguageModel) -> Prices:
    """The price table's rows for the answering and the judging model."""
    judge = settings.judge.name if settings.judge and settings.judge.name else lm.name
    answering, judging = settings.price_of(lm.name), settings.price_of(judge)
    return Prices(Price(answering.input, answering.output), Price(judging.input, judging.output))


def worst_case(task: Task, settings: Settings, lm: LanguageModel, prompts: Sequence[str]) -> Spend:
    """The most that one evaluation may need, over a sample of pairs and the given prompts."""
    pairs = task.held_out(settings.holdout, settings.seed)[0][:20]
    render, table = renderer(task, settings), prices(settings, lm)
    worst = Spend()
    for pair in pairs:
        judging = Spend.of(task.scorer.max_usage(pair, task.max_tokens), table.judge)
        request = render(max(prompts, key=len), pair, 0)
        tokens = lm.max_prompt_tokens(request)
        dollars = (table.model.input * tokens + table.model.output * request.max_tokens) / 1e6
        one = Spend(1, tokens + request.max_tokens, dollars) + judging
        worst = Spend(max(worst.calls, one.calls), max(worst.tokens, one.tokens), max(worst.dollars, one.dollars))
    return worst


def planned_evaluations(limits: Spend, each: Spend) -> int:
    """T: how many evaluations the tightest of ``limits`` allows if each needs ``each``.

    Only the selector's plan depends on this; the budget itself is enforced call by call.
    """
    ratios = [
        getattr(limits, name) / getattr(each, name)
        for name in ("calls", "tokens", "dollars")
        if math.isfinite(getattr(limits, name)) and getattr(each, name) > 0
    ]
    if not ratios:
        raise ConfigError("The budget has no limit that this model's price table can reach. Set budget.calls.")
    if min(ratios) < 1:
        raise ConfigError(
            f"The budget does not allow one evaluation: it may need {each.calls:g} calls, {each.tokens:g} tokens "
            f"and {each.dollars:.4g} dollars."
        )
    return int(min(ratios))
