"""Which lines a language model wrote are instructions: light rules, no model."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

from bestprompt.latent.sentences import VERBS, split_sentences


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FEWEST_WORDS, MOST_WORDS, LONGEST_WORD = 3, 40, 22
_MARKED = re.compile(r"^(?:\d+[.)]|[-*•>#]+)\s+")
_NEXT_EXAMPLE = re.compile(r"\s*\[[^\]]*: [^\]]*\]\s*(?=\w).*$")  # the model went on with another bracketed task
_NEXT_WORDING = re.compile(r"\s+(?:plain|reworded|shorter|question|polite|exact): .*$")
_OPTIONS = re.compile(r"^[^\[]*\[[^\]]+, [^\]]+\][^\[]*$")
_PLAIN = re.compile(r"[A-Za-z0-9 ,.;:?!'\"()\[\]\-/%$+*=<>&#@_€£°]+")
_ASCII = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "...", "\u00a0": " "})
_ANSWERS = re.compile(
    r"(sure|certainly|of course|here (is|are)|here's|i'm sorry|i am sorry|sorry|as an ai|thank|thanks|yes|no,|hello|hi"
    r"|dear|the answer|answer:|output:|input:|example|note:|i can |i'll|i will|i hope|let me know|you're welcome"
    r"|would you like|do you have|do you want me|how can i (help|assist)|how may i|what can i (help|do))\b",
    re.IGNORECASE,
)
_QUESTION_WORDS = _words(
    """what which who whose whom when where why how is are was were does do did can could should would will may has have
    """
)
_UNFINISHED = _words("a an the and or of with as that if than into your my its their")
_FUNCTION_WORDS = (
    _QUESTION_WORDS
    | _UNFINISHED
    | _words(
        """
        be by for from give i in it list make me on please tell text the them there these they this to two use we word
        words write you
        """
    )
)
_REQUESTS = re.compile(
    r"\b(you|your|please|i need|i want|i'd like|i would like|help me|the task|the goal|task:|options?:|answer|reply"
    r"|output|return|let's|let us)\b",
    re.IGNORECASE,
)
_IMPERATIVES = frozenset(verb.lower() for verb in VERBS) | _words(
    """
    abbreviate act adapt adjust advise always announce apologize apply argue arrange ask assign assume avoid be begin
    book brainstorm break bring build buy call cancel capitalize circle cite clean click close comment conclude
    confirm congratulate consider continue convince copy criticize cross cut debug decode deduce defend delete deliver
    demonstrate deny derive design develop discuss divide do don't double draft draw encode end enhance ensure enter
    exclude execute explore feel filter finish follow get go greet help hide ignore illustrate imagine imitate
    implement improve include insert interpret invent invite join keep learn leave let limit listen locate make mask
    measure mention mimic modify multiply never normalize note notice observe offer only open optimize outline paste
    persuade plan play pluralize point praise prepare press pretend propose put quote rearrange recall recommend
    record refactor reflect refuse remember remind reorder repair reply research respond restate restrict reveal reword
    run save say schedule search see send set share sketch skip speak standardize start stay stop store strip study
    subtract sum suppose swap switch tag take talk teach test thank think tick trace track trim try type underline
    forward move postpone route
    unpack unscramble update upgrade warn watch work
    """
)


def normalized(text: str) -> str:
    """What two lines must share to count as the same: letters and digits, without case and punctuation."""
    return " ".join(re.findall(r"[a-z0-9]+", text.lower().replace("'", "")))


def clean(line: str, finish: str = "") -> str | None:
    """The instruction in a written line, or None.

    Args:
        line: One line, with its opening.
        finish: How the register ends a line: "" with an end mark, "bare" without one and with a small first letter,
            "lower" without one and all in small letters.
    """
    text = line.translate(_ASCII).replace("**", "").replace("`", "'").strip()
    text = _NEXT_WORDING.sub("", _NEXT_EXAMPLE.sub("", _MARKED.sub("", text))).strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" and text.count(text[0]) == 2:
        text = text[1:-1].strip()
    if not _well_formed(text) or _ANSWERS.match(text) or _repeats_itself(text):
        return None
    if finish:
        text = text.rstrip(".!?:; ")
        text = text.lower() if finish == "lower" else text[0].lower() + text[1:]
        return text if len(text.split()) >= FEWEST_WORDS else None
    if text[-1] not in ".?!:)]\"'":
        text += "?" if text.split()[0].lower() in _QUESTION_WORDS else "."
    return text[0].upper() + text[1:] if instructs(text) else None


def instructs(text: str) -> bool:
    """Whether some clause asks for something: a question, an imperative, or words addressed to the reader."""
    if "?" in text or _REQUESTS.search(text):
        return True
    clauses = [clause for sentence in split_sentences(text) for clause in re.split(r"[,;:] ", sentence)]
    return any(clause.split()[0].lower().strip("'\"(") in _IMPERATIVES for clause in clauses if clause.split())


def related(text: str, other: str) -> bool:
    """Whether two wordings share the stem of a word that carries meaning."""
    stems = [{word[:5] for word in normalized(each).split() if word not in _FUNCTION_WORDS} for each in (text, other)]
    return not stems[0].isdisjoint(stems[1])


def _well_formed(text: str) -> bool:
    words = text.split()
    return bool(
        FEWEST_WORDS <= len(words) <= MOST_WORDS
        and _PLAIN.fullmatch(text)
        and max(map(len, words)) <= LONGEST_WORD
        and text[0].isalnum()
        and text.count('"') % 2 == 0
        and text.count("(") == text.count(")")
        and text.count("[") == text.count("]")
        and words[-1].lower().strip(".:") not in _UNFINISHED
        and "..." not in text
        and text[-1] not in ",;-"
        and (text.count("[") == 0 or _OPTIONS.search(text))
        and not (len(words) < 6 and words[:2] == ["You", "are"])  # a role without a task
    )


def _repeats_itself(text: str) -> bool:
    words = normalized(text).split()
    runs = Counter(zip(words, words[1:], words[2:], words[3:], strict=False))
    return any(count > 1 for count in runs.values()) or any(
        first == second for first, second in pairwise(words) if not first.isdigit()
    )
