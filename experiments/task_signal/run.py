"""Does a bundled task tell prompts apart on a model?

For each task, its twelve example prompts answer the same 50 items at temperature 0. With S (P, n) the scores:
``spread`` = standard deviation between the P prompt means, ``se`` = standard error of one mean (pooled over prompts).
Equal prompts give spread/se near 1. A task *separates* prompts on a model when spread/se ≥ 2 **and** its best prompt
beats guessing by more than two standard errors; anything else is reported as no signal.

    python experiments/task_signal/run.py                                  # the default embedded model
    python experiments/task_signal/run.py --model SmolLM2.gguf --model larger.gguf

Outputs are kept in ``--cache`` (SQLite), so an interrupted table continues and another score costs nothing.
Results of models that are not asked for stay in the table.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

import bestprompt.lm as lm
from bestprompt.errors import LMError
from bestprompt.tasks import Task, bundled, names, separation
from bestprompt.types import FloatArray, LanguageModel, Request

HERE = Path(__file__).parent
PACKAGED = Path(str(files("bestprompt.tasks") / "data" / "signal.json"))
PROMPTS, ITEMS, BAR = 12, 50, 2.0
CHUNK = 150  # calls between two savings
# What guessing earns: a random order, one option of the list, the commonest letter or total, any number at all.
CHANCE = {
    "word-sorting": 0.125,
    "rhymes": 0.25,
    "first-letter": 0.06,
    "largest-animal": 1 / 3,
    "number-words": 0.002,
    "counting-objects": 0.12,
}


def texts(model: LanguageModel, requests: Sequence[Request]) -> list[str]:
    """Outputs in the order of the requests."""
    outputs: list[str] = []
    for first in range(0, len(requests), CHUNK):
        for reply in model.complete(requests[first : first + CHUNK]):
            if isinstance(reply, LMError):
                raise reply
            outputs.append(reply.text)
        print(f"  {len(outputs)} of {len(requests)} calls", flush=True)
    return outputs


def measure(model: LanguageModel, task: Task) -> dict[str, Any]:
    """One row of the table: the scores of every prompt on the same items, and what follows from them."""
    prompts, pairs = task.examples[:PROMPTS], task.pairs[:ITEMS]
    outputs = texts(model, [task.render(prompt, pair) for prompt in prompts for pair in pairs])
    scores = [scored.value for scored in task.scorer.score(outputs, pairs * len(prompts))]
    return row(task, prompts, np.reshape(scores, (len(prompts), len(pairs))))


def row(task: Task, prompts: Sequence[str], scores: FloatArray) -> dict[str, Any]:
    """The figures of one task on one model; ``scores`` is (P, n)."""
    ratio, spread, se = separation(scores)
    means = scores.mean(axis=1)
    best = int(np.argmax(means))
    best_se = float(np.std(scores[best], ddof=1) / np.sqrt(scores.shape[1]))
    off_the_floor = bool(means[best] > CHANCE[task.name] + 2 * best_se)
    return {
        "task": task.fingerprint,
        "ratio": round(ratio, 2),
        "spread": round(spread, 3),
        "se": round(se, 3),
        "chance": round(CHANCE[task.name], 3),
        "separates": bool(ratio >= BAR and off_the_floor),
        "means": {prompt: round(float(mean), 3) for prompt, mean in zip(prompts, means, strict=True)},
    }


def table(results: dict[str, dict[str, Any]]) -> str:
    """The results as a page."""
    lines = [
        "# Which bundled tasks tell prompts apart, and on which model",
        "",
        "Command: `python experiments/task_signal/run.py --model MODEL.gguf` (`make task-signal`).",
        f"{PROMPTS} prompts a task, {ITEMS} evaluations each on the same items, temperature 0.",
        "spread = standard deviation between prompt means; se = standard error of one mean.",
        f"Equal prompts give spread/se near 1. A task separates prompts when spread/se ≥ {BAR:.0f} and its best prompt",
        "beats guessing by two standard errors of its own.",
    ]
    for model, tasks in results.items():
        count = sum(entry["separates"] for entry in tasks.values())
        lines += [
            "",
            f"## {model}: {count} of {len(names())} tasks shown to separate prompts",
            "",
            "| task | worst | best | guessing | spread | se | spread/se | separates | best prompt |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        for name in names():
            if name not in tasks:
                lines.append(f"| {name} | | | | | | | not measured | |")
                continue
            entry = tasks[name]
            means = entry["means"]
            best = max(means, key=means.__getitem__)
            figures = [min(means.values()), means[best], entry["chance"], entry["spread"], entry["se"], entry["ratio"]]
            verdict = "yes" if entry["separates"] else "no signal"
            lines.append(f"| {name} | {' | '.join(f'{figure:.3g}' for figure in figures)} | {verdict} | {best} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measures, then writes the table, the figures behind it and the verdicts the package carries."""
    parser = argparse.ArgumentParser(description="Measure which bundled tasks tell prompts apart on a model.")
    parser.add_argument("--model", action="append", help="a GGUF file, repeatable (default: the embedded model)")
    parser.add_argument("--tasks", default=",".join(names()), help="comma-separated names")
    parser.add_argument("--cache", type=Path, default=HERE / "outputs.db", help="where outputs are kept")
    parser.add_argument("--output", type=Path, default=HERE, help="folder of results.json and results.md")
    parser.add_argument("--no-package", action="store_true", help="leave the verdicts inside the package alone")
    arguments = parser.parse_args()
    target = arguments.output / "results.json"
    results: dict[str, dict[str, Any]] = json.loads(target.read_text()) if target.exists() else {}
    for path in arguments.model or [None]:
        model = lm.cached(lm.embedded(path), arguments.cache)
        for name in arguments.tasks.split(","):
            print(f"{model.name}, {name}", flush=True)
            measured = results.setdefault(model.name, {})
            measured[name] = measure(model, bundled(name))
            results[model.name] = {known: measured[known] for known in names() if known in measured}
            target.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
            (arguments.output / "results.md").write_text(table(results))
    if not arguments.no_package:
        verdicts = {
            name: {model: tasks[name]["separates"] for model, tasks in results.items() if name in tasks}
            for name in names()
        }
        PACKAGED.write_text(json.dumps(verdicts, indent=1) + "\n")
    print((arguments.output / "results.md").read_text())


if __name__ == "__main__":
    main()
