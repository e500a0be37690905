"""What a run may use, and what it can tell apart, before anything is sent."""

from __future__ import annotations

from dataclasses import dataclass

from bestprompt.execution import Spend
from bestprompt.lm.several import names_of
from bestprompt.proposals import Context, Reflection, Shown, request_for
from bestprompt.run.automatic import decided, in_words
from bestprompt.run.demonstrations import longest_shown, parted
from bestprompt.run.given import given_prompts
from bestprompt.run.held_out import calls_on_held_out
from bestprompt.run.ideas import SHOWN
from bestprompt.run.parts import build_questions, on_top, price_of, refuse_unusable
from bestprompt.run.plan import planned_evaluations, worst_case
from bestprompt.run.record import refuse_uncounted, refuse_unpriced
from bestprompt.run.settings import Settings
from bestprompt.run.writing import writing_limits
from bestprompt.search.demonstrations import with_sets
from bestprompt.selection import forecast
from bestprompt.tasks import Task
from bestprompt.types import LanguageModel, Usage


@dataclass(frozen=True, slots=True)
class Preview:
    """The plan of a run by the most its evaluations may need.

    Attributes:
        evaluations: How many there will be at least.
        most: What they and the writing of candidates may use at most.
        candidates: Size of the set.
        pairs: Number of pairs prompts are tried on.
        useful_calls: How many of the evaluations there is something to ask for.
        forecast: What so many evaluations can tell apart, in words.
        sources: Where the prompts come from, in words.
        ideas: Calls that may go to a model that writes prompts while the run goes on; none of them is an evaluation.
        shown: Number of pairs kept aside for demonstrations.
    """

    evaluations: int
    most: Spend
    candidates: int
    pairs: int | None
    useful_calls: int
    forecast: str
    sources: str
    ideas: int
    shown: int = 0


def preview(task: Task, lm: LanguageModel, settings: Settings, writer: LanguageModel | None = None) -> Preview:
    """What a run of ``task`` on ``lm`` with these settings would be planned as; spends nothing.

    Raises:
        ConfigError: If the settings cannot be used together, or the budget does not allow one evaluation.
    """
    settings = decided(task, lm, settings)
    refuse_unusable(settings)
    authors = (writer.name,) if writer is not None and settings.has_ideas else ()
    refuse_unpriced(settings, (*(names_of(lm) or (lm.name,)), *authors))
    refuse_uncounted(task, lm, settings)
    task, shown = parted(task, settings)
    questions = build_questions(task, settings, lm)
    given, limits = given_prompts(task, settings), Spend(*settings.budget.limits())
    limits += Spend(calls=on_top(settings, questions))
    writing = writing_limits(settings, lm, given, limits)
    each = worst_case(task, settings, lm, longest_shown(list(given), task, shown, settings))
    last = calls_on_held_out(len(task.held_out(settings.holdout, settings.seed)[1]))
    evaluations = planned_evaluations(limits - writing, each) - last
    most = writing + Spend(each.calls * evaluations, each.tokens * evaluations, each.dollars * evaluations)
    prompts = len(given) + settings.search.rewrites
    as_given = settings.search.source != "latent" or settings.refining == "psk-ei"
    size = prompts if as_given else max(prompts, settings.search.candidates)
    size = with_sets(size, len(shown), settings.search.demos) * max(len(names_of(lm)), 1)
    seen = forecast(evaluations, size, items=questions.items, repeats=questions.repeats)
    # A prompt that was written meets at least one pair, so half of the calls can be to its author.
    ideas = evaluations // 2 if settings.has_ideas else 0
    more = _largest_idea(task, settings, writer or lm, list(given)) - each if ideas else Spend()
    most += Spend(0.0, ideas * max(more.tokens, 0.0), ideas * max(more.dollars, 0.0))
    sources = in_words(settings, lm, writer)
    return Preview(evaluations, most, size, questions.items, seen.useful, seen.sentence, sources, ideas, len(shown))


def _largest_idea(task: Task, settings: Settings, writer: LanguageModel, prompts: list[str]) -> Spend:
    """The most that one call to the author of prompts may need, as far as the given prompts and pairs show."""
    pairs = sorted(task.held_out(settings.holdout, settings.seed)[0], key=lambda pair: -len(pair.input))[:SHOWN]
    shown = tuple(Shown(n, pair, "x" * 4 * task.max_tokens, 0.0) for n, pair in enumerate(pairs))
    request = request_for(Reflection(), Context([max(prompts, key=len)], 0, None, shown, ()), settings.seed)
    assert request is not None, "there is something to show"
    most = Usage(1, writer.max_prompt_tokens(request), request.max_tokens)
    return Spend.of(most, price_of(settings, writer.name))
