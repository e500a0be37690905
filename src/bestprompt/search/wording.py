"""Whether the words of a reading go together and belong to the task: cheap rules, before a language model is asked.

All of them compare with the example prompts, so that what an example does is never a fault, and none names a task.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from bestprompt.latent import KnowsWords
from bestprompt.latent.corpus.grammar import ENDS, GIVENS, LEADS, TAILS
from bestprompt.latent.sentences import VERBS, split_sentences
from bestprompt.latent.words import Words, pairs
from bestprompt.search.filters import FUNCTION_WORDS, STEM, content_stems, words

# A cosine, chosen on the prompts of ``experiments/search_quality/other_tasks.py``: "character" may stand for "letter",
# and "things" for "objects", but not "synonym" for "antonym" or "sentence" for "word".
RELATED = 0.5
# Words that any instruction may use, whatever it is about: how to answer, how to look at what is given.
_ASKING = frozenset({
    "about", "above", "at", "below", "carefully", "choose", "correct", "decide", "determine", "down", "exactly",
    "figure", "find", "get", "give", "here", "how", "identify", "if", "list", "look", "name", "now", "out", "pick",
    "point", "print", "produce", "provide", "question", "read", "reply", "report", "respond", "result", "return",
    "say", "select", "short", "show", "single", "so", "state", "suggest", "take", "tell", "there", "think", "up",
    "when", "where", "whether", "who", "work", "write",
})  # fmt: skip
_QUESTIONS = frozenset({
    "are", "can", "could", "did", "does", "how", "is", "should", "was", "were", "what", "when", "where", "which", "who",
    "will", "would",
})  # fmt: skip
_UNFINISHED = frozenset({"a", "an", "and", "its", "of", "or", "the", "their", "whose", "your"})  # no sentence ends so
_DETERMINERS = frozenset({"a", "an", "each", "following", "given", "the", "these", "this", "that", "your"})
_ANSWERS = frozenset({"answer", "correct", "result", "short", "single"})  # what any instruction may ask for
_INFLECTIONS = ("", "s", "es", "d", "ed", "ing", "r", "er", "ly")
_LISTED = re.compile(r"\w+(?:(?:, (?:or |and )?| or | ?/ ?)\w+)+")
_INNER_CAPITAL = re.compile(r"(?<=[\w,;] )[A-Z]\w+")
_REQUESTS = frozenset(verb.lower() for verb in VERBS)
_FIELD = re.compile(r"\{\w+\}")


@dataclass(frozen=True)
class Wording:
    """The rules for one set of examples.

    Attributes:
        words: What the corpus knows.
        examples: The example prompts.
    """

    words: Words
    examples: tuple[str, ...]

    @classmethod
    def of(cls, autoencoder: object, examples: Sequence[str]) -> Wording | None:
        """The rules, if ``autoencoder`` knows words."""
        return cls(autoencoder.words(), tuple(examples)) if isinstance(autoencoder, KnowsWords) else None

    def fault(self, text: str, parent: str) -> str | None:
        """Why ``text``, moved from ``parent``, is no wording of the task; ``None`` if there is nothing to object to.

        ``"broken"``: words that never stand side by side, a word said more often in a sentence than in any example, a
        question that ends like a request or the reverse, a sentence that stops before its noun, a capital inside it, a
        word of an example torn off. ``"too different"``: a word or number that no example has or resembles, an example
        without some of its content, or with some of its options.
        """
        known = _of_examples(self.examples)
        if any(self.words.unheard(a, b) for a, b in pairs(text) if (a, b) not in known.pairs):
            return "broken"
        if any(count > known.repeated.get(stem, 1) for stem, count in repeated_stems(text).items()):
            return "broken"
        if any(bad(text) and not any(map(bad, self.examples)) for bad in (wrong_mark, unfinished)):
            return "broken"
        if not set(_INNER_CAPITAL.findall(text)) <= known.capitals or torn(text, known.words):
            return "broken"
        if loses_content(text, (parent, *self.examples)) or loses_options(text, (parent, *self.examples)):
            return "too different"
        return "too different" if any(self._foreign(word, known) for word in self._fresh(text, known)) else None

    def _fresh(self, text: str, known: _Examples) -> list[str]:
        """The words that need a relative among the examples'; a word of asking does where it is used as a noun."""
        found = words(text)
        after_determiner = {b for a, b in pairwise(found) if a in _DETERMINERS and b not in _ANSWERS}
        return [
            word
            for word in found
            if word not in FUNCTION_WORDS
            and word[:STEM] not in known.stems
            and (word in after_determiner or word[:STEM] not in _generic_stems())
        ]

    def _foreign(self, word: str, known: _Examples) -> bool:
        return word.isdigit() or self.words.likeness(word, known.words) < RELATED

    def novelty(self, text: str) -> int:
        """How many pairs of neighbouring words no example has: the fewer, the better a reading fits the examples."""
        return sum(pair not in _of_examples(self.examples).pairs for pair in pairs(text))


def wrong_mark(text: str) -> bool:
    """Whether the first sentence is a question without its mark, or a request with one."""
    first = next(iter(split_sentences(text)), "")
    opening = next(iter(words(first)), "")
    return (opening in _QUESTIONS and first.endswith((".", ":"))) or (opening in _REQUESTS and first.endswith("?"))


def unfinished(text: str) -> bool:
    """Whether a sentence stops before the word it was coming to."""
    return any((words(sentence) or [""])[-1] in _UNFINISHED for sentence in split_sentences(text))


def torn(text: str, known: Iterable[str]) -> bool:
    """Whether a word of ``text`` is the beginning of a ``known`` one, and none itself: "complain" of "complaint"."""
    fresh = {word for word in words(text) if word not in FUNCTION_WORDS} - set(known)
    return any(
        other.startswith(word) and other[len(word) :] not in _INFLECTIONS
        for word in fresh
        if word[:STEM] not in _generic_stems()
        for other in known
    )


def loses_content(text: str, others: Sequence[str]) -> bool:
    """Whether ``text`` is one of ``others`` with words left out, among them one that says what to do or with what."""

    def shortens(other: str) -> bool:
        rest = iter(words(other))
        return all(word in rest for word in words(text))

    fuller = [other for other in others if shortens(other)]
    kept = content_stems(text) | _generic_stems()
    return bool(fuller) and not any(content_stems(other) <= kept for other in fuller)


def options(text: str) -> list[frozenset[str]]:
    """The words that ``text`` lists to choose from: "yes, no or maybe", "yes/no"."""
    listed = (frozenset(words(each)) - FUNCTION_WORDS for each in _LISTED.findall(text.lower()))
    return [each for each in listed if len(each) > 1]


def loses_options(text: str, others: Sequence[str]) -> bool:
    """Whether ``text`` names two options of one of ``others``, or one of the first, and has no list of them whole."""
    said = frozenset(words(text))
    whole = any(each <= said for other in others for each in options(other))
    return not whole and any(
        len(said & each) >= (1 if at == 0 else 2) for at, other in enumerate(others) for each in options(other)
    )


def repeated_stems(text: str) -> Counter[str]:
    """Beginnings of content words that occur several times in one sentence of ``text``, and how often."""
    found: Counter[str] = Counter()
    for sentence in split_sentences(text):
        said = words(sentence)
        counts = Counter(
            [*(word[:STEM] for word in said if word not in FUNCTION_WORDS), *(w for w in said if w == "only")]
        )
        found |= Counter({stem: count for stem, count in counts.items() if count > 1})
    return found


@dataclass(frozen=True)
class _Examples:
    """What the examples do: pairs of words, stems said several times, capitals inside a sentence, content."""

    pairs: frozenset[tuple[str, str]]
    repeated: Counter[str]
    capitals: frozenset[str]
    words: frozenset[str]
    stems: frozenset[str]


@lru_cache(maxsize=16)
def _of_examples(examples: tuple[str, ...]) -> _Examples:
    repeated: Counter[str] = Counter()
    for text in examples:
        repeated |= repeated_stems(text)
    known = frozenset(word for text in examples for word in words(text) if word not in FUNCTION_WORDS)
    return _Examples(
        frozenset(pair for text in examples for pair in pairs(text)),
        repeated,
        frozenset(word for text in examples for word in _INNER_CAPITAL.findall(text)),
        known,
        content_stems(" ".join(known)),
    )


@lru_cache(maxsize=1)
def _generic_stems() -> frozenset[str]:
    """Stems of the words that the grammar adds to any instruction, and of other words of asking."""
    added = _FIELD.sub("", " ".join((*ENDS, *TAILS, *LEADS, *GIVENS)))
    return frozenset(word[:STEM] for word in (*words(added), *_ASKING))
