"""Reading the answer out of what a model wrote.

Small models answer in sentences, so a score must find the answer first; and whatever it finds must be something the
model *committed to*, or listing every possibility would win. Each function returns ``None`` when there is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_UNITS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUES = dict(zip(_UNITS + _TEENS, range(1, 20), strict=True)) | dict(zip(_TENS, range(20, 100, 10), strict=True))


def _number_grammar() -> str:
    unit, teen, tens = ("(?:" + "|".join(words) + ")" for words in (_UNITS, _TEENS, _TENS))
    gap, joint = r"(?:\s+|-)", r"(?:\s+|-|\s+and\s+|-and-)"
    below_hundred = rf"(?:{tens}(?:{gap}{unit})?|{teen}|{unit})"
    below_thousand = rf"(?:{unit}{gap}hundred(?:{joint}{below_hundred})?|{below_hundred})"
    below_million = rf"(?:{below_thousand}{gap}thousand(?:,?{joint}{below_thousand})?|{below_thousand})"
    return rf"(?<![\w-])(?:zero|{below_million})(?![\w-])"


_DIGITS = r"(?<![\w.])[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w])"
_NUMBER = re.compile(rf"(?P<digits>{_DIGITS})|(?P<words>{_number_grammar()})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NumberMention:
    """A number found in a text: its value, how it was written, and whether in words."""

    value: float
    text: str
    in_words: bool


def _value_of_words(text: str) -> int:
    total = current = 0
    for word in re.findall(r"[a-z]+", text.lower()):
        if word == "hundred":
            current *= 100
        elif word == "thousand":
            total, current = current * 1000, 0
        else:
            current += _VALUES.get(word, 0)  # "and" and "zero" add nothing
    return total + current


def numbers(text: str) -> list[NumberMention]:
    """Every number below a million in words, or of any size in digits, in order of appearance."""
    mentions = []
    for match in _NUMBER.finditer(text):
        found = match.group()
        if match["words"]:
            mentions.append(NumberMention(_value_of_words(found), found, True))
        else:
            mentions.append(NumberMention(float(found.replace(",", "").replace("−", "-")), found, False))
    return mentions


def last_number(text: str) -> NumberMention | None:
    """The number a text ends with, in digits or words."""
    found = numbers(text)
    return found[-1] if found else None


def options_named(text: str, options: Sequence[str]) -> list[str]:
    """The distinct options a text names as whole words, in order of first mention; plurals in -s count.

    An option inside a longer one (*bear* in *polar bear*) is not a mention of the shorter.
    """
    longest_first = sorted(options, key=len, reverse=True)
    pattern = r"(?<!\w)(" + "|".join(re.escape(option) for option in longest_first) + r")(?:s|es)?(?!\w)"
    canonical = {option.casefold(): option for option in options}
    mentioned = (canonical[match.group(1).casefold()] for match in re.finditer(pattern, text, re.IGNORECASE))
    return list(dict.fromkeys(mentioned))


def single_letter(text: str) -> str | None:
    """The one letter a text names, lower case; ``None`` when it names none or more than one.

    *a* before another word is an article and *I* a pronoun unless nothing else qualifies.
    """
    alone = [m.group() for m in re.finditer(r"(?<![\w'’])[A-Za-z](?![\w'’]*\w)", text)]
    strict = [m.group() for m in re.finditer(r"(?<![\w'’])(?:[b-hj-zB-HJ-Z]|[aAI](?!\s+\w\w))(?![\w'’]*\w)", text)]
    letters = {letter.lower() for letter in (strict or alone)}
    quoted = {m.group(1).lower() for m in re.finditer(r"[\"'‘“*]([A-Za-z])[\"'’”*.,]", text)}
    if len(letters | quoted) > 1:
        return None
    return next(iter(letters | quoted), None)


def first_line(text: str) -> str | None:
    """The first line that is not blank."""
    return next((line.strip() for line in text.splitlines() if line.strip()), None)


def last_line(text: str) -> str | None:
    """The last line that is not blank."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), None)


def quoted(text: str) -> str | None:
    """What stands between the first pair of quotation marks."""
    match = re.search(r"[\"“]([^\"”]+)[\"”]|(?<!\w)['‘]([^'’]+)['’](?!\w)", text)
    return (match.group(1) or match.group(2)) if match else None


def after_colon(text: str) -> str | None:
    """What follows the last colon on its line, as in ``Answer: x``."""
    found = re.findall(r":[ \t]*(\S[^\n]*)", text)
    return found[-1].strip() if found else None


def _last_number_text(text: str) -> str | None:
    mention = last_number(text)
    return mention.text if mention else None


EXTRACTORS: Mapping[str, Callable[[str], str | None]] = {
    "all": lambda text: text,
    "first-line": first_line,
    "last-line": last_line,
    "quoted": quoted,
    "after-colon": after_colon,
    "last-number": _last_number_text,
    "single-letter": single_letter,
}
