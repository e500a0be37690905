"""Assertions that a pair brings along, as promptfoo checks them: 1 if all hold, else 0.

``pair.meta["assert"]`` is a list of ``{"type": …, "value": …}``. Each type means exactly what it means there, and
``not-`` in front of one turns it round. Types that need a model, a script or a file are refused when they are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from bestprompt.errors import TaskError
from bestprompt.scoring.base import TextScorer
from bestprompt.types import Pair, Scored

# What \s and . mean in JavaScript; with re.ASCII all else that is left means the same in Python.
_SPACE = "\\t\\n\\v\\f\\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_ESCAPES = re.compile(r"\\(?:[dDwWbBnrtfv]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^\w\s])")
_GROUP = re.compile(r"\(\?(?::|=|!|<=|<!)|\((?!\?)")


@dataclass(frozen=True)
class Assertions(TextScorer):
    """1 if all assertions of the pair hold."""

    kind: ClassVar[str] = "assertions"

    def score_one(self, output: str, pair: Pair) -> Scored:
        """All or nothing; the first assertion that fails is what is shown."""
        assertions = pair.meta.get("assert")
        if not isinstance(assertions, Sequence) or not assertions:
            raise TaskError(f"the pair {pair.input[:60]!r} has no assertions, which the score “assertions” needs")
        failed = next((each for each in assertions if not holds(each, output)), None)
        return Scored(float(failed is None), None if failed is None else f"not: {failed['type']}")


def holds(assertion: Mapping[str, Any], output: str) -> bool:
    """Whether an output meets an assertion.

    Raises:
        TaskError: The type is unknown, or the value cannot be used with it.
    """
    checked(assertion)
    kind = str(assertion["type"])
    value, plain = assertion.get("value"), kind.removeprefix("not-")
    return _TYPES[plain](output, value) is not kind.startswith("not-")


def checked(assertion: Any) -> None:
    """Raises ``TaskError`` in words if an assertion cannot be checked here exactly as it is elsewhere."""
    if not isinstance(assertion, Mapping) or not isinstance(assertion.get("type"), str):
        raise TaskError(f"an assertion needs a type, found {assertion!r:.80}")
    kind, value = assertion["type"].removeprefix("not-"), assertion.get("value")
    if kind not in _TYPES:
        raise TaskError(f"assertion {kind!r} has no equal here; there are {', '.join(_TYPES)}, and each with not-")
    if kind == "is-json":
        if value is not None:
            raise TaskError("assertion 'is-json' with a schema has no equal here; without one it has")
        return
    several = kind.endswith(("-all", "-any"))
    parts = value if several and isinstance(value, list) else [value]
    wrong = several and not isinstance(value, list)
    if wrong or not parts or any(not isinstance(part, str | int | float) or isinstance(part, bool) for part in parts):
        wanted = "a list of texts" if several else "a text or number"
        raise TaskError(f"assertion {kind!r} needs {wanted}, found {value!r:.80}")
    if kind == "regex":
        python_pattern(str(value))


@lru_cache(maxsize=1000)
def python_pattern(pattern: str) -> re.Pattern[str]:
    """A JavaScript regular expression (without flags) as Python's.

    Raises:
        TaskError: It holds what does not mean the same here.
    """
    made, place, inside = "", 0, False
    while place < len(pattern):
        rest = pattern[place:]
        if rest[0] == "\\":
            if rest[:2] in ("\\s", "\\S"):
                if inside and rest[1] == "S":
                    raise _unlike(pattern, "\\S in brackets")
                made += _SPACE if inside else f"[{'^' * (rest[1] == 'S')}{_SPACE}]"
                place += 2
                continue
            found = _ESCAPES.match(rest)
            if found is None:
                raise _unlike(pattern, rest[:2])
            piece = found[0]
        elif inside:
            inside, piece = rest[0] != "]", "\\[" if rest[0] == "[" else rest[0]
        elif rest[0] == "(":
            group = _GROUP.match(rest)
            if group is None:
                raise _unlike(pattern, rest[:3])
            piece = group[0]
        else:
            inside = rest[0] == "["
            piece = "[^" if rest.startswith("[^") else rest[0]
            if rest.startswith(("[]", "[^]")):
                raise _unlike(pattern, "empty brackets")
            made += {".": "[^\\n\\r\u2028\u2029]", "$": "\\Z"}.get(piece, piece)
            place += len(piece)
            continue
        made += piece
        place += len(piece)
    try:
        return re.compile(made, re.ASCII)
    except re.error as error:
        raise _unlike(pattern, str(error)) from None


def _unlike(pattern: str, what: str) -> TaskError:
    return TaskError(
        f"the regular expression {pattern!r} does not mean the same here ({what}); write it in other words"
    )


def _is_json(output: str, _value: Any) -> bool:
    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    try:
        json.loads(output, parse_constant=refuse)
    except (ValueError, RecursionError):
        return False
    return True


_TYPES: dict[str, Callable[[str, Any], bool]] = {
    "equals": lambda output, value: output == str(value),
    "contains": lambda output, value: str(value) in output,
    "icontains": lambda output, value: str(value).lower() in output.lower(),
    "contains-all": lambda output, value: all(str(each) in output for each in value),
    "contains-any": lambda output, value: any(str(each) in output for each in value),
    "icontains-all": lambda output, value: all(str(each).lower() in output.lower() for each in value),
    "icontains-any": lambda output, value: any(str(each).lower() in output.lower() for each in value),
    "starts-with": lambda output, value: output.startswith(str(value)),
    "regex": lambda output, value: python_pattern(str(value)).search(output) is not None,
    "is-json": _is_json,
}
