"""Pairs as part of a prompt: what the model is shown before it is asked, as plain text that can be pasted."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bestprompt.tasks.spec import DEFAULT_TEMPLATE
from bestprompt.types import Pair

_HEAD = "Examples:"
_BLANK_LINE = re.compile(r"(?:\r?\n[ \t]*){2,}")


def demonstrated(prompt: str, pairs: Sequence[Pair], template: str = DEFAULT_TEMPLATE) -> str:
    """``prompt`` followed by ``pairs``, each framed as ``template`` frames the question that will come.

    Where the prompt says itself where the input goes, the pairs stand before the paragraph that does.
    """
    frame = "" if "{input}" in prompt and template == DEFAULT_TEMPLATE else _frame(template)
    shown = [_shown(pair, frame) for pair in pairs]
    if "{input}" not in prompt:
        # A frame of one's own opens the question itself; the plain one leaves that to the prompt.
        return "\n\n".join([prompt, _HEAD, *shown, *(() if frame else ("Input:",))])
    breaks = [each for each in _BLANK_LINE.finditer(prompt) if each.end() <= prompt.index("{input}")]
    at = breaks[-1].end() if breaks else 0
    return prompt[:at] + "\n\n".join([_HEAD, *shown, prompt[at:]])


def can_be_shown(pair: Pair) -> bool:
    """Whether a pair can stand in a prompt: in one that says ``{input}``, the input of the question would be put."""
    return not any("{input}" in text or "{prompt}" in text for text in (pair.input, pair.reference))


def _frame(template: str) -> str:
    """What a template of the user's own puts around an input, after the prompt; empty if it puts nothing there."""
    rest = template.partition("{prompt}")[2] if "{prompt}" in template else template
    return rest.strip() if "{input}" in rest and rest.strip() != "{input}" else ""


def _shown(pair: Pair, frame: str) -> str:
    if not frame:
        return f"Input: {pair.input}\nOutput: {pair.reference}"
    asked = frame.replace("{input}", pair.input)
    return f"{asked}{' ' if asked.endswith((':', '=', '->', '→')) else chr(10)}{pair.reference}"
