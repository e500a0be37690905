"""What differs between a run as it began and as it is to be continued, in a user's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WORDS = {
    "task": "the name of the task",
    "lm": "the model",
    "lm_fingerprint": "the model",
    "given": "the candidate prompts",
    "candidate_source": "the source of candidate prompts",
}
_PARTS = {
    "pairs": "your data file",
    "examples": "the example prompts",
    "scorer": "the score",
    "frame": "the template, system message, max_tokens or stop texts",
    "splits": "the split of your data",
}


def differences(key: str, recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """The fact ``key``, which is not the same in both, as a user would call it; several if it holds several."""
    then, now = recorded.get(key), wanted[key]
    if key == "task_fingerprint":
        return _of_task(recorded.get("task_parts"), wanted.get("task_parts") or {})
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        return [found for name in {**then, **now} for found in _of_setting(name, then.get(name), now.get(name))]
    return [_WORDS.get(key, key)]


def _of_task(then: Mapping[str, str] | None, now: Mapping[str, str]) -> list[str]:
    if then is None:
        return ["your data file, the example prompts, the score or the template"]
    return [words for part, words in _PARTS.items() if then.get(part) != now.get(part)] or ["the name of the task"]


def _of_setting(name: str, then: Any, now: Any) -> list[str]:
    if then == now:
        return []
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        return [
            found for each in {**then, **now} for found in _of_setting(f"{name}.{each}", then.get(each), now.get(each))
        ]
    return [f"the setting {name} ({then!r} then, {now!r} now)"]
