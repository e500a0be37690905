"""From the body of an answered request to a completion; whatever else a server may say is a failed attempt."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal

from bestprompt.errors import LMError, LMRefused
from bestprompt.lm.failures import REFUSALS, excerpt
from bestprompt.types import Completion, Usage

_MOST_TOKENS = 10**9  # more than any model reads or writes at once


class _Odd(Exception):
    """A reply that is not what the protocol promises; says what it is."""


def read_reply(
    body: bytes,
    api: Literal["chat", "completions"],
    model: str,
    seconds: float,
    uncounted: Callable[[str], Usage],
    scrub: Callable[[str], str],
) -> Completion | LMError:
    """The completion in ``body``, or what is there instead of one.

    Args:
        body: As received, with a status that says that all is well.
        api: Which of the two layouts to expect.
        model: The model's name.
        seconds: What the answer took.
        uncounted: What an answer is charged at whose tokens the server has not counted.
        scrub: Removes the key from a text.
    """
    said = body.decode("utf-8", "replace")
    try:
        reply = _object(said)
        usage = _usage(reply.get("usage"))
        return _completion(_choice(reply), api, model, seconds, usage, uncounted, scrub)
    except _Odd as odd:
        shown = excerpt(said, scrub)
        return LMError(f"{model} answered with {odd}" + (f": {shown}" if shown else "."))


def _object(said: str) -> dict[str, Any]:
    if not said.strip():
        raise _Odd("an empty body")
    try:
        reply = json.loads(said)
    except (ValueError, RecursionError):
        raise _Odd("HTML" if said.lstrip().startswith("<") else "something that is not JSON") from None
    if not isinstance(reply, dict):
        raise _Odd("JSON that is not an object")
    if reply.get("error") is not None and not reply.get("choices"):
        raise _Odd("an error under a status of success")
    return reply


def _choice(reply: dict[str, Any]) -> dict[str, Any]:
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices:
        raise _Odd("no choice")
    if not isinstance(choices[0], dict):
        raise _Odd("a choice that is not an object")
    return choices[0]


def _completion(
    choice: dict[str, Any],
    api: str,
    model: str,
    seconds: float,
    usage: Usage | None,
    uncounted: Callable[[str], Usage],
    scrub: Callable[[str], str],
) -> Completion | LMError:
    finish = choice.get("finish_reason") or "stop"
    message = choice if api == "completions" else choice.get("message")
    if not isinstance(message, dict) or not isinstance(finish, str):
        raise _Odd("a choice without a message")
    refusal = message.get("refusal")
    if finish in REFUSALS or refusal:
        return LMRefused(f"{model} declined to answer: {scrub(str(refusal or 'content filter'))}", usage=usage)
    text = _text(message.get("text" if api == "completions" else "content"))
    return Completion(scrub(text), usage or uncounted(text), seconds, finish)


def _text(content: object) -> str:
    """The answer: a text, or the text parts of a list; a model that wrote nothing may say so with ``null``."""
    if content is None:
        return ""
    parts = content if isinstance(content, list) else [content]
    # Parts of another kind, such as a model's thoughts, are no part of the answer.
    found = [part.get("text") if isinstance(part, dict) else part for part in parts]
    texts = [text for text in found if isinstance(text, str)]
    if (parts and not texts) or any(not isinstance(part, dict | str) for part in parts):
        raise _Odd("content that is not text")
    joined = "".join(texts)
    try:
        joined.encode()
    except UnicodeEncodeError:
        raise _Odd("half a character (a lone surrogate)") from None
    return joined


def _usage(used: object) -> Usage | None:
    """As counted by the server; ``None`` where it counts nothing."""
    if used is None:
        return None
    counts = [used.get(name) for name in ("prompt_tokens", "completion_tokens")] if isinstance(used, dict) else [used]
    if counts and all(count is None for count in counts):
        return None
    if len(counts) != 2 or not all(type(count) is int and 0 <= count <= _MOST_TOKENS for count in counts):
        raise _Odd("a count of tokens that cannot be")
    return Usage(1, *counts)
