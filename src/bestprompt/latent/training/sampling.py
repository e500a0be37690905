"""Instructions written by small language models: the larger part of the autoencoder's training corpus.

Small models write poor lists but finish a line well when the lines before it are good. Each request therefore shows
written examples of one register, or of instructions in several wordings, and leaves the next line open; see
``requests.txt``. The job may be killed at any time and goes on where the file ends. Run as
``python -m bestprompt.latent.training.sampling --model big=big.gguf@4 --model small=small.gguf@1``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path

from bestprompt.errors import MissingExtraError
from bestprompt.latent.training.cleaning import clean, related
from bestprompt.latent.training.requests import GROUP_LABELS, Catalogue, WritingRequest, block_number
from bestprompt.latent.training.store import FILE_NAME, CorpusFile, CorpusRecord, report
from bestprompt.rng import stream

SHIFT = 1024  # requests that a model answers before another one may have its turn
TARGET = 200_000


@dataclass(frozen=True)
class CorpusWriter:
    """One model: its share of the corpus, and what it goes on writing."""

    name: str
    share: float
    texts: Iterator[tuple[WritingRequest, str | None]]


def parse(request: WritingRequest, written: str, finishes: dict[str, str]) -> list[CorpusRecord]:
    """The records in what a model wrote for a request."""
    text = written.partition("] ")[2] if request.opening is None else f"{request.opening}{written}"
    if request.mode == "line":
        found = [(request.register, text)]
    else:
        labelled = (line.partition(": ")[::2] for line in f"plain: {text}".split("\n"))
        found = [(label, line) for label, line in labelled if label in GROUP_LABELS]
    cleaned = [(register, clean(line, finishes.get(register, ""))) for register, line in found]
    kept = [(register, line) for register, line in cleaned if line is not None]
    if request.mode == "group":
        kept = [each for each in kept if any(related(each[1], other[1]) for other in kept if other is not each)]
    return [CorpusRecord(line, register, request.group, request.kind) for register, line in kept]


def sample(store: CorpusFile, writers: list[CorpusWriter], catalogue: Catalogue, target: int, deadline: float) -> None:
    """Let the models write by turns, the one furthest behind its share first."""
    finishes = {name: register.finish for name, register in catalogue.registers.items()}
    while len(store) < target and time.monotonic() < deadline:
        writer = min(writers, key=lambda writer: store.counts[writer.name] / writer.share)
        started, used, before = time.monotonic(), time.process_time(), len(store)
        for request, written in islice(writer.texts, SHIFT):
            if written is not None:
                for record in parse(request, written, finishes):
                    store.add(record)
        new, minutes, busy = len(store) - before, (time.monotonic() - started) / 60, (time.process_time() - used) / 60
        print(
            f"{time.strftime('%H:%M:%S')} {writer.name}: {new} new of {SHIFT} requests in {minutes:.1f} min"
            f" ({busy:.1f} of processor time), {len(store)} in all",
            flush=True,
        )


def main() -> None:
    """Sample until the target is reached, or report on what there is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FILE@SHARE", help="may be repeated")
    parser.add_argument("--out", type=Path, default=Path("corpus"), help="folder of the corpus")
    parser.add_argument("--target", type=int, default=TARGET, help="sentences to stop at")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--rows", type=int, default=128, help="texts written at the same time")
    parser.add_argument("--report", action="store_true", help="describe the corpus and stop")
    parser.add_argument("--samples", type=int, default=40, help="random sentences in the report")
    parser.add_argument("--seed", type=int, default=0, help="of the report's random sentences")
    options = parser.parse_args()
    if options.report:
        print(report(options.out / FILE_NAME, options.samples, stream(options.seed, "report")))
        return
    try:
        from bestprompt.latent.training.batched_writer import BatchedWriter
    except ImportError as error:
        raise MissingExtraError("Sampling a corpus", "corpus") from error
    catalogue = Catalogue.load()
    with CorpusFile(options.out, known=catalogue.examples()) as store:
        begun = [block_number(group) for group in store.groups]
        writers = []
        for given in options.model:
            name, _, rest = given.partition("=")
            path, _, share = rest.rpartition("@")
            first = max((number + 1 for model, number in begun if model == name), default=0)
            blocks = map(partial(catalogue.block, name), count(first))
            texts = BatchedWriter(Path(path), options.rows).write(blocks)
            writers.append(CorpusWriter(name, float(share), texts))
        sample(store, writers, catalogue, options.target, time.monotonic() + 60 * options.minutes)


if __name__ == "__main__":
    main()
