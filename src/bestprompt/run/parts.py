"""From settings to the parts of a run: questions, selector, evaluator, prices, and who judges fluency."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial

import numpy as np

from bestprompt.choices import SelectionMethod, name_of
from bestprompt.errors import ConfigError
from bestprompt.execution import AsynchronousEvaluator, Budget, Evaluator, Price, Prices, Questions, Schedule
from bestprompt.ledger import Entry, Ledger
from bestprompt.lm.abilities import deterministic, weigher
from bestprompt.lm.several import first_of, names_of
from bestprompt.run.settings import Settings
from bestprompt.search.filters import Fluency
from bestprompt.selection import Selector, SelectorConfig
from bestprompt.selection.core.rotation import BLOCK
from bestprompt.tasks import Task
from bestprompt.types import ADDED, LanguageModel, Pair, Request, SoftPromptSet

# Tokens of an input and of an answer, where prices are compared before there are any.
_TYPICAL_INPUT, _TYPICAL_ANSWER = 100, 30
# Sources of prompts that the run itself made.
MADE_HERE = frozenset({"latent", "rewrite", "proposed"}) | ADDED


def fluency_of(lm: LanguageModel) -> Fluency | None:
    """What judges how fluent invented prompts are: the model itself, if it can say how likely a given text is."""
    found = weigher(first_of(lm))
    return found.mean_logprob if found is not None else None


def selector_config(settings: Settings, questions: Questions, evaluations: int) -> SelectorConfig:
    """The settings of a selection with ``evaluations`` evaluations of these ``questions``, whatever the candidates.

    That the set is settled is no reason to stop where prompts outside it are looked for, or in paper mode.
    """
    chosen, items = settings.selection, questions.items
    settles = chosen.mode == "default" and settings.refining == "off" and not questions.from_old_record
    shared = {field.name: getattr(chosen, field.name) for field in fields(SelectionMethod)}
    return SelectorConfig(
        **{**shared, "stop_gain": chosen.stop_gain if settles else None},
        budget=evaluations,
        pairs=chosen.pairing,
        items=items,
        repeats=questions.repeats,
        next_item=questions.next_item,
        units="alike",
        edition=questions.edition,
        repeat_every=repeat_every(settings, questions),
        block=1 if items is None else BLOCK,
        seed=settings.seed,
    )


def to_the_letter(settings: Settings, questions: Questions) -> bool:
    """Whether a run follows the paper, in the edition that keeps to its letter."""
    return settings.selection.mode == "paper" and questions.edition == "second"


def on_top(settings: Settings, questions: Questions) -> int:
    """I, the calls that the paper's M-UCB-r makes on top of the budget; 0 in all other runs."""
    asked = settings.refining == "m-ucb-r" and to_the_letter(settings, questions)
    return settings.refinement.additional if asked else 0


def refuse_unusable(settings: Settings) -> None:
    """Finds out whether a selector can be built and its parts recorded, before anything is paid for.

    Raises:
        ConfigError: If it cannot.
    """
    for part in (settings.selection.surrogate, settings.selection.acquisition, settings.selection.maximizer):
        name_of(part)
    if settings.selection.incumbent_check is not None:
        if settings.selection.incumbent is None:
            raise ConfigError("selection.incumbent_check needs selection.incumbent, which a new prompt is held to")
        if settings.further_models:
            raise ConfigError("selection.incumbent_check compares prompts on one model; check each model by itself")
    one = selector_config(settings, Questions(1, "same-item"), evaluations=1)
    Selector(np.zeros((1, 1)), replace(one, examples=(0,)))


def repeat_every(settings: Settings, questions: Questions) -> int:
    """Of how many evaluations of a prompt the last repeats a question; 0 where it would get the same answer."""
    share = settings.selection.repeat_items
    return round(1.0 / share) if share and questions.repeats != "never" and settings.model.temperature > 0 else 0


def same_answer(settings: Settings, lm: LanguageModel) -> bool:
    """Whether the same question has the same answer: at temperature 0, or from a model that says so of itself."""
    return settings.model.temperature == 0 or deterministic(lm)


def build_questions(task: Task, settings: Settings, lm: LanguageModel) -> Questions:
    """The questions of a new run."""
    chosen_on, _ = task.held_out(settings.holdout, settings.seed)
    return Questions(len(chosen_on), "never" if same_answer(settings, lm) else "same-item")


def build_selector(candidates: SoftPromptSet, questions: Questions, settings: Settings, evaluations: int) -> Selector:
    """The selector for ``evaluations`` evaluations of these candidates."""
    incumbent = settings.selection.incumbent
    config = replace(
        selector_config(settings, questions, evaluations),
        examples=own_prompts(candidates),
        incumbent=candidates.prompts.index(incumbent.strip()) if incumbent else None,
        costs=call_costs(candidates, settings),
    )
    return Selector(candidates.Z, config)


def own_prompts(candidates: SoftPromptSet) -> tuple[int, ...]:
    """The user's own prompts, of which the best is settled first: the examples.

    Where prompts were invented and no example was given, those that they were invented from.
    """
    examples = tuple(n for n, source in enumerate(candidates.sources) if source == "example")
    if examples or "latent" not in candidates.sources:
        return examples
    return tuple(n for n, source in enumerate(candidates.sources) if source not in MADE_HERE)


def call_costs(candidates: SoftPromptSet, settings: Settings) -> tuple[float, ...]:
    """What a call to each candidate costs, as far as that is known before the first: for choosing among equals.

    A longer prompt costs more with every call it will ever be used for. Among models with prices, dollars of a typical
    call decide and length comes second.
    """
    lengths = [float(len(prompt)) for prompt in candidates.prompts]
    if not candidates.models or not any(model in settings.prices for model in candidates.models):
        return tuple(lengths)
    table = [settings.price_of(model) for model in candidates.models]
    return tuple(
        price.input * (_TYPICAL_INPUT + length / 4) + price.output * _TYPICAL_ANSWER + 1e-9 * length
        for price, length in zip(table, lengths, strict=True)
    )


def build_evaluator(
    task: Task,
    settings: Settings,
    lm: LanguageModel,
    candidates: SoftPromptSet,
    ledger: Ledger,
    budget: Budget,
    on_entry: Callable[[Entry], None] | None = None,
) -> Evaluator:
    """The evaluator of a run: draws from the pairs that are chosen on and, at the end, from those held out."""
    questions = Questions.of(ledger.facts())
    chosen_on, last = questions.pairs(task, settings.holdout, settings.seed)
    kind = Evaluator if settings.selection.in_flight is None else AsynchronousEvaluator
    return kind(
        prompts=candidates.prompts,
        pairs=(*chosen_on, *last),
        render=renderer(task, settings),
        lm=lm,
        scorer=task.scorer,
        ledger=ledger,
        budget=budget,
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
        models=candidates.models,
    )


def renderer(task: Task, settings: Settings) -> Callable[[str, Pair, int], Request]:
    """How a prompt, a pair and a sampling seed become a request."""
    sampling = {"temperature": settings.model.temperature, "top_p": settings.model.top_p}
    return partial(_render, task, sampling)


def _render(task: Task, sampling: dict[str, float], prompt: str, pair: Pair, seed: int) -> Request:
    return task.render(prompt, pair, seed=seed, **sampling)


def prices(settings: Settings, lm: LanguageModel) -> Prices:
    """The price table's rows for the answering and the judging model."""
    judge = settings.judge.name if settings.judge and settings.judge.name else first_of(lm).name
    by_name = {name: price_of(settings, name) for name in names_of(lm)}
    return Prices(price_of(settings, first_of(lm).name), price_of(settings, judge), by_name)


def price_of(settings: Settings, name: str) -> Price:
    """What the model of that name charges."""
    found = settings.price_of(name)
    return Price(found.input, found.output)
