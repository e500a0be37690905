"""Whether the words of a reading go together and belong to the task: cheap rules, before a language model is asked.

All of them compare with the example prompts, so that what an example does is never a fault, and none names a task.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

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
_QUESTIONS = frozenset({"what", "which", "how", "who", "where", "when"})
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
        """``"broken"``: words that never stand side by side, a word said again in the same sentence, a question that
        ends like a request or the reverse. ``"too different"``: a word that no example has or resembles, or nothing
        but the parent without some of its content. ``None`` if there is nothing to object to.
        """
        heard, said_again, known, stems = _of_examples(self.examples)
        if any(self.words.unheard(a, b) for a, b in pairs(text) if (a, b) not in heard):
            return "broken"
        if not repeated_stems(text) <= said_again:
            return "broken"
        if wrong_mark(text) and not any(map(wrong_mark, self.examples)):
            return "broken"
        if loses_content(text, parent):
            return "too different"
        fresh = [word for word in words(text) if word not in FUNCTION_WORDS and word[:STEM] not in stems]
        return "too different" if any(self.words.likeness(word, known) < RELATED for word in fresh) else None

    def novelty(self, text: str) -> int:
        """How many pairs of neighbouring words no example has: the fewer, the better a reading fits the examples."""
        return sum(pair not in _of_examples(self.examples)[0] for pair in pairs(text))


def wrong_mark(text: str) -> bool:
    """Whether the first sentence is a question without its mark, or a request with one."""
    first = next(iter(split_sentences(text)), "")
    opening = next(iter(words(first)), "")
    return (opening in _QUESTIONS and first.endswith((".", ":"))) or (opening in _REQUESTS and first.endswith("?"))


def loses_content(text: str, parent: str) -> bool:
    """Whether ``text`` is ``parent`` with words left out, among them one that says what to do or with what."""
    kept, rest = words(text), iter(words(parent))
    shortened = all(word in rest for word in kept)
    return shortened and not content_stems(parent) - _generic_stems() <= content_stems(text)


def repeated_stems(text: str) -> frozenset[str]:
    """Beginnings of content words that occur twice in one sentence of ``text``."""
    counts = (
        Counter(word[:STEM] for word in words(sentence) if word not in FUNCTION_WORDS)
        for sentence in split_sentences(text)
    )
    return frozenset(stem for each in counts for stem, count in each.items() if count > 1)


@lru_cache(maxsize=16)
def _of_examples(
    examples: tuple[str, ...],
) -> tuple[frozenset[tuple[str, str]], frozenset[str], frozenset[str], frozenset[str]]:
    """The examples' pairs, the stems they say twice, their content words, and the stems that need no relative."""
    heard = frozenset(pair for text in examples for pair in pairs(text))
    said_again = frozenset(stem for text in examples for stem in repeated_stems(text))
    known = frozenset(word for text in examples for word in words(text) if word not in FUNCTION_WORDS)
    return heard, said_again, known, content_stems(" ".join(known)) | _generic_stems()


@lru_cache(maxsize=1)
def _generic_stems() -> frozenset[str]:
    """Stems of the words that the grammar adds to any instruction, and of other words of asking."""
    added = _FIELD.sub("", " ".join((*ENDS, *TAILS, *LEADS, *GIVENS)))
    return frozenset(word[:STEM] for word in (*words(added), *_ASKING))
