"""Short instructions written by the embedded language model, one part of the autoencoder's training corpus.

The chat template's user turn is opened with an imperative or a question stem and the model finishes the sentence;
unconstrained sampling gives text that is not an instruction. Run as
``python -m bestprompt.latent.pretrain.sampling --model model.gguf --out sampled.txt --minutes 20``.
"""

from __future__ import annotations

import argparse
import threading
import time
from pathlib import Path

import xllamacpp

from bestprompt.latent.sentences import VERBS
from bestprompt.rng import stream

OBJECTS = (
    "the",
    "the following",
    "the given",
    "a",
    "all the",
    "each",
    "this",
    "these words",
    "the words",
    "which",
    "how",
    "",
)
STEMS = (
    "Your task is to", "Given a list of words,", "Given a sentence,", "Given a number,", "Given two",
    "You will be given",
    "Which of the following", "What is the", "What are the", "How many", "Which word", "Which one", "Who", "Can you",
    "Please", "Read the following", "In this task, you", "For each", "Does the", "Is the", "Write a", "Look at the",
    "If the", "Take the", "From the list,", "Given the", "Using the", "Based on the", "When given", "I want you to",
)  # fmt: skip
ENDINGS = (".", "?", "!")


def openings() -> list[str]:
    """Every opening the model is asked to continue."""
    return [f"{verb} {rest}".strip() for verb in VERBS for rest in OBJECTS] + [*STEMS] * 12


def sample(model: str, out: Path, minutes: float, seed: int, streams: int = 24) -> int:
    """Append sampled sentences to ``out`` until the time is over; returns how many were written."""
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_parallel, params.n_ctx = streams, 128 * streams
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = False
    server = xllamacpp.Server(params)
    starts, deadline, lock = openings(), time.monotonic() + 60 * minutes, threading.Lock()
    written = 0

    def work(worker: int) -> None:
        nonlocal written
        rng, turn = stream(seed, "sampling", worker), 0
        while time.monotonic() < deadline:
            opening, turn = starts[int(rng.integers(len(starts)))], turn + 1
            request = {
                "prompt": f"<|im_start|>user\n{opening}",
                "max_tokens": 36,
                "temperature": 0.9,
                "top_p": 0.92,
                "seed": int(rng.integers(2**31)),
                "stop": ["\n", "<|im_end|>", *(f"{mark} " for mark in ENDINGS)],
            }
            choice = server.handle_completions(request)["choices"][0]
            if choice["finish_reason"] != "stop":
                continue
            sentence = f"{opening}{choice['text']}".strip()
            if not sentence.endswith(ENDINGS):
                sentence += "?" if sentence.split()[0] in {"What", "Which", "How", "Who", "Does", "Is", "Can"} else "."
            with lock, out.open("a", encoding="utf-8") as file:
                file.write(sentence + "\n")
                written += 1

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return written


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(sample(options.model, options.out, options.minutes, options.seed), "sentences")
