"""The two streams of a terminal and what is safe to print on them. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

output = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


def inert(text: object) -> str:
    """``text`` with its control characters spelt out, so that none of them acts on the terminal."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda found: f"\\x{ord(found[0]):02x}", str(text))


def words(text: object, style: str = "") -> Text:
    """A text from outside: nothing in it is markup, and nothing acts on the terminal."""
    return Text(inert(text), style=style)


def say(text: object, style: str = "") -> None:
    """A line for the person in front of the terminal; never wrapped by us, so that it can be copied."""
    errors.print(words(text, style), soft_wrap=True)


def tell(text: object, style: str = "") -> None:
    """A line of the result, likewise."""
    output.print(words(text, style), soft_wrap=True)


def command(*parts: str | Path) -> str:
    """A command to copy: parts with blanks or other marks are quoted."""
    return " ".join(("bestprompt", *(shlex.quote(str(part)) for part in parts)))


def never_fail_to_print() -> None:
    """What the encoding of the terminal lacks is printed escaped."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def print_json(value: Any) -> None:
    """Machine-readable output, nothing else."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    # JSON leaves these as they are; to a terminal they are commands.
    print(re.sub(r"[\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", text))
