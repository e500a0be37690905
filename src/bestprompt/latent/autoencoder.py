"""The text autoencoder users see: texts ↔ latent vectors X in [-1, 1]^D~ (paper, appendix "Text Autoencoder")."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from bestprompt.latent.coder import SentenceCoder
from bestprompt.latent.contract import TuningProgress
from bestprompt.latent.corpus.grammar import Grammar
from bestprompt.latent.corpus.texts import paraphrased, sampled_paraphrases
from bestprompt.latent.finetune import fine_tune
from bestprompt.latent.lexicon import LEXICON_NAME, read_lexicon
from bestprompt.latent.polish import ROUNDS
from bestprompt.latent.tokens import Codec
from bestprompt.latent.weights_file import WEIGHTS, WEIGHTS_NAME, load_network
from bestprompt.latent.words import Words
from bestprompt.rng import stream
from bestprompt.types import FloatArray

PARAPHRASES = 768  # pairs of each of the two sources


@dataclass(frozen=True)
class Autoencoder(SentenceCoder):
    """The pre-trained autoencoder that ships with the package, or a fine-tuned copy of it."""

    @classmethod
    def pretrained(cls, folder: Path | None = None) -> Autoencoder:
        """The shipped weights, or those of another folder with ``autoencoder.safetensors`` and ``tokenizer.json``.

        Its words are those of ``lexicon.txt.gz`` in the same folder, if there is one, or else the shipped ones.
        """
        return _load(folder if folder is not None else WEIGHTS)

    def paraphrases(self) -> tuple[FloatArray, FloatArray]:
        """(m, D~) twice: sentences of the training corpus and another wording of each, always the same ones."""
        rng = stream(0, "paraphrases")
        grammar, written = Grammar.bundled(), sampled_paraphrases()
        drawn = [*paraphrased(grammar, PARAPHRASES, rng)]
        for index in rng.permutation(len(written))[:PARAPHRASES]:
            first, second = rng.choice(len(written[index]), 2, replace=False)
            drawn.append((written[index][first], written[index][second]))
        fitting = [pair for pair in drawn if all(map(self.fits, pair))]
        one_pass = replace(self, polishing=0)
        before, after = (one_pass.encode(list(side)) for side in zip(*fitting, strict=True))
        return before, after

    def words(self) -> Words:
        """What the corpus of the shipped weights knows of single words; fine-tuning does not change it."""
        shipped = Autoencoder.pretrained()
        return Words.of(shipped.network, shipped.codec, WEIGHTS)

    def fine_tune(self, texts: Sequence[str], progress: TuningProgress | None = None) -> Autoencoder:
        """A copy that gives every one of ``texts`` back exactly; see ``finetune.py``."""
        return fine_tune(self, texts, progress)


@lru_cache(maxsize=2)
def _load(folder: Path) -> Autoencoder:
    weights = folder / WEIGHTS_NAME
    words = folder / LEXICON_NAME if (folder / LEXICON_NAME).exists() else WEIGHTS / LEXICON_NAME
    digest = hashlib.sha256(weights.read_bytes() + words.read_bytes()).hexdigest()
    codec = Codec.load(folder / "tokenizer.json")
    return Autoencoder(load_network(weights), codec, digest, polishing=ROUNDS, lexicon=read_lexicon(words))
