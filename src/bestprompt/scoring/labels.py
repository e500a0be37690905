"""Which label an answer commits to, where the data have a fixed set of them: *positive*, *negative*; *spam*, *ham*.

Models answer in sentences ("The sentiment is positive."), so a label counts wherever it stands, as a whole word. An
answer that names several commits to none, unless it opens with one or marks one as its answer; a label that is denied
("not positive") or set aside ("rather than negative") is not named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bestprompt.errors import ConfigError
from bestprompt.scoring.base import TextScorer
from bestprompt.types import Pair, Scored

# What may stand between a denial and what it denies: "not at all a very positive review".
_BETWEEN = (
    r"(?:\s+(?:a|an|the|any|at|all|really|very|clearly|exactly|necessarily|truly|considered|classified|labell?ed|as|to|"
    r"think|believe|say|call|that|this|it|is|be|seem|appear|contain|express|show))*"
)
_DENIALS = ("not", "never", "neither", "nor", "no", "without", "rather than", "instead of", "isn't", "isn’t")
_MARKED = re.compile(
    r"(?:\b(?:final\s+)?(?:answer|label|class|category|classification|verdict|sentiment|result)\W*(?:is\b|:|=|→)"
    r"|\btherefore\b|\boverall\b)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?;\n]+[.!?;\n]*")
# What may stand before the first word of an answer: quotes, emphasis, bullets, brackets.
_OPENING = r"^[\s\"'“‘`*_#>(\[•-]*"


@dataclass(frozen=True)
class Label(TextScorer):
    """1 when the label that the output commits to is a right one.

    Attributes:
        options: All labels; left out in a task's settings, they are the references of its pairs.
    """

    kind: ClassVar[str] = "label"
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given: object = self.options
        object.__setattr__(self, "options", () if isinstance(given, str) else tuple(self.options))
        if not self.options or not all(isinstance(option, str) and option.strip() for option in self.options):
            raise ConfigError('scorer label: give the labels: options = ["positive", "negative"]')

    def score_one(self, output: str, pair: Pair) -> Scored:
        """Right or wrong; an output that commits to no label is wrong."""
        label = committed_label(output, self.options)
        right = {_plain(reference) for reference in pair.references}
        return Scored(float(label is not None and _plain(label) in right), label)


def committed_label(text: str, options: Sequence[str]) -> str | None:
    """The one of ``options`` that ``text`` commits to, or ``None``."""
    named = labels_named(text, options)
    if len(named) < 2:
        return named[0] if named else None
    return _opening_label(text, options) or _marked_label(text, options)


def labels_named(text: str, options: Sequence[str]) -> list[str]:
    """The distinct labels that ``text`` names as whole words and does not deny, in order of first mention.

    A label inside a longer one (*spam* in *not spam*) is not named; blanks, hyphens and underscores are alike.
    """
    known = {_plain(option): option for option in options}
    denials = "|".join(re.escape(word) for word in _DENIALS if word not in known)
    denied = re.compile(rf"(?:(?<!\w)(?:{denials})|\w+n['’]t){_BETWEEN}\s+[\"'“‘*]*$", re.IGNORECASE)
    found: dict[str, None] = {}
    for match in _pattern(options).finditer(text):
        if not denied.search(text[max(0, match.start() - 80) : match.start()]):
            found.setdefault(known[_plain(match.group(1))])
    return list(found)


def _opening_label(text: str, options: Sequence[str]) -> str | None:
    """The label that the answer opens with ("Yes, there is no doubt."), if no other sentence opens with another."""
    opens = re.compile(_OPENING + _pattern(options).pattern + r"(?P<after>.*)", re.IGNORECASE | re.DOTALL)
    leaders: set[str] = set()
    first: str | None = None
    for number, sentence in enumerate(_SENTENCE.findall(text)):
        match = opens.match(sentence)
        if match is None:
            continue
        label, after = _plain(match.group(1)), match["after"].lstrip(" \"'”’`*_)]")
        leaders.add(label)
        # "positive, negative or neutral", "positive or negative" and "positive: …" list what there is.
        ends = not after or after[0] in ",.!;\n—–-"
        follows = re.match(r",\s*(?:(?:or|and)\s+)?" + _pattern(options).pattern, after, re.IGNORECASE)
        if number == 0 and ends and not follows:
            first = match.group(1)
    known = {_plain(option): option for option in options}
    return known[_plain(first)] if first is not None and len(leaders) == 1 else None


def _marked_label(text: str, options: Sequence[str]) -> str | None:
    """The label that is marked as the answer ("Answer: spam"), where all marks agree on one."""
    marked: set[str] = set()
    for mark in _MARKED.finditer(text):
        rest = re.match(r"[^.!?;\n]*", text[mark.end() :].lstrip())
        named = labels_named(rest.group() if rest else "", options)
        if len(named) > 1:
            return None
        marked.update(named)
    return marked.pop() if len(marked) == 1 else None


def _pattern(options: Sequence[str]) -> re.Pattern[str]:
    """Matches any of ``options`` as a whole word, the longest first; plurals in -s count."""
    return re.compile(
        r"(?<![\w])(?<!\d[.,])(" + "|".join(_spelt(o) for o in sorted(options, key=len, reverse=True)) + r")(?:s|es)?"
        r"(?!\w|[.,]\d)",
        re.IGNORECASE,
    )


def _spelt(option: str) -> str:
    parts = [re.escape(part) for part in re.split(r"[\s_-]+", option.strip()) if part]
    spelt = r"[\s_-]+".join(parts) or re.escape(option)
    if re.fullmatch(r"-\d.*", option.strip()):
        return r"[-−]" + spelt
    if option.strip()[:1].isdigit():
        # The 5 of "4/5", "4 out of 5" and of "-5" is not an answer.
        return rf"(?<![-−/])(?<!/ )(?<!out of ){spelt}"
    return spelt


def _plain(label: str) -> str:
    text = re.sub(r"[\s_-]+", " ", label.strip().lstrip("-−")).strip().casefold()
    return f"-{text}" if re.match(r"[-−]\d", label.strip()) else text
