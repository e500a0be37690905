"""From a checkpoint to what ships: weights, tokenizer, the instructions that runs replay, and the pairs of words.

    python -m bestprompt.latent.training.publish [--checkpoint corpus/autoencoder]

The list of attested words is made apart (``lexicon.py``), because it needs dictionaries.
"""

from __future__ import annotations

import argparse
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from bestprompt.latent.corpus.grammar import Grammar
from bestprompt.latent.corpus.texts import SAMPLED_NAME, clean_sampled, sentences
from bestprompt.latent.training.corpus_groups import SampledCorpus
from bestprompt.latent.weights_file import WEIGHTS, WEIGHTS_NAME
from bestprompt.latent.words import PAIRS_NAME, pairs
from bestprompt.rng import stream

SHIPPED = 12_000  # sampled instructions: fine-tuning replays some hundreds, and the search looks at as many
DRAWN, OFTEN = 200_000, 20  # grammar sentences the pairs are taken from; uses that make a word well known
TWICE = 2  # uses of a pair: what one sentence of a small model has alone may be a slip


def followers(texts: Iterable[str]) -> dict[str, list[str]]:
    """Per word used at least ``OFTEN`` times, what follows it at least ``TWICE``, both in alphabetical order."""
    after: dict[str, Counter[str]] = defaultdict(Counter)
    for text in texts:
        for a, b in pairs(text):
            after[a][b] += 1
    often = sorted(word for word, uses in after.items() if uses.total() >= OFTEN)
    return {word: sorted(b for b, uses in after[word].items() if uses >= TWICE) for word in often}


def publish(checkpoint: Path, corpus: SampledCorpus) -> None:
    """Write all of it into the package."""
    for name in (WEIGHTS_NAME, "tokenizer.json"):
        shutil.copy(checkpoint / name, WEIGHTS / name)
    _write(SAMPLED_NAME, ("\t".join(wordings) for wordings in shipped(corpus)))
    drawn = sentences(Grammar.bundled(), DRAWN, stream(0, "word pairs"))
    found = followers([*drawn, *corpus.texts])
    _write(PAIRS_NAME, (" ".join([word, *after]) for word, after in found.items()))


def shipped(corpus: SampledCorpus) -> list[list[str]]:
    """Some of the corpus, each instruction in all its wordings, sorted."""
    wordings: dict[str, list[str]] = defaultdict(list)
    for record in corpus.records:
        wordings[record.group if record.mode == "group" else record.text].append(record.text)
    wordings |= {text: [text] for text in corpus.older}
    cleaned = [clean_sampled(texts) for texts in wordings.values()]
    order = stream(0, "shipped").permutation(len(cleaned))
    reached = np.cumsum([len(cleaned[index]) for index in order])
    return sorted(cleaned[index] for index in order[reached <= SHIPPED] if cleaned[index])


def _write(name: str, lines: Iterable[str]) -> None:
    (WEIGHTS / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Publish the checkpoint named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, default=Path("corpus/autoencoder"), help="folder of the weights")
    parser.add_argument("--corpus", type=Path, default=Path("corpus"), help="folder of what the sampler wrote")
    given = parser.parse_args()
    publish(given.checkpoint, SampledCorpus.of(given.corpus))


if __name__ == "__main__":
    main()
