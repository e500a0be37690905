"""What is wrong with a settings file, in words: file, line, key, value and what is allowed."""

from __future__ import annotations

import difflib
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, ValidationError

from bestprompt.lm.settings import looks_secret

_NO_KEYS = (
    "a credential does not belong into a file, because settings are recorded. Put it into an environment variable, "
    'OPENAI_API_KEY or one of your own, whose name is the setting: api_key_env = "MY_KEY"'
)


def explain(error: ValidationError, path: Path | None, settings: type[BaseModel]) -> str:
    """All that ``settings`` refuse, a line each."""
    lines = []
    for problem in error.errors():
        location = [str(part) for part in problem["loc"]] or ["settings"]
        key = ".".join(location)
        if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
            if looks_secret(location[-1]):
                lines.append(f"{where(path, location[-1])}unknown key {key!r}; {_NO_KEYS}")
                continue
            valid = _keys_of(location[:-1], settings)
            near = difflib.get_close_matches(location[-1], valid, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"allowed: {', '.join(valid)}"
            lines.append(f"{where(path, location[-1])}unknown key {key!r}; {hint}")
        else:
            said = problem["msg"][0].lower() + problem["msg"][1:]
            shown = "" if problem["type"] in ("secret", "models") else f" = {problem['input']!r}"
            lines.append(f"{where(path, location[-1])}{key}{shown}: {said}")
    return "\n".join(lines)


def _keys_of(location: list[str], settings: type[BaseModel]) -> list[str]:
    """The keys of the table at ``location``: a model's, or a dataclass's."""
    keys: list[str] = [*settings.model_fields, "mode", "task"]
    table: Any = settings
    for part in location:
        annotation = get_type_hints(table).get(part)
        nested = [a for a in (annotation, *get_args(annotation)) if is_dataclass(a) or hasattr(a, "model_fields")]
        if nested:
            table = nested[0]
            keys = [f.name for f in fields(table)] if is_dataclass(table) else list(table.model_fields)
    return keys


def where(path: Path | None, key: str) -> str:
    """``file, line N: `` of the first line that sets or opens ``key``."""
    if path is None:
        return ""
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
        if line.strip().startswith((f"{key} ", f"{key}=", f"[{key}", f'"{key}"')):
            return f"{path}, line {number}: "
    return f"{path}: "
