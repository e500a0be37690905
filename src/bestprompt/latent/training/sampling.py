"""Instructions written by small language models: the larger part of the autoencoder's training corpus.

Small models write poor lists but finish a line well when the lines before it are good. Each request therefore shows
written examples of one register, or of instructions in several wordings, and leaves the next line open; see
``requests.txt``. The job may be killed at any time and goes on where the file ends. Run as
``python -m bestprompt.latent.training.sampling --model big=big.gguf@4 --model small=small.gguf@1``.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import xllamacpp

from bestprompt.latent.training.cleaning import clean, related
from bestprompt.latent.training.requests import GROUP_LABELS, Catalogue, WritingRequest, block_number
from bestprompt.latent.training.store import FILE_NAME, CorpusFile, CorpusRecord, report
from bestprompt.rng import stream

SLOT_CONTEXT = 896
SHIFT = 24  # requests that each slot of a model answers before another model may have its turn
TARGET = 200_000


def parse(request: WritingRequest, written: str, finishes: dict[str, str], model: str) -> list[CorpusRecord]:
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
    return [CorpusRecord(line, request.kind, register, request.mode, model, request.group) for register, line in kept]


@dataclass
class CorpusWriter:
    """One model's server, its share of the corpus, and the requests each of its slots goes through."""

    name: str
    share: float
    server: xllamacpp.Server
    slots: list[Iterator[WritingRequest]]

    @classmethod
    def start(
        cls, name: str, path: str, share: float, catalogue: Catalogue, first_block: int, slots: int
    ) -> CorpusWriter:
        """Load the model; blocks begin with ``first_block``."""
        params = xllamacpp.CommonParams()
        params.model.path = path
        params.n_parallel, params.n_ctx, params.kv_unified = slots, SLOT_CONTEXT * slots, False
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        # On a CPU the fused attention takes a third of the time, the plain one a tenth.
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.warmup = False
        numbers, lock = iter(range(first_block, 2**31)), threading.Lock()

        def requests() -> Iterator[WritingRequest]:
            while True:
                with lock:
                    number = next(numbers)
                yield from catalogue.block(name, number)

        return cls(name, share, xllamacpp.Server(params), [requests() for _ in range(slots)])

    def write(self, slot: int, request: WritingRequest) -> str | None:
        """What the model writes; None if it comes to no end."""
        asked = {
            "prompt": request.prompt,
            "max_tokens": request.max_tokens,
            "temperature": 0.85,
            "top_k": 60,
            "top_p": 0.95,
            "min_p": 0.04,
            "seed": request.seed,
            "stop": [*request.stop, "<|im_end|>", "<|endoftext|>"],
            "id_slot": slot,
            "cache_prompt": True,
        }
        choice = self.server.handle_completions(asked)["choices"][0]
        return str(choice["text"]) if choice["finish_reason"] == "stop" else None


def sample(store: CorpusFile, writers: list[CorpusWriter], catalogue: Catalogue, target: int, deadline: float) -> None:
    """Let the models write by turns, the one furthest behind its share first."""
    finishes = {name: register.finish for name, register in catalogue.registers.items()}
    lock = threading.Lock()

    def work(writer: CorpusWriter, slot: int) -> None:
        for _ in range(SHIFT):
            if time.monotonic() > deadline:
                return
            request = next(writer.slots[slot])
            written = writer.write(slot, request)
            if written is not None:
                with lock:
                    for record in parse(request, written, finishes, writer.name):
                        store.add(record)

    while len(store) < target and time.monotonic() < deadline:
        writer = min(writers, key=lambda writer: store.counts[writer.name] / writer.share)
        started, before = time.monotonic(), len(store)
        with ThreadPoolExecutor(len(writer.slots)) as pool:
            list(pool.map(work, [writer] * len(writer.slots), range(len(writer.slots))))
        new, minutes = len(store) - before, (time.monotonic() - started) / 60
        print(f"{time.strftime('%H:%M:%S')} {writer.name}: {new} in {minutes:.1f} min, {len(store)} in all", flush=True)


def main() -> None:
    """Sample until the target is reached, or report on what there is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FILE@SHARE", help="may be repeated")
    parser.add_argument("--out", type=Path, default=Path("corpus"), help="folder of the corpus")
    parser.add_argument("--target", type=int, default=TARGET, help="sentences to stop at")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--slots", type=int, default=32, help="requests answered at the same time")
    parser.add_argument("--report", action="store_true", help="describe the corpus and stop")
    parser.add_argument("--samples", type=int, default=40, help="random sentences in the report")
    parser.add_argument("--seed", type=int, default=0, help="of the report's random sentences")
    options = parser.parse_args()
    if options.report:
        print(report(options.out / FILE_NAME, options.samples, stream(options.seed, "report")))
        return
    catalogue = Catalogue.load()
    with CorpusFile(options.out, known=catalogue.examples()) as store:
        begun = [block_number(group) for group in store.groups]
        writers = []
        for given in options.model:
            name, _, rest = given.partition("=")
            path, _, share = rest.rpartition("@")
            first = max((number + 1 for model, number in begun if model == name), default=0)
            writers.append(CorpusWriter.start(name, path, float(share), catalogue, first, options.slots))
        sample(store, writers, catalogue, options.target, time.monotonic() + 60 * options.minutes)


if __name__ == "__main__":
    main()
