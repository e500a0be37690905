"""Is searching worth it, and refining? On real language models, with fresh test pairs.

For every task that a model tells prompts apart on (``experiments/task_signal``), from the bundled example prompts:
  * ``example``   the best example: chosen among the examples alone, with the budget of ``EXAMPLES_BUDGET`` calls;
  * ``selected``  the best of 200: latent candidates around the examples, chosen with ``BUDGET`` calls (M-UCB's place);
  * ``refined``   the same run with ``ADDITIONAL`` more calls spent on refinement (M-UCB-r's place).
All choices are made on the task's training pairs. The chosen prompts then answer the same fresh test pairs, none of
which any choice has seen, so differences are paired; intervals are 95 %, normal, over the test pairs.

    python experiments/value/run.py                                # the embedded model
    python experiments/value/run.py --model larger.gguf            # another one; the table keeps both

Answers are kept in ``--cache``, results after every task: an interrupted experiment continues where it was.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import bestprompt as bp
import bestprompt.lm as lm
from bestprompt.errors import LMError
from bestprompt.run.settings import load_settings
from bestprompt.tasks import Task, bundled, names
from bestprompt.types import FloatArray, LanguageModel, Pair

HERE = Path(__file__).parent
CANDIDATES, BUDGET, EXAMPLES_BUDGET, ADDITIONAL = 200, 500, 150, 80
TEST_PAIRS = 80
CONTESTANTS: dict[str, dict[str, Any]] = {
    "example": {"search.source": "examples", "refinement.mode": "off", "budget.calls": EXAMPLES_BUDGET},
    "selected": {"search.source": "latent", "refinement.mode": "off", "budget.calls": BUDGET},
    "refined": {
        "search.source": "latent",
        "refinement.mode": "m-ucb-r",
        "refinement.additional": ADDITIONAL,
        "budget.calls": BUDGET + ADDITIONAL,
    },
}
COMPARISONS = (("selected", "example"), ("refined", "selected"), ("refined", "example"))


def choose(task: Task, model: LanguageModel, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """The prompt that a run with these settings returns, and what it said about it."""
    overrides = {"seed": seed, "ideas.mode": "off", "search.candidates": CANDIDATES, **settings}
    choosing = replace(task, pairs=task.split(seed).train)
    found = bp.optimize(choosing, model, config=load_settings(None, overrides))
    source = found.candidates.sources[found.candidates.prompts.index(found.prompt)]
    return {"prompt": found.prompt, "source": source, "stated": round(found.score, 3), "calls": found.calls}


def fresh_pairs(task: Task, seed: int) -> tuple[Pair, ...]:
    """Pairs that no run with this seed has seen: runs are given the training part alone."""
    splits = task.split(seed)
    return (*splits.test, *splits.validation)[:TEST_PAIRS]


def test_scores(task: Task, model: LanguageModel, prompt: str, pairs: Sequence[Pair]) -> FloatArray:
    """(n,) scores of ``prompt`` on ``pairs``."""
    outputs = []
    for reply in model.complete([task.render(prompt, pair) for pair in pairs]):
        if isinstance(reply, LMError):
            raise reply
        outputs.append(reply.text)
    return np.array([scored.value for scored in task.scorer.score(outputs, list(pairs))])


def difference(a: FloatArray, b: FloatArray) -> tuple[float, float, float]:
    """Mean of the paired difference with its 95 % interval."""
    gap = a - b
    half = 1.96 * float(gap.std(ddof=1)) / np.sqrt(len(gap))
    return float(gap.mean()), float(gap.mean()) - half, float(gap.mean()) + half


def measure(task: Task, model: LanguageModel, seed: int) -> dict[str, Any]:
    """One row: what each contestant chose and how the choices fare on fresh pairs."""
    pairs = fresh_pairs(task, seed)
    row: dict[str, Any] = {"test_pairs": len(pairs), "engine": "llama.cpp"}
    for name, settings in CONTESTANTS.items():
        row[name] = choose(task, model, settings, seed)
        scores = test_scores(task, model, row[name]["prompt"], pairs)
        row[name]["scores"] = [round(float(score), 4) for score in scores]
        print(f"  {name}: {scores.mean():.3f}  {row[name]['prompt']!r} ({row[name]['source']})", flush=True)
    return row


def table(results: dict[str, dict[str, Any]]) -> str:
    """The results as a page."""
    lines = [
        "# What searching and refining are worth on real language models",
        "",
        "Command: `make value` (`python experiments/value/run.py [--model MODEL.gguf]`). What the columns mean is",
        "explained at the top of `run.py`. Mean scores on fresh test pairs; differences are paired, intervals 95 %.",
    ]
    for model, rows in results.items():
        lines += [
            "",
            f"## {model}, answers by {', '.join(sorted({row['engine'] for row in rows.values()}))}",
            "",
            "| task | seed | example | selected | refined | selected − example | refined − selected |"
            " prompt of selected | prompt of refined |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        gaps: dict[str, list[float]] = {}
        for key, row in rows.items():
            task, seed = key.split("#")
            scores = {name: np.array(row[name]["scores"]) for name in CONTESTANTS}
            shown = []
            for first, second in COMPARISONS:
                mean, low, high = difference(scores[first], scores[second])
                gaps.setdefault(f"{first} − {second}", []).append(mean)
                shown.append(f"{mean:+.3f} ({low:+.3f} to {high:+.3f})")
            means = " | ".join(f"{scores[name].mean():.3f}" for name in CONTESTANTS)
            chosen = [f"{row[name]['prompt']} ({row[name]['source']})" for name in ("selected", "refined")]
            lines.append(f"| {task} | {seed} | {means} | {shown[0]} | {shown[1]} | {' | '.join(chosen)} |")
        lines.append("")
        for name, values in gaps.items():
            spread = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
            above, below = sum(v > 0 for v in values), sum(v < 0 for v in values)
            lines.append(
                f"- {name}: mean over tasks {np.mean(values):+.3f} ± {spread:.3f}; above on {above}, equal on"
                f" {len(values) - above - below}, below on {below} of {len(values)}"
            )
    return "\n".join(lines) + "\n"


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """The options that the experiments of this folder share."""
    parser.add_argument("--model", type=Path, help="a GGUF file (default: the embedded model)")
    parser.add_argument("--tasks", help="comma-separated names (default: those the model separates prompts on)")
    parser.add_argument("--seeds", default="0", help="comma-separated seeds")
    parser.add_argument("--cache", type=Path, default=HERE / "answers.db", help="where answers are kept")
    parser.add_argument("--output", type=Path, default=HERE, help="folder of the results")


def open_model(arguments: argparse.Namespace) -> Any:
    """The answering model, its answers kept."""
    model = lm.cached(lm.embedded(arguments.model), arguments.cache)
    # One judge of fluency, the small model, whichever model answers.
    model.mean_logprob, model.weighs_texts = lm.embedded().mean_logprob, True
    return model


def separating(model: LanguageModel) -> list[str]:
    """The bundled tasks on which the model tells prompts apart."""
    return [name for name in names() if bundled(name).measured_on.get(model.name)]


def fill(
    rows: dict[str, Any],
    arguments: argparse.Namespace,
    model: LanguageModel,
    measured: Callable[[Task, int], dict[str, Any]],
    save: Callable[[], None],
) -> None:
    """Measures the rows (task#seed) that are missing and saves after each."""
    for seed in arguments.seeds.split(","):
        for name in arguments.tasks.split(",") if arguments.tasks else separating(model):
            if f"{name}#{seed}" in rows:
                continue
            print(f"{model.name}, {name}, seed {seed}", flush=True)
            rows[f"{name}#{seed}"] = measured(bundled(name), int(seed))
            save()


def main() -> None:
    """Measures what is missing and writes the table after each task."""
    parser = argparse.ArgumentParser(description="Measure what searching and refining are worth on a model.")
    add_model_options(parser)
    arguments = parser.parse_args()
    target = arguments.output / "results.json"
    results: dict[str, dict[str, Any]] = json.loads(target.read_text()) if target.exists() else {}
    model = open_model(arguments)

    def save() -> None:
        target.write_text(json.dumps(results, ensure_ascii=False) + "\n")
        (arguments.output / "results.md").write_text(table(results))

    rows = results.setdefault(model.name, {})
    fill(rows, arguments, model, lambda task, seed: measure(task, model, seed), save)
    save()
    print(table(results))


if __name__ == "__main__":
    main()
