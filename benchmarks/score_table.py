"""Scores of many prompts on the same items with a real language model, for ``selection.py`` to replay.

    python benchmarks/score_table.py --task first-letter --prompts 100 --items 30 [--model FILE.gguf]

Candidates and their coordinates are those of a run (``build_candidates`` around the task's examples), items are
training pairs. Answers are at temperature 0, hence deterministic and one replicate is all there is; with
``--temperature`` above 0 ``--replicates`` of them are drawn. The table is ``benchmarks/tables/TASK-MODEL.npz``:
``scores`` (prompts, items, replicates) in whole percents as uint8, ``Z``, ``prompts``. It is saved after every prompt,
with 255 for what is still to come, and a second call continues it; only a finished table gets its final name.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import bestprompt as bp
from bestprompt.search import build_candidates
from bestprompt.types import LanguageModel, Pair, SoftPromptSet
from selection_replay import TABLES

MISSING = 255


def fill(
    path: Path,
    task: bp.Task,
    lm: LanguageModel,
    candidates: SoftPromptSet,
    pairs: tuple[Pair, ...],
    replicates: int,
    temperature: float,
) -> Path:
    """Scores what ``path`` (the unfinished table) still misses; returns the finished table's path.

    A request that failed scores 0, as it would in a run.
    """
    shape = (len(candidates.prompts), len(pairs), replicates)
    scores = np.full(shape, MISSING, dtype=np.uint8)
    if path.exists():
        with np.load(path, allow_pickle=False) as stored:
            if stored["prompts"].tolist() != list(candidates.prompts) or stored["scores"].shape != shape:
                raise SystemExit(f"{path} is an unfinished table of other prompts or items: remove it to start anew")
            scores = stored["scores"].copy()
    table = {"Z": candidates.Z, "prompts": np.array(candidates.prompts), "scores": scores}
    for n, prompt in enumerate(candidates.prompts):
        if not (scores[n] == MISSING).any():
            continue
        for r in range(replicates):
            answers = lm.complete([task.render(prompt, pair, seed=r, temperature=temperature) for pair in pairs])
            texts = ["" if isinstance(answer, Exception) else answer.text for answer in answers]
            scores[n, :, r] = [round(100 * scored.value) for scored in task.scorer.score(texts, pairs)]
        fresh = path.with_suffix(".new")
        with fresh.open("wb") as file:
            np.savez_compressed(file, **table)
        fresh.replace(path)
        print(f"{n + 1} of {len(candidates.prompts)}: {scores[n].mean():.0f} % {prompt[:80]!r}", flush=True)
    return path.replace(path.with_suffix(".npz"))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--task", default="first-letter")
    parser.add_argument("--prompts", type=int, default=100)
    parser.add_argument("--items", type=int, default=30)
    parser.add_argument("--replicates", type=int, default=1)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", help="a GGUF file; the default model otherwise")
    arguments = parser.parse_args()
    lm = bp.lm.embedded(arguments.model)
    task = bp.Task.load(arguments.task, lm=lm)
    fluency = getattr(lm, "mean_logprob", None)
    candidates = build_candidates(task.examples, n=arguments.prompts, seed=arguments.seed, fluency=fluency)
    TABLES.mkdir(exist_ok=True)
    stem = f"{task.name}-{Path(arguments.model).stem if arguments.model else 'default'}".lower().replace(".", "-")
    pairs = task.split(arguments.seed).train[: arguments.items]
    fill(TABLES / f"{stem}.part", task, lm, candidates, pairs, arguments.replicates, arguments.temperature)


if __name__ == "__main__":
    main()
