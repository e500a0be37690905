"""From what a model replied to the prompt in it, without greetings, labels, fences, quotation marks, explanations."""

from __future__ import annotations

import re

_TAGGED = re.compile(r"<(prompt|instruction|new_prompt|improved_prompt)>\s*(.*?)\s*</\1>", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"\A(`{3,}|~{3,})[^\n]*\n(.*?)\n?\1\s*(?:\n.*)?\Z", re.DOTALL)
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>\s*", re.DOTALL | re.IGNORECASE)
# "Here is the improved prompt:" and the like: a line that speaks of the prompt and ends with a colon.
_ABOUT = r"prompt|instruction|version|rewrite|revision"
_LEAD_IN = re.compile(
    rf"\A(?:(?:sure|certainly|of course|okay|ok|absolutely|great)[,.!]?\s*)?"
    rf"(?:(?:here(?:'s| is| are)|this is|below is|the|a|my|new|improved|revised|rewritten|better|updated|final)\b"
    rf"[^\n:]{{0,80}}\b(?:{_ABOUT})\b[^\n:]{{0,60}}:|(?:{_ABOUT})\s*:)\s*",
    re.IGNORECASE,
)
_GREETING = re.compile(r"\A(?:sure|certainly|of course|absolutely)[,.!]+\s*\n+", re.IGNORECASE)
_BOLD_LABEL = re.compile(
    rf"\A(?:\*\*|#+\s*)[^\n*]{{0,40}}\b(?:{_ABOUT})\b[^\n*]{{0,20}}(?:\*\*)?:?(?:\*\*)?\s*\n+", re.IGNORECASE
)
_AFTERWORD = re.compile(
    rf"\n\s*\n(?:\W*(?:explanation|note|rationale|reasoning|changes|why this works|key changes|"
    rf"this (?:new |improved |revised )?(?:{_ABOUT}))\b"
    rf"|\W*(?:i (?:have |'ve )?(?:changed|made|added|improved|kept|removed)|let me know|feel free|hope this))",
    re.IGNORECASE,
)
_QUOTES = {'"': '"', "“": "”", "'": "'", "«": "»", "„": "“", "‘": "’"}


def read_prompt(reply: str, parent: str) -> str:
    """The prompt that ``reply`` holds, written after ``parent``; empty where it holds none."""
    text = _THOUGHT.sub("", reply).strip()
    if tagged := _TAGGED.search(text):
        return tagged[2].strip()
    text = _unwrapped(text, parent)
    while (shorter := _without_lead_in(text, parent)) != text:
        text = _unwrapped(shorter, parent)
    if after := _AFTERWORD.search(text):
        text = text[: after.start()].strip()
    return _unquoted(_unwrapped(text, parent))


def _unwrapped(text: str, parent: str) -> str:
    """What stands inside a fence around it all; a prompt that begins with a fence of its own keeps it."""
    found = _FENCED.match(text)
    return text if found is None or parent.lstrip().startswith(("```", "~~~")) else found[2].strip()


def _without_lead_in(text: str, parent: str) -> str:
    for pattern in (_GREETING, _BOLD_LABEL, _LEAD_IN):
        found = pattern.match(text)
        # A prompt may itself begin like that, and then the new one may, too.
        if found and text[found.end() :].strip() and not pattern.match(parent):
            return text[found.end() :].strip()
    return text


def _unquoted(text: str) -> str:
    while len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    return text
