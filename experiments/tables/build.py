"""Score tables of real language models for the experiments, cheapest task first; continued where it was stopped.

    nice -n 19 python experiments/tables/build.py [--model FILE.gguf] [--tasks first-letter,counting-objects]

A table holds the search stage's prompts in paper mode and in default mode together, asked every item once at
temperature 0, and some prompts again at .7. Beside ``TASK-MODEL.npz`` stands its card (``.json``): the command,
the checksum, hours, and what the scores look like.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from pathlib import Path

import numpy as np

import bestprompt as bp
from bestprompt.choices import DEFAULT_DIM
from bestprompt.replay import ScoreTable, TableSize, build_table, union
from bestprompt.types import SoftPromptSet

FOLDER = Path(__file__).parent
# By the length of an answer and a question, which is what one costs.
CHEAPEST_FIRST = ("first-letter", "largest-animal", "number-words", "counting-objects", "rhymes", "word-sorting")


def found(task: bp.Task, lm: object, prompts: int, seed: int) -> SoftPromptSet:
    """About ``prompts`` candidates: those of default mode, filled up with those of paper mode."""
    fluency = getattr(lm, "mean_logprob", None)
    half = (prompts + len(task.examples)) // 2  # the examples are in both sets
    ours = bp.build_candidates(task.examples, n=half, seed=seed, fluency=fluency)
    published = bp.build_candidates(task.examples, n=half, seed=seed, mode="paper", fluency=fluency)
    return union([ours, published], DEFAULT_DIM)


def card(path: Path, table: ScoreTable, arguments: argparse.Namespace, hours: float) -> dict[str, object]:
    """What is worth knowing of a table; ``hours`` are added to those of earlier sessions."""
    before = json.loads(path.with_suffix(".json").read_text()) if path.with_suffix(".json").exists() else {}
    done = table.complete()
    means = done.percents[:, :, 0].mean(axis=1) / 100
    spread = float(means.std())
    error = float(np.sqrt((means * (1 - means)).mean() / max(len(done.inputs), 1)))
    asked = f"--tasks {table.facts['task']} --prompts {arguments.prompts} --items {arguments.items}"
    model = " --model MODEL.gguf" if arguments.model else ""
    return {
        "command": f"python experiments/tables/build.py {asked}{model} --seed {arguments.seed}",
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "hours": round(before.get("hours", 0.0) + hours, 2),
        **table.facts,
        "prompts": len(means),
        "items": len(done.inputs),
        "missing": table.missing,
        "temperatures": list(table.temperatures),
        "mean": round(float(means.mean()), 3),
        "best": round(float(means.max()), 3),
        "spread": round(spread, 3),
        "spread_over_error": round(spread / max(error, 1e-9), 1),
        "sources": {source: done.candidates.sources.count(source) for source in sorted(set(done.candidates.sources))},
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tasks", default=",".join(CHEAPEST_FIRST))
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--items", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", help="a GGUF file; the default model otherwise")
    parser.add_argument("--threads", type=int, default=1, help="more gain little beside other work")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    lm = bp.lm.embedded(arguments.model, threads=arguments.threads)
    size = TableSize(items=arguments.items)
    for name in sorted(arguments.tasks.split(","), key=CHEAPEST_FIRST.index):
        task = bp.Task.load(name, lm=lm)
        path = arguments.folder / f"{name}-{lm.name.split('-')[0].split(' ')[0].lower().replace('.', '-')}.npz"
        begun = time.monotonic()

        def say(done: int, total: int, path: Path = path, begun: float = begun) -> None:
            rate = done / max(time.monotonic() - begun, 1e-9)
            print(f"\r{path.stem}: {done} of {total}, {rate:.1f} a second", end="", flush=True)

        pairs = task.split(arguments.seed).train
        make = lambda task=task: found(task, lm, arguments.prompts, arguments.seed)  # noqa: E731
        try:
            build_table(path, task, lm, make, pairs, size, say)
        finally:
            if path.exists():
                figures = card(path, ScoreTable.load(path), arguments, (time.monotonic() - begun) / 3600)
                path.with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n")
        print()


if __name__ == "__main__":
    main()
