"""One proposal: ask, read the reply, refuse what is none."""

from __future__ import annotations

from bestprompt.errors import BudgetExhausted, LMError
from bestprompt.proposals.base import Context, Refused, Source, Written
from bestprompt.proposals.reading import read_prompt
from bestprompt.proposals.refusal import refusal
from bestprompt.rng import integer
from bestprompt.types import LanguageModel, Message, Request

TEMPERATURE, TOP_P = 0.7, 0.95
FEWEST_TOKENS, MOST_TOKENS = 160, 2000


def request_for(source: Source, context: Context, seed: int) -> Request | None:
    """What ``source`` would ask a model now; ``None`` where it has nothing to go by."""
    ask = source.ask(context)
    if ask is None:
        return None
    # A token is some three letters; room for a prompt that grows by half.
    room = min(FEWEST_TOKENS + len(context.prompt) // 2, MOST_TOKENS)
    chance = integer(seed, "idea", source.name, context.number)
    return Request((Message("user", ask),), max_tokens=room, temperature=TEMPERATURE, top_p=TOP_P, seed=chance)


def propose(source: Source, context: Context, writer: LanguageModel, seed: int) -> Written | Refused:
    """A prompt by ``source``, or why there is none. A failure of the writer is no failure of the run."""
    request = request_for(source, context, seed)
    if request is None:
        return Refused("there was nothing to go by")
    try:
        (answer,) = writer.complete([request])
    except BudgetExhausted:
        return Refused("the budget has no room for it")
    except LMError as error:
        return Refused(f"the writer failed: {error}")
    if isinstance(answer, LMError):
        return Refused(f"the writer failed: {answer}")
    if answer.usage.completion_tokens >= request.max_tokens:
        return Refused(f"it was cut off after {request.max_tokens} tokens")
    text = read_prompt(answer.text, context.prompt)
    if (reason := refusal(text, request.messages[0].content, context)) is not None:
        return Refused(reason)
    items = frozenset(each.item for each in context.shown) if source.shows_answers else frozenset()
    return Written(text, source.parents(context), items)
