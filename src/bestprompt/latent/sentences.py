"""Which sentence of a prompt moves in the latent space, and what stays around it."""

from __future__ import annotations

import re
from collections.abc import Callable

from bestprompt.errors import SearchError

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
_OPENINGS = frozenset(verb.lower() for verb in VERBS) | {"put", "please", "make", "your", "given", "do"}


def split_sentences(text: str) -> list[str]:
    """Sentences of a text; line breaks end a sentence too."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def varied_sentence(text: str, fits: Callable[[str], bool]) -> tuple[str, str, str]:
    """(before, varied, after): the part of ``text`` that moves in the latent space and what is kept around it.

    A text that fits one latent vector moves as a whole. Of a longer one the first sentence moves that fits and reads
    like an instruction (a question, or an opening such as "Sort"); failing that, the longest that fits.

    Raises:
        SearchError: The text is empty or none of its sentences fits.
    """
    stripped = text.strip()
    if stripped and fits(stripped):
        return "", stripped, ""
    candidates = [sentence for sentence in split_sentences(stripped) if fits(sentence)]
    if not candidates:
        shown = stripped[:60] + ("…" if len(stripped) > 60 else "")
        raise SearchError(
            f"The autoencoder cannot represent this prompt: {shown!r}. It holds sentences of about twenty words of"
            " English; shorten the sentence to be varied, or give candidates as a list (source 'file')."
        )
    instructions = [sentence for sentence in candidates if _instructs(sentence)]
    chosen = instructions[0] if instructions else max(candidates, key=len)
    before, _, after = stripped.partition(chosen)
    return before, chosen, after


def _instructs(sentence: str) -> bool:
    return sentence.endswith("?") or sentence.split()[0].strip(",:").lower() in _OPENINGS
