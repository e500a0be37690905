"""Which words follow which in the corpus, for ``weights/word_pairs.txt``.

``python -m bestprompt.latent.training.word_pairs`` writes the file again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from bestprompt.latent.corpus.grammar import Grammar
from bestprompt.latent.corpus.texts import sentences, split_sampled
from bestprompt.latent.weights_file import WEIGHTS
from bestprompt.latent.words import PAIRS_NAME, pairs
from bestprompt.rng import stream

DRAWN, OFTEN = 200_000, 20  # grammar sentences the pairs are taken from; uses that make a word well known


def count_pairs(sentences: Iterable[str]) -> dict[str, list[str]]:
    """Per word used at least ``OFTEN`` times, its followers, both in alphabetical order."""
    uses: Counter[str] = Counter()
    followers: dict[str, set[str]] = defaultdict(set)
    for sentence in sentences:
        for a, b in pairs(sentence):
            uses[a] += 1
            followers[a].add(b)
    return {word: sorted(followers[word]) for word in sorted(uses) if uses[word] >= OFTEN}


def main() -> None:
    """Write the pairs of the grammar and of the sampled instructions beside the weights."""
    drawn = sentences(Grammar.bundled(), DRAWN, stream(0, "word pairs"))
    found = count_pairs([*drawn, *split_sampled(WEIGHTS / "sampled.txt")[0]])
    lines = [" ".join([word, *after]) for word, after in found.items()]
    (WEIGHTS / PAIRS_NAME).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
