"""Reflection: the model sees what the leading prompt got wrong, and writes a better one."""

from __future__ import annotations

from bestprompt.proposals.base import Context, Shown
from bestprompt.types import REFLECTED

LONGEST = 400  # characters of an input or answer; more would cost more than it tells

ASK = """A language model is given the prompt below, followed by an input. Improve the prompt.

PROMPT:
{prompt}

{failed}

{passed}

Find out what the wrong answers have in common and what the prompt leaves open. Then write a better prompt: one that \
holds for all inputs of this kind, in the language of the prompt above. Do not copy inputs or answers into it.{keep} \
Answer with the new prompt only."""


class Reflection:
    """Shows wrong answers of the leader beside the expected ones, and some right answers."""

    name, shows_answers = REFLECTED, True

    def ask(self, context: Context) -> str | None:
        """``None`` where the leader has no wrong answer to learn from."""
        if not context.failed:
            return None
        failed = "\n\n".join(
            f"INPUT: {_cut(each.pair.input)}\nWRONG ANSWER: {_cut(each.answer)}\nEXPECTED: {_expected(each)}"
            for each in context.failed
        )
        passed = "\n\n".join(
            f"INPUT: {_cut(each.pair.input)}\nRIGHT ANSWER: {_cut(each.answer)}" for each in context.passed
        )
        return ASK.format(prompt=context.prompt, failed=failed, passed=passed, keep=keeping(context.prompt))

    def parents(self, context: Context) -> tuple[int, ...]:
        """The leader."""
        return (context.leader,)


def keeping(prompt: str) -> str:
    """A word about what must stay where the prompt has it."""
    return " Keep {input} where the input belongs." if "{input}" in prompt else ""


def _expected(each: Shown) -> str:
    return " or ".join(_cut(right) for right in each.pair.references[:3])


def _cut(text: str) -> str:
    line = text.strip()
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
