"""Which words are attested, for ``weights/lexicon.txt.gz``.

    python -m bestprompt.latent.training.lexicon --model SmolLM2.gguf --usual american british --rare american-large

What the grammar says is attested. Sampled sentences have slips of the pen in them, and a vocabulary of byte pairs has
pieces of words: of these two, what dictionaries list, one word a line, and what many sentences use. The names above
stand for the lists of SCOWL, as in Debian's packages wamerican, wbritish and wamerican-large.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from bestprompt.latent.corpus.grammar import Grammar
from bestprompt.latent.corpus.texts import sentences
from bestprompt.latent.lexicon import LEXICON_NAME, lowered, word_of, write_lexicon
from bestprompt.latent.training import vocabulary
from bestprompt.latent.training.corpus_groups import SampledCorpus
from bestprompt.latent.weights_file import WEIGHTS
from bestprompt.rng import stream

DRAWN = 200_000  # grammar sentences
OFTEN = 5  # sentences that use a word which no dictionary lists
SHORTEST = 3  # letters: a dictionary lists any two as an abbreviation of something
LARGEST_NUMBER = 100  # numbers up to here need not be met
_WHOLE = re.compile(r"Ġ[A-Za-z]{2,}")
_PLAIN = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*|\d+(?:-[a-z]+|th|s|%)*|[A-Za-z]\.[a-z]")


def counted(texts: Iterable[str]) -> Counter[str]:
    """In how many texts each word occurs; the first word of a text counts without its capital."""
    uses: Counter[str] = Counter()
    for text in texts:
        first, *rest = map(word_of, text.split())
        uses.update({lowered(first), *rest})
    return uses


def attested(
    said: Counter[str], sampled: Counter[str], whole: Iterable[str], usual: frozenset[str], rare: frozenset[str]
) -> set[str]:
    """Words of the grammar (``said``), of sampled sentences and of a model's vocabulary (``whole``).

    Args:
        said: Taken as they are.
        sampled: Taken if a dictionary has them, or all parts of a compound, or if many sentences do.
        whole: Taken if they are ``usual`` in small letters: names and abbreviations must be met.
        usual: A dictionary of common words.
        rare: One of further words, which a vocabulary may not appeal to: it lists what looks like a piece of a word.
    """
    listed = usual | rare

    def met(word: str, count: int) -> bool:
        parts = [part for part in re.split(r"'s$|[-']", word) if part]
        known = all({part, lowered(part)} & listed or part.isdigit() for part in parts)
        return bool(_PLAIN.fullmatch(word)) and (count >= OFTEN or (known and len(word) >= SHORTEST))

    common = {word.lower() for word in whole if len(word) >= SHORTEST and word.lower() in usual}
    numbers = {str(number) for number in range(LARGEST_NUMBER + 1)}
    found = {word for word in said if word} | {w for w, count in sampled.items() if met(w, count)} | common | numbers
    return {word for word in found if lowered(word) == word or lowered(word) not in found}


def whole_words(strings: Iterable[str]) -> list[str]:
    """The entries of a byte-pair vocabulary that stand after a space and consist of letters."""
    return [string[1:] for string in strings if _WHOLE.fullmatch(string)]


def main() -> None:
    """Write the words of grammar, sampled instructions and vocabulary beside the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="GGUF file of the embedded model")
    parser.add_argument("--usual", type=Path, nargs="+", required=True, help="dictionaries of common words")
    parser.add_argument("--rare", type=Path, nargs="*", default=[], help="dictionaries of further words")
    parser.add_argument("--corpus", type=Path, default=Path("corpus"), help="folder of what the sampler wrote")
    given = parser.parse_args()
    usual, rare = (
        frozenset(word for path in paths for word in path.read_text(encoding="utf-8").split())
        for paths in (given.usual, given.rare)
    )
    said = counted(sentences(Grammar.bundled(), DRAWN, stream(0, "lexicon")))
    strings, _ = vocabulary.read_table(given.model)
    words = attested(said, counted(SampledCorpus.of(given.corpus).texts), whole_words(strings), usual, rare)
    write_lexicon(words, WEIGHTS / LEXICON_NAME)
    print(f"{len(words)} words")


if __name__ == "__main__":
    main()
