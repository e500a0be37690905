"""Texts of prompts and models on a page: all of a text is shown, and nothing in it acts."""

from __future__ import annotations

import json
import re
from typing import Any

# Control characters, half characters, and what turns the direction of writing: each could show what is not there.
_ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def visible(text: object) -> str:
    """``text`` with what would act on a reader's screen or terminal spelt out."""
    lines = str(text).replace("\r\n", "\n")
    return _ACTING.sub(lambda found: f"\\x{c:02x}" if (c := ord(found[0])) < 256 else f"\\u{c:04x}", lines)


def shortened(text: object, most: int) -> str:
    """The beginning of ``text``, and how much is left out."""
    whole = visible(text)
    if len(whole) <= most:
        return whole
    return f"{whole[:most]}… ({len(whole) - most:,} more characters)"


def one_line(text: object, most: int = 90) -> str:
    """``text`` in a line of at most ``most`` characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def inline_json(value: Any) -> str:
    """JSON that may stand inside a script element: nothing in it ends the element, opens a comment or ends a line."""
    text = json.dumps(value, separators=(",", ":"))  # ASCII, so U+2028 is escaped already
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
