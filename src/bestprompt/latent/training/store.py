"""The corpus on disk: a line for each sentence, only ever appended to, no sentence twice.

A line has the sentence, its register, its group and its kind of task, with tabs between.
"""

from __future__ import annotations

import fcntl
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np

from bestprompt.latent.training.cleaning import normalized

FILE_NAME = "instructions.tsv"
RUN, CROWD, CROWD_SHARE = 6, 12, 0.001  # no six words in a row in more than 12 sentences and one in a thousand


@dataclass(frozen=True, slots=True)
class CorpusRecord:
    """One sentence and where it comes from.

    Attributes:
        text: The sentence.
        register: Way of speaking; of a paraphrase, its label.
        group: The model and the block it was asked for in, "big-17"; paraphrases of each other have their request's
            number, too, "big-18-3".
        kind: Kind of task.
    """

    text: str
    register: str
    group: str
    kind: str

    @property
    def model(self) -> str:
        """Which model wrote it."""
        return self.group.partition("-")[0]

    @property
    def mode(self) -> str:
        """Whether it was written alone or in several wordings."""
        return "group" if self.group.count("-") == 2 else "line"


def read(path: Path) -> Iterator[CorpusRecord]:
    """Every complete line of the file; what a killed process left of its last one is passed over."""
    if path.exists():
        with path.open(encoding="utf-8") as file:
            yield from (CorpusRecord(*line[:-1].split("\t")) for line in file if line.endswith("\n"))


class CorpusFile:
    """The file, opened for appending by one process at a time.

    Attributes:
        counts: Sentences of each model.
    """

    def __init__(self, folder: Path, known: Iterable[str] = ()) -> None:
        """Open or create the file.

        Args:
            folder: Where ``instructions.tsv`` is.
            known: Sentences that must not be written, e.g. the examples that the models were shown.

        Raises:
            BlockingIOError: Another process writes to the file.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / FILE_NAME
        self._file = self.path.open("ab")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise
        self._cut_broken_line()
        self.counts: Counter[str] = Counter()
        self.groups: set[str] = set()
        self._seen: set[str] = set()
        self._runs: Counter[int] = Counter()
        for text in known:
            self._seen.add(normalized(text))
            self._runs.update(dict.fromkeys(_runs(text), CROWD // 2))
        for record in read(self.path):
            self._remember(record)

    def __enter__(self) -> CorpusFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self.counts.total()

    def add(self, record: CorpusRecord) -> bool:
        """Append the record unless its sentence, or too often a part of it, is there already; whether it was new."""
        limit = CROWD + int(CROWD_SHARE * len(self))
        if normalized(record.text) in self._seen or any(self._runs[run] >= limit for run in _runs(record.text)):
            return False
        self._file.write(("\t".join(astuple(record)) + "\n").encode())
        self._file.flush()
        self._remember(record)
        return True

    def _remember(self, record: CorpusRecord) -> None:
        self._seen.add(normalized(record.text))
        self._runs.update(_runs(record.text))
        self.groups.add(record.group)
        self.counts[record.model] += 1

    def _cut_broken_line(self) -> None:
        written = self.path.read_bytes()
        self._file.truncate(written.rfind(b"\n") + 1)


def _runs(text: str) -> set[int]:
    words = normalized(text).split()
    return {hash(tuple(words[start : start + RUN])) for start in range(len(words) - RUN + 1)}


def report(path: Path, samples: int, rng: np.random.Generator) -> str:
    """Counts by model, mode, kind and register, lengths, first words, and random sentences."""
    records = list(read(path))
    lines = [f"{len(records)} sentences, {len({record.group for record in records})} groups"]
    for field in ("model", "mode", "register", "kind"):
        counts = Counter(getattr(record, field) for record in records)
        lines.append(f"{field}: " + ", ".join(f"{name} {count}" for name, count in counts.most_common()))
    lengths = Counter(len(record.text.split()) for record in records)
    lines.append("words: " + ", ".join(f"{length}: {lengths[length]}" for length in sorted(lengths)))
    first = Counter(record.text.split()[0].lower() for record in records)
    lines.append(f"first words: {len(first)}, " + ", ".join(f"{word} {count}" for word, count in first.most_common(30)))
    chosen = rng.choice(len(records), size=min(samples, len(records)), replace=False)
    lines += [f"[{r.model} {r.register}, {r.kind}] {r.text}" for r in (records[i] for i in sorted(chosen))]
    return "\n".join(lines)
