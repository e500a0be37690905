"""Which sentence of a prompt moves in the latent space, and what stays around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from bestprompt.errors import SearchError
from bestprompt.latent.prose import holds_placeholder, leading_clauses, prose_sentences

_SENTENCE_END = re.compile(r"(?<=[.?!。？！])\s+|\n+")
# What instructions begin with; the cleaning of the sampled corpus goes by it, too.
VERBS = (
    "Sort", "Arrange", "Order", "List", "Write", "Find", "Give", "Name", "Identify", "Determine", "Count",
    "Convert", "Translate", "Summarize", "Classify", "Extract", "Rewrite", "Answer", "Choose", "Select", "Pick",
    "Compare", "Decide", "Explain", "Describe", "Return", "Output", "Print", "Report", "State", "Tell", "Show",
    "Spell", "Rank", "Group", "Label", "Match", "Complete", "Fill", "Correct", "Fix", "Remove", "Replace", "Add",
    "Change", "Turn", "Transform", "Express", "Calculate", "Compute", "Estimate", "Predict", "Generate", "Create",
    "Compose", "Provide", "Suggest", "Evaluate", "Check", "Verify", "Detect", "Highlight", "Mark", "Read", "Look",
    "Use", "Combine", "Split", "Separate", "Merge", "Reverse", "Simplify", "Shorten", "Expand", "Paraphrase",
    "Rephrase", "Edit", "Proofread", "Analyze", "Examine", "Review", "Assess", "Rate", "Score", "Judge", "Infer",
    "Guess", "Solve", "Prove", "Define", "Categorize", "Organize", "Alphabetize", "Transcribe", "Format", "Parse",
)  # fmt: skip
_TASKS = tuple(f"your {noun} " for noun in ("task", "job", "goal", "answer", "output"))
_DUTIES = ("you must ", "you should ", "you will ", "you are to ")
_QUOTED = re.compile(r"[\"“”«»]|'\w[^']*'")
_FORMER_OPENINGS = frozenset(verb.lower() for verb in VERBS) | {"put", "please", "make", "your", "given", "do"}
_OPENINGS = (_FORMER_OPENINGS - {"your"}) | {
    "always", "ask", "assign", "avoid", "base", "begin", "cite", "consider", "don't", "draft", "end", "ensure",
    "follow", "help", "ignore", "include", "keep", "let", "limit", "mention", "never", "only", "plan", "prefer",
    "quote", "refuse", "repeat", "reply", "respond", "route", "say", "start", "stay", "stop", "take", "think", "treat",
    "try", "when", "if",
}  # fmt: skip


def split_sentences(text: str) -> list[str]:
    """Sentences of a text; line breaks end a sentence too."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


Frame = tuple[str, str, str]
"""(before, varied, after): the sentence of a prompt that moves in the latent space, and what is kept around it."""


def varied_sentence(text: str, fits: Callable[[str], bool], taken: Collection[str] = ()) -> Frame:
    """The part of ``text`` that moves in the latent space, between what is kept around it byte for byte.

    A line of words that fits one latent vector moves as a whole. Of a longer text one sentence of prose moves
    (:mod:`bestprompt.latent.prose`): the first that fits and reads like an instruction (a question, or an opening such
    as "Sort"), rather one that says something of its own than a lead-in or a quotation; failing that, the longest.

    Args:
        text: A prompt.
        fits: Whether one latent vector can hold a text.
        taken: Sentences that others move already; one of its own is preferred.

    Raises:
        SearchError: The text is empty or none of its sentences fits.
    """
    stripped = text.strip()
    if stripped and _one_line(stripped) and not holds_placeholder(stripped) and fits(stripped):
        return "", stripped, ""
    found = [each for each in prose_sentences(stripped) if fits(each.text)]
    found = found or [each for each in leading_clauses(stripped) if fits(each.text)]
    if not found:
        raise SearchError(
            f"The autoencoder cannot represent this prompt: {_shown(stripped)!r}. It holds sentences of about twenty"
            " words of English without placeholders; shorten the sentence to be varied, or give candidates as a list"
            " (source 'file')."
        )
    best = min(found, key=lambda each: (each.text in taken, *_worth(each.text)))
    return stripped[: best.start], best.text, stripped[best.end :]


def varied_sentences(texts: Sequence[str], fits: Callable[[str], bool]) -> list[Frame]:
    """The same of each of ``texts``, with a sentence of its own for each as far as there is one.

    Raises:
        SearchError: See :func:`varied_sentence`.
    """
    frames: list[Frame] = []
    taken: set[str] = set()
    for text in texts:
        frames.append(varied_sentence(text, fits, taken))
        taken.add(frames[-1][1])
    return frames


def encoded_part(text: str, fits: Callable[[str], bool]) -> str:
    """What an autoencoder sees of a text: all of it if it fits, as every decoded text does, else what is varied."""
    stripped = text.strip()
    return stripped if stripped and fits(stripped) else varied_sentence(text, fits)[1]


def former_varied_sentence(text: str, fits: Callable[[str], bool]) -> Frame:
    """As :func:`varied_sentence` chose before it knew structure from prose: for runs that began then.

    Raises:
        SearchError: None of the sentences fits.
    """
    stripped = text.strip()
    if stripped and fits(stripped):
        return "", stripped, ""
    found = [sentence for sentence in split_sentences(stripped) if fits(sentence)]
    if not found:
        raise SearchError(f"The autoencoder cannot represent this prompt: {_shown(stripped)!r}.")
    instructions = (sentence for sentence in found if _formerly_instructs(sentence))
    chosen = next(instructions, max(found, key=len))
    before, _, after = stripped.partition(chosen)
    return before, chosen, after


def _worth(sentence: str) -> tuple[bool, int, int]:
    """Smallest for the sentence most worth varying; among equals the first one found is taken."""
    instructs = _instructs(sentence)
    # A lead-in says what its list says, a quotation is to be repeated to the letter, two words say little.
    doubts = sentence.endswith(":") + bool(_QUOTED.search(sentence)) + (len(sentence.split()) < 4)
    return not instructs, doubts if instructs else 0, 0 if instructs else -len(sentence)


def _instructs(sentence: str) -> bool:
    return sentence.endswith("?") or _opening(sentence) in _OPENINGS or sentence.lower().startswith(_TASKS + _DUTIES)


def _formerly_instructs(sentence: str) -> bool:
    return sentence.endswith("?") or _opening(sentence) in _FORMER_OPENINGS


def _opening(sentence: str) -> str:
    return sentence.split()[0].strip(",:").lower()


def _one_line(text: str) -> bool:
    return "\n" not in text and "\r" not in text


def _shown(text: str) -> str:
    return text[:60] + ("…" if len(text) > 60 else "")
