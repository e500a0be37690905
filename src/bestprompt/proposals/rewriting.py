"""Rewriting and crossover: the model writes the leader in another style, or makes one prompt of the best two.

Neither sees an answer, so every pair may judge what comes of it.
"""

from __future__ import annotations

from bestprompt.proposals.base import Context
from bestprompt.proposals.reflection import keeping
from bestprompt.types import CROSSED, RESTYLED

# In turn, as long as the run asks for more.
STYLES = {
    "shorter": "Write it shorter: leave out every word that does not change what the model should do.",
    "stepwise": "Write it as a short list of steps that the model should follow, the form of the answer last.",
    "format first": "Write it so that it says first what form the answer must have, and then what to do.",
}
RESTYLE = """Below is a prompt for a language model. {style} Keep its meaning and its language.{keep} \
Answer with the new prompt only.

{prompt}"""
CROSS = """Two prompts for the same task are below. Both work well. Write one prompt that has the best of both, in \
their language.{keep} \
Answer with the new prompt only.

FIRST:
{first}

SECOND:
{second}"""


class Restyling:
    """The leader in another style, one style after the other."""

    name, shows_answers = RESTYLED, False

    def ask(self, context: Context) -> str:
        """What the leader says, asked for in the style whose turn it is."""
        style = list(STYLES.values())[context.number % len(STYLES)]
        return RESTYLE.format(style=style, prompt=context.prompt, keep=keeping(context.prompt))

    def parents(self, context: Context) -> tuple[int, ...]:
        """The leader."""
        return (context.leader,)


class Crossover:
    """One prompt of the two best."""

    name, shows_answers = CROSSED, False

    def ask(self, context: Context) -> str | None:
        """``None`` where no second prompt is worded otherwise."""
        if context.second is None:
            return None
        second = context.prompts[context.second]
        return CROSS.format(first=context.prompt, second=second, keep=keeping(context.prompt + second))

    def parents(self, context: Context) -> tuple[int, ...]:
        """The leader and the second."""
        return (context.leader,) if context.second is None else (context.leader, context.second)
