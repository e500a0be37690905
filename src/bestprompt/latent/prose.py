"""The sentences of a prompt that are prose: what may be put in other words, and where it stands.

Everything else of a prompt is kept as it is, byte for byte: code between fences, JSON, tables, headings, quotations,
tags and what stands between those that hold data, the markers of lists, the labels of demonstrations, and every
sentence with a placeholder, a link or markup inside. A sentence that runs over the end of a line is kept, too: put in
other words, it would have to be broken anew.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

_LINE = re.compile(r"([^\r\n]*)(\r\n|\n|\r|\Z)")
_FENCE = re.compile(r"[ \t]*(?:>[ \t]*)*(?:[-*+][ \t]+)?(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(?:={2,}|-{2,})[ \t]*$")
_RULE = re.compile(r"[ \t]*(?:-{3,}|={3,}|\*{3,}|_{3,})[ \t]*$")
_TABLE = re.compile(r"[ \t]*\||[^|]*\S[ \t]*\|[^|]*\|?[ \t]*$|[^|]*\|[^|]*\|")
_OPENED = re.compile(r"[ \t]*<([A-Za-z][\w-]*)(?:\s[^<>]*)?>")
_DATA_TAGS = frozenset(
    {"code", "context", "data", "document", "documents", "example", "examples", "format", "input", "json", "output",
     "pre", "sample", "samples", "schema", "text"}
)  # fmt: skip
_BRACED = re.compile(r"[ \t]*[\[{]|.*[\[{][ \t]*$")
_INDENTED = re.compile(r"(?: {4}|\t)")
_MARKER = re.compile(
    r"[ \t]*(?:(?:[-*+•–—▪◦‣·✓✔✗☐→]|\(?\d{1,3}[.):]|\(?[A-Za-z][.)]|\(?[ivxIVX]{2,4}[.)])[ \t]+)?(?:\[[ xX]\][ \t]+)?"
)
# A name in front of a rule stays ("Tone: …", "**Step 2.** …"); a name in front of a piece of data makes the line data.
_LABEL = re.compile(
    r"(?:(?:\*\*[^*\r\n]{1,60}\*\*|__[^_\r\n]{1,60}__)[ \t]*[:.)–—-]?"
    r"|(?:Step|Rule|Note|Task|Goal|Important|Tone|Style|Format|Warning|Hint)[ \t]*\d{0,3}[ \t]*[:.)–—-])[ \t]+"
)
_DEMONSTRATION = re.compile(
    r"(?:input|output|question|answer|example|user|assistant|system|human|text|response|result|reply|q|a)"
    r"[ \t]*\d{0,3}[ \t]*(?::|->|→|=)",
    re.IGNORECASE,
)
_END = re.compile(r"(?<=[.?!…])[\"”’')]*[ \t]+|(?<=[。？！])")
_NOT_AN_END = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|etc|cf|vs|no|nr|mr|mrs|ms|dr|prof|fig|approx|\w)\.$", re.IGNORECASE)
_CLOSED = re.compile(r"[.?!…:;。？！][\"”’')]*[ \t]*$")
_PLACEHOLDER = re.compile(r"[{}`\\]|<[^<>\s][^<>]*>|\[[^\]]*\]|\$\w|%[sd(]|@\w")
_MARKUP = re.compile(r"\*|~~|\b\w*_\w*\b|https?:|www\.|[<>]|→|⇒|\||#\w|=")
_WRAPPED = 50  # a line so long that ends without a mark goes on in the next


@dataclass(frozen=True, slots=True)
class Sentence:
    """``text`` of a prompt, which begins at ``start``."""

    start: int
    text: str

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    text: str


def holds_placeholder(text: str) -> bool:
    """Whether a text has braces, tags or code inside: what a program fills in or reads."""
    return _PLACEHOLDER.search(text) is not None


def is_prose(text: str) -> bool:
    """Whether a text is made of words and punctuation alone."""
    return (
        not holds_placeholder(text)
        and _MARKUP.search(text) is None
        and not any(unicodedata.category(letter) in ("So", "Sk", "Cf", "Cc", "Co", "Cn", "Cs", "Mn") for letter in text)
        and any(letter.isalpha() for letter in text)
    )


def prose_sentences(prompt: str) -> list[Sentence]:
    """The whole sentences of prose in a prompt, in order; none where there is none."""
    return [each for each in _sentences(prompt) if is_prose(each.text)]


def leading_clauses(prompt: str) -> list[Sentence]:
    """What stands before a placeholder and a colon: "Translate the word:" of "Translate the word: {input}"."""
    found = []
    for each in _sentences(prompt):
        filled = _PLACEHOLDER.search(each.text)
        clause = each.text[: filled.start()].rstrip() if filled else ""
        if clause.endswith(":") and is_prose(clause):
            found.append(Sentence(each.start, clause))
    return found


def _sentences(prompt: str) -> Iterator[Sentence]:
    lines = _prose_lines(prompt)
    carried = False  # whether the line before goes on in this one
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else None
        goes_on = line is not None and following is not None and _goes_on(line.text, following)
        if line is not None:
            parts = list(_split(line))
            yield from parts[carried : len(parts) - goes_on]
        carried = goes_on


def _goes_on(text: str, following: _Line) -> bool:
    """Whether a line ends in the middle of a sentence; the next one is known to be prose without a marker."""
    if _CLOSED.search(text) or not following.text:
        return False
    return following.text[0].islower() or len(text) >= _WRAPPED


def _split(line: _Line) -> Iterator[Sentence]:
    start = 0
    for mark in (*_END.finditer(line.text), None):
        end = mark.start() if mark else len(line.text)
        if mark:
            if _NOT_AN_END.search(line.text[start:end]):
                continue
            # Closing quotation marks belong to the sentence that they close.
            end += len(mark.group()) - len(mark.group().lstrip("\"”’')"))
        whole = line.text[start:end]
        if text := whole.strip():
            yield Sentence(line.start + start + len(whole) - len(whole.lstrip()), text)
        start = mark.end() if mark else end


def _prose_lines(prompt: str) -> list[_Line | None]:
    """The lines of prose without what they are marked with; ``None`` where anything else stands between two of them."""
    lines = [(match.start(), match.group(1)) for match in _LINE.finditer(prompt) if match.group()]
    found: list[_Line | None] = []
    number, listed = 0, False
    while number < len(lines):
        kept = _kept_lines([text for _, text in lines[number:]], listed)
        if kept:
            found.append(None)
            number += kept
            continue
        start, text = lines[number]
        marker = _marker(text)
        if marker.strip() or not text.strip():
            found.append(None)
        listed = bool(marker.strip()) or (listed and bool(text.strip()))
        rest = text[len(marker) :]
        found.append(_Line(start + len(marker), rest.rstrip()) if rest.strip() else None)
        number += 1
    return found


def _marker(text: str) -> str:
    """What a line is marked with: its indentation, the marker of a list, the name of a rule."""
    marker = _MARKER.match(text)
    at = marker.end() if marker else 0
    label = _LABEL.match(text, at)
    return text[: label.end() if label else at]


def _kept_lines(lines: list[str], listed: bool) -> int:
    """How many of the first lines are no prose and belong together; ``listed`` where they stand under a list's item."""
    first = lines[0]
    if fenced := _fenced(lines):
        return fenced
    if (tag := _OPENED.match(first)) and tag.group(1).lower() in _DATA_TAGS:
        closing = f"</{tag.group(1)}>"
        return next((number for number, line in _outside_fences(lines) if closing in line), 1)
    if _HEADING.match(first) or _RULE.match(first) or _TABLE.match(first) or first.lstrip().startswith((">", '"')):
        return 1
    if len(lines) > 1 and first.strip() and _UNDERLINE.match(lines[1]) and not _CLOSED.search(first):
        return 2
    if _BRACED.match(first):
        return _balanced(lines) or 1
    if _INDENTED.match(first) and not listed and not _marker(first).strip():
        return 1
    return int(_DEMONSTRATION.match(first[len(_marker(first)) :]) is not None)


def _fenced(lines: list[str]) -> int:
    """How many of the first lines are code between fences, to the last one where no fence closes it."""
    fence = _FENCE.match(lines[0])
    if fence is None:
        return 0
    closes = re.compile(rf"[ \t]*(?:>[ \t]*)*{re.escape(fence.group(1)[0])}{{{len(fence.group(1))},}}[ \t]*$")
    return next((n + 1 for n, line in enumerate(lines[1:], start=1) if closes.match(line)), len(lines))


def _outside_fences(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The lines that are no code, each with its number from 1: what closes a block cannot stand inside code."""
    number = 0
    while number < len(lines):
        fenced = _fenced(lines[number:])
        if not fenced:
            yield number + 1, lines[number]
        number += fenced or 1


def _balanced(lines: list[str]) -> int:
    """How many lines it takes until all braces and brackets of the first are closed; 0 if they never are."""
    depth = 0
    for number, line in _outside_fences(lines):
        depth += sum(line.count(mark) for mark in "{[") - sum(line.count(mark) for mark in "}]")
        if depth <= 0:
            return number
    return 0
