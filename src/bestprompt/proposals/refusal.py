"""What a model writes and nobody should pay to evaluate, with the reason in words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from bestprompt.proposals.base import Context
from bestprompt.search.filters import near_duplicate, plain, words
from bestprompt.types import is_text

SHORTEST = 8  # letters; scripts without spaces say much in few
LONGEST, GROWTH = 2000, 4  # characters, and times the longest prompt there is, whichever is more
COPIED = 8  # words in a row that the prompt cannot have by chance
LOOP, TIMES = 5, 4  # words in a row, and how often they may not come
TELLING = 4  # words of an input or answer that make it recognisable
_PLACEHOLDER = re.compile(r"(?<!\{)\{([A-Za-z_]\w*)\}(?!\})")
# The commonest words of some languages that share the Latin script: enough to tell which one a prompt is in.
_COMMON = {
    "English": "the of and to in is that for with as are this be on from your you what which or not",
    "German": "der die das und ist nicht ein eine mit auf für von den zu im dem sie oder als",
    "French": "le la les des une est et dans pour que qui pas sur avec vous ou ce du au",
    "Spanish": "el la los las una es y en para que con no por del se al lo o como",
    "Italian": "il lo gli una è di che per con non del della sono nel alla i le e",
    "Portuguese": "o os as um uma é e em para que com não por do da se no na",
    "Dutch": "de het een en is van niet met op voor dat zijn te in of als",
}


def refusal(text: str, ask: str, context: Context) -> str | None:
    """Why ``text``, which a model wrote when it was asked ``ask``, must not become a candidate; ``None`` if it may."""
    return next((reason for check in _CHECKS if (reason := check(text, ask, context)) is not None), None)


def _empty(text: str, ask: str, context: Context) -> str | None:
    letters = sum(map(str.isalpha, text))
    least = min(SHORTEST, min(sum(map(str.isalpha, prompt)) for prompt in context.prompts))
    return "it is empty or hardly a word" if letters < max(least, 1) or not is_text(text) else None


def _too_long(text: str, ask: str, context: Context) -> str | None:
    most = max(LONGEST, GROWTH * max(map(len, context.prompts)))
    return f"it has {len(text):,} characters, and {most:,} are the most" if len(text) > most else None


def _runs_in_a_loop(text: str, ask: str, context: Context) -> str | None:
    said = words(text)
    phrases = Counter(tuple(said[i : i + LOOP]) for i in range(len(said) - LOOP + 1))
    return "it says the same over and over" if phrases and max(phrases.values()) >= TIMES else None


def _copies_the_question(text: str, ask: str, context: Context) -> str | None:
    own = _shingles(" ".join(context.prompts)) | _shingles(" ".join(_inputs(context)))
    asked = _shingles(ask) - own
    return "it repeats what the model was asked" if asked & _shingles(text) else None


def _other_placeholders(text: str, ask: str, context: Context) -> str | None:
    wanted, found = set(_PLACEHOLDER.findall(context.prompt)), set(_PLACEHOLDER.findall(text))
    if lost := wanted - found:
        return f"it lost {{{min(lost)}}}"
    return f"it holds {{{min(found - wanted)}}}, which nothing fills" if found - wanted else None


def _other_script(text: str, ask: str, context: Context) -> str | None:
    known = {script for prompt in context.prompts for script in _scripts(prompt)}
    main = max(_scripts(text), key=_scripts(text).__getitem__, default=None)
    return f"it is written in {main.title()} letters" if known and main is not None and main not in known else None


def _other_language(text: str, ask: str, context: Context) -> str | None:
    ours, theirs = language("\n".join(context.prompts)), language(text)
    return f"it is in {theirs}, the prompts are in {ours}" if ours and theirs and ours != theirs else None


def _leaks(text: str, ask: str, context: Context) -> str | None:
    written, known = f" {plain(text)} ", f" {plain(context.prompt)} "
    # What several pairs share is a label or a name of the task's, and belongs into a prompt.
    shared = {answer for answer, times in Counter(map(plain, context.references)).items() if times > 1}
    bare = 0
    for each in context.shown:
        for what, telling in ((each.pair.input, "input"), *((right, "answer") for right in each.pair.references)):
            said = plain(what)
            if not said or f" {said} " not in written or f" {said} " in known or said in shared:
                continue
            if len(words(what)) >= TELLING or len(said) > 24:
                return f"it holds an {telling} that was shown"
            bare += 1
    return "it holds inputs and answers that were shown" if bare >= 2 else None


def _known_already(text: str, ask: str, context: Context) -> str | None:
    if text in context.prompts or near_duplicate(plain(text), [plain(prompt) for prompt in context.prompts]):
        return "it repeats a prompt that is there already"
    return None


_CHECKS: Sequence[Callable[[str, str, Context], str | None]] = (
    _empty, _too_long, _runs_in_a_loop, _copies_the_question, _other_placeholders, _other_script, _other_language,
    _leaks, _known_already,
)  # fmt: skip


@lru_cache(maxsize=1024)
def language(text: str) -> str | None:
    """Which of some languages a text is in, by its commonest words; ``None`` where these do not tell."""
    count = Counter(words(text))
    found = {name: sum(count[word] for word in common.split()) for name, common in _COMMON.items()}
    first, second = sorted(found, key=found.__getitem__, reverse=True)[:2]
    return first if found[first] >= 3 and found[first] >= 2 * found[second] else None


@lru_cache(maxsize=1024)
def _scripts(text: str) -> dict[str, int]:
    """Scripts with a tenth of the letters or more → their letters."""
    count = Counter(unicodedata.name(letter, "unknown").split()[0] for letter in text if letter.isalpha())
    return {script: times for script, times in count.items() if times >= 0.1 * count.total()}


def _shingles(text: str) -> set[tuple[str, ...]]:
    said = words(text)
    return {tuple(said[i : i + COPIED]) for i in range(len(said) - COPIED + 1)}


def _inputs(context: Context) -> list[str]:
    return [text for each in context.shown for text in (each.pair.input, each.answer, *each.pair.references)]
