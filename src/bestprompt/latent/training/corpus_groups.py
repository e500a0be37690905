"""The sampled corpus: what is trained on, in groups of one instruction's wordings or one kind of task, and held out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from bestprompt.latent.corpus.batches import GROUP, SortedTexts
from bestprompt.latent.corpus.texts import clean_sampled
from bestprompt.latent.training.cleaning import normalized
from bestprompt.latent.training.store import FILE_NAME, CorpusRecord, read
from bestprompt.rng import integer

HELD_OUT = 50  # one block of requests in so many is never trained on
WORDINGS_SHARE = 0.5  # of the groups of a kind that has wordings


@dataclass(frozen=True)
class SampledCorpus:
    """All that language models wrote for the autoencoder.

    Attributes:
        records: To train on.
        held_out: Sentences of the same models that no training sees.
        older: Sentences of which no kind of task is known, to train on.
        older_held_out: Of these, the ones that no training sees.
    """

    records: list[CorpusRecord]
    held_out: list[str]
    older: list[str]
    older_held_out: list[str]

    @classmethod
    def of(cls, folder: Path) -> SampledCorpus:
        """What a folder has: ``instructions.tsv``, perhaps ``older.txt`` and ``older_held_out.txt``."""
        older, older_held_out = (_lines(folder / name) for name in ("older.txt", "older_held_out.txt"))
        return cls(*split(read(folder / FILE_NAME)), sorted(set(older) - set(older_held_out)), older_held_out)

    @property
    def texts(self) -> list[str]:
        """Every sentence to train on."""
        return [*(record.text for record in self.records), *self.older]


def _lines(path: Path) -> list[str]:
    return clean_sampled(path.read_text(encoding="utf-8").splitlines()) if path.exists() else []


@dataclass
class KindTexts:
    """What was written about one kind of task: sentences alone, and sets of sentences that say the same."""

    lines: list[str] = field(default_factory=list)
    wordings: list[list[str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.lines) + sum(map(len, self.wordings))


@dataclass(frozen=True)
class CorpusGroups:
    """Sentences by kind of task, and ``older`` ones of which no kind is known."""

    kinds: list[KindTexts]
    older: SortedTexts

    @classmethod
    def of(cls, records: Iterable[CorpusRecord], older: list[str]) -> CorpusGroups:
        """Sort records by kind and wording."""
        requests: dict[tuple[str, str], list[str]] = defaultdict(list)
        for number, record in enumerate(records):
            alone = record.mode == "line"
            requests[record.kind, f"line {number}" if alone else record.group].append(record.text)
        kinds: dict[str, KindTexts] = defaultdict(KindTexts)
        for (kind, _), texts in requests.items():
            if len(texts) > 1:
                kinds[kind].wordings.append(texts)
            else:
                kinds[kind].lines += texts
        return cls([each for each in kinds.values() if len(each) >= 4 * GROUP], SortedTexts(older))

    @property
    def texts(self) -> list[str]:
        """All sentences."""
        grouped = [text for kind in self.kinds for wordings in kind.wordings for text in wordings]
        return [*(text for kind in self.kinds for text in kind.lines), *grouped, *self.older.texts]

    def group(self, rng: np.random.Generator) -> list[str]:
        """2 · GROUP sentences of one kind; neighbours 2i and 2i+1 say the same, or are the lines most alike."""
        which = int(np.searchsorted(self._reached, rng.random(), side="right"))
        if which == len(self.kinds):
            return self.older.group(rng)
        kind = self.kinds[which]
        if len(kind.lines) < 2 * GROUP or (kind.wordings and rng.random() < WORDINGS_SHARE):
            return _several(kind.wordings, rng)
        return paired([kind.lines[i] for i in rng.choice(len(kind.lines), 2 * GROUP, replace=False)])

    @cached_property
    def _reached(self) -> np.ndarray:
        sizes = np.array([*map(len, self.kinds), len(self.older.texts)], dtype=np.float64)
        return np.asarray(np.cumsum(sizes)[:-1] / sizes.sum())


def _several(wordings: list[list[str]], rng: np.random.Generator) -> list[str]:
    texts: list[str] = []
    for index in rng.permutation(len(wordings)):
        own = wordings[index]
        order = rng.permutation(len(own))[: len(own) // 2 * 2]
        texts += [own[i] for i in order]
        if len(texts) >= 2 * GROUP:
            break
    return texts


def paired(texts: list[str]) -> list[str]:
    """The texts in another order: each second one is that of the rest which shares most words with the one before."""
    words = {text: frozenset(normalized(text).split()) for text in texts}
    left, ordered = list(texts), []
    while len(left) > 1:
        first = left.pop()
        alike = [len(words[first] & words[other]) / len(words[first] | words[other]) for other in left]
        ordered += [first, left.pop(int(np.argmax(alike)))]
    return ordered + left


def split(records: Iterable[CorpusRecord]) -> tuple[list[CorpusRecord], list[str]]:
    """Records to train on, and the sentences of whole blocks that are held out, the same ones however many follow."""
    kept: list[CorpusRecord] = []
    held_out: list[str] = []
    blocks: dict[str, bool] = {}
    for record in records:
        block = "-".join(record.group.split("-")[:2])
        if block not in blocks:
            blocks[block] = integer(0, "held out", block) % HELD_OUT == 0
        if blocks[block]:
            held_out.append(record.text)
        else:
            kept.append(record)
    return kept, held_out
