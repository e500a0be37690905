"""The words that a decode may consist of: those of the corpus, of the language model it began with, and the user's.

A text is a row of *chunks* between spaces; a chunk is a word between marks: ``("word"),``. A word is attested when
it is listed, in the same case or with a first capital. ``weights/lexicon.txt.gz`` lists the words that ship;
``training/lexicon.py`` writes it again. Characters of scripts without spaces are words of their own, and run on.
"""

from __future__ import annotations

import gzip
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

LEXICON_NAME = "lexicon.txt.gz"
OPENING, CLOSING = "([\"'“‘«¿¡", ".,;:?!)]\"'”’»…。，、；：？！）"
_STOPS, _QUOTES = (".", ",", ";", ":", "?", "!"), (")", "]", '"', "'", "”", "’", "»")
OPENINGS = ("(", "[", '"', "'", "“", "‘", "«", '("', "('", "(“")
CLOSINGS = (
    *_STOPS, *_QUOTES, "...", "…", ".,", *(quote + stop for quote in _QUOTES for stop in _STOPS),
    *(stop + quote for stop in ".,?!" for quote in _QUOTES), *(f"{quote})" for quote in "\"'”"),
    *(f"{quote}){stop}" for quote in "\"'”" for stop in _STOPS),
    *(stop + quote + outer for stop in ".?!" for quote in "\"'”" for outer in _STOPS),
    "。", "，", "、", "；", "：", "？", "！", "）",
)  # fmt: skip
LONE_MARKS = ("->", "→", "=>", "=", "+", "-", "–", "—", "/", "&", "*", "×", "<", ">")
_CHUNK = re.compile(r"\s*\S+")
_PAIRED = {")": "(", "]": "["}
_SPACELESS = re.compile(r"CJK|HIRAGANA|KATAKANA|THAI|LAO|KHMER|MYANMAR|TIBETAN")


@dataclass(frozen=True)
class Lexicon:
    """What may be written.

    Attributes:
        words: Attested words, without the marks around them.
        chunks: Whole chunks with the space before them, written as they are: what the user's own texts consist of.
        running: Characters that stand side by side without a space.
    """

    words: frozenset[str]
    chunks: frozenset[str] = frozenset()
    running: frozenset[str] = frozenset()

    def with_words_of(self, texts: Iterable[str]) -> Lexicon:
        """The same and every word of ``texts``, in the spelling and between the marks it has there."""
        words, whole, running = set[str](), set[str](), set[str]()
        for text in texts:
            before = "."
            for chunk in chunks(text):
                whole.add(chunk)
                found = word_of(chunk)
                running.update(filter(runs_on, found))
                if not any(map(runs_on, found)):
                    # What begins a sentence may stand inside the next one.
                    words.update({found, lowered(found)} if before.endswith((".", "?", "!", ":")) else {found})
                before = chunk
        return Lexicon(self.words | words - {""}, self.chunks | whole, self.running | running)

    def attests(self, chunk: str) -> bool:
        """Whether ``chunk``, without the space before it, is a listed word between marks, or one of the user's."""
        found = word_of(chunk)
        return (
            chunk in LONE_MARKS
            or found in self.words
            or lowered(found) in self.words
            or (bool(found) and self.running.issuperset(found))
            or any(chunk == whole.strip() for whole in self.chunks)
        )

    def unattested(self, text: str) -> list[str]:
        """The chunks of ``text`` that are not attested."""
        return [chunk for chunk in text.split() if not self.attests(chunk)]


def chunks(text: str) -> Iterator[str]:
    """What stands between spaces, each with the space before it; one before the first, as the tokenizer has it."""
    found = _CHUNK.findall(text.strip())
    yield from (f" {chunk}" if at == 0 else chunk for at, chunk in enumerate(found))


def word_of(chunk: str) -> str:
    """``chunk`` without the marks around it; what closes a bracket inside the word stays: ``word(s)``."""
    inner = chunk.strip().lstrip(OPENING)
    word = inner.rstrip(CLOSING)
    rest = inner[len(word) :]
    if rest[:1] in _PAIRED and word.count(_PAIRED[rest[0]]) > word.count(rest[0]):
        word += rest[0]
    return word


def capitalized(word: str) -> str:
    """``word`` with a first capital."""
    return word[:1].upper() + word[1:]


def lowered(word: str) -> str:
    """``word`` without its first capital, unless it is written in capitals."""
    return word if len(word) > 1 and word.isupper() else word[:1].lower() + word[1:]


def runs_on(character: str) -> bool:
    """Whether the character belongs to a script that puts no spaces between words."""
    return bool(_SPACELESS.match(unicodedata.name(character, "")))


@lru_cache(maxsize=2)
def read_lexicon(path: Path) -> Lexicon:
    """The words of a file, one a line."""
    return Lexicon(frozenset(gzip.decompress(path.read_bytes()).decode("utf-8").split()))


def write_lexicon(words: Iterable[str], path: Path) -> None:
    """Write a file that equal words make equal."""
    path.write_bytes(gzip.compress("\n".join(sorted(words)).encode("utf-8"), compresslevel=9, mtime=0))
