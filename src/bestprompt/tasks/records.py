"""From one record of a user's file to a pair.

Layouts understood, by their keys:
    ``input`` with ``output``, ``target``, ``reference``, ``references`` or ``ideal``
                                  own files, instruction-induction, BIG-Bench-Hard
    ``messages``                  chat fine-tuning: the last assistant turn is the reference
    ``input`` a list of messages  evals, with ``ideal``
    ``item``                      hosted evals: the columns stand one level deeper
Other keys are kept in ``Pair.meta``. System messages are the instructions of old, not part of the question: they go to
``meta["system"]``, and serve as example prompts where the user gave none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bestprompt.errors import TaskError
from bestprompt.types import Pair, is_text

# The first group that is present is used, so that a column "text" does no harm beside "input".
INPUT_KEYS = (("input",), ("question",), ("text",))
REFERENCE_KEYS = (("output", "target", "reference", "references", "ideal"), ("answer",), ("label",))
_FURTHER_ANSWERS = "other_rhymes"


@dataclass(frozen=True, slots=True)
class Columns:
    """Which keys hold input and reference, where they have names of their own."""

    input: str | None = None
    output: str | None = None


def pair_from(record: Any, columns: Columns = Columns()) -> Pair:
    """The pair a record describes.

    Raises:
        TaskError: Without file and line, which the caller adds.
    """
    if not isinstance(record, Mapping):
        raise TaskError(f"expected an object with input and output, found {_short(record)}")
    if isinstance(record.get("item"), Mapping):
        return pair_from(record["item"], columns)
    if "messages" in record and columns.input is None:
        return _from_chat(record)
    input_key = _only(record, [(columns.input,)] if columns.input else INPUT_KEYS, "input")
    reference_keys = _present(record, [(columns.output,)] if columns.output else REFERENCE_KEYS)
    if not reference_keys:
        wanted = columns.output or "output (or target, reference, references, ideal)"
        raise TaskError(f"no {wanted}; found {_listed(record)}")
    meta = {str(key): value for key, value in record.items() if key not in (input_key, *reference_keys)}
    asked = record[input_key]
    if isinstance(asked, Sequence) and not isinstance(asked, str):
        question, system = _conversation(asked)
        meta |= {"system": system} if system else {}
    else:
        question = _text(asked, input_key)
    references = [text for key in reference_keys for text in _texts(record[key], key)]
    if _FURTHER_ANSWERS in meta:
        references += _texts(meta.pop(_FURTHER_ANSWERS), _FURTHER_ANSWERS)
    if {"small", "large"} <= meta.keys() and "options" not in meta:
        meta["options"] = [str(meta["small"]), str(meta["large"])]
    return Pair(question, tuple(dict.fromkeys(references)), meta)


def _present(record: Mapping[str, Any], groups: Sequence[tuple[str, ...]]) -> list[str]:
    return next((found for group in groups if (found := [key for key in group if key in record])), [])


def _only(record: Mapping[str, Any], groups: Sequence[tuple[str, ...]], what: str) -> str:
    found = _present(record, groups)
    if not found:
        raise TaskError(f"no {groups[0][0] if len(groups) == 1 else what}; found {_listed(record)}")
    return found[0]


def _from_chat(record: Mapping[str, Any]) -> Pair:
    turns = record["messages"]
    if not isinstance(turns, Sequence) or isinstance(turns, str) or not turns:
        raise TaskError("messages must be a list of turns")
    last = turns[-1]
    if not isinstance(last, Mapping) or last.get("role") != "assistant":
        raise TaskError("the last message must be the assistant's: it is the right answer")
    question, system = _conversation(turns[:-1])
    meta = {str(key): value for key, value in record.items() if key != "messages"}
    return Pair(question, tuple(_texts(last.get("content"), "content")), meta | ({"system": system} if system else {}))


def _conversation(turns: Sequence[Any]) -> tuple[str, str]:
    """(question, system message): one user turn as it is, several turns as a transcript."""
    spoken: list[tuple[str, str]] = []
    system: list[str] = []
    for number, turn in enumerate(turns, start=1):
        if not isinstance(turn, Mapping) or turn.get("role") not in ("system", "developer", "user", "assistant"):
            raise TaskError(f"message {number} needs a role (system, user or assistant) and a content")
        content = _text(turn.get("content"), f"content of message {number}")
        if turn["role"] in ("system", "developer"):
            system.append(content)
        else:
            spoken.append((turn["role"], content))
    if not spoken or spoken[-1][0] != "user":
        raise TaskError("there is no user message before the answer")
    if len(spoken) == 1:
        return spoken[0][1], "\n".join(system)
    return "\n".join(f"{role}: {content}" for role, content in spoken), "\n".join(system)


def _text(value: Any, key: str) -> str:
    if isinstance(value, str):
        text = value.strip()
    elif isinstance(value, bool):
        text = json.dumps(value)
    elif isinstance(value, (int, float)):
        text = str(value)
    else:
        raise TaskError(f"{key} must be text, found {_short(value)}")
    if not text:
        raise TaskError(f"{key} is empty")
    if not is_text(text):
        raise TaskError(f"{key} holds half a character (a lone surrogate)")
    return text


def _texts(value: Any, key: str) -> list[str]:
    if isinstance(value, list):
        if not value:
            raise TaskError(f"{key} is an empty list")
        return [_text(item, key) for item in value]
    return [_text(value, key)]


def _listed(record: Mapping[str, Any]) -> str:
    return ", ".join(repr(str(key)) for key in record) or "nothing"


def _short(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
