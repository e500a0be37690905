"""Which tasks tell prompts apart, on which model: every example prompt on the same pairs to choose on.

    python benchmarks/peers/signal_of_tasks.py [--model file.gguf] [--minutes 9]      # results/peers_signal.json

Spread is the standard deviation between the prompts' means, error the standard error of one mean; equal prompts have a
ratio near 1. The answers are kept, so that the comparison does not pay for them again.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from environments import RESULTS
from grid import open_model
from problems import POOL, TASKS, TEST, load_task

from bestprompt.types import LanguageModel

PAIRS = 40
TARGET = RESULTS / "peers_signal.json"


def measure(name: str, lm: LanguageModel) -> dict[str, float | str]:
    """Spread and error of one task."""
    task = load_task(name)
    pairs = task.pairs[TEST : TEST + POOL][:PAIRS]
    rows = []
    for prompt in task.examples:
        answers = lm.complete([task.render(prompt, pair) for pair in pairs])
        texts = [getattr(answer, "text", "") for answer in answers]
        rows.append([scored.value for scored in task.scorer.score(texts, pairs)])
    scores = np.array(rows)
    means = scores.mean(axis=1)
    error = float(np.sqrt((scores.var(axis=1, ddof=1) / PAIRS).mean()))
    spread = float(means.std(ddof=1))
    return {
        "worst": round(float(means.min()), 3),
        "best": round(float(means.max()), 3),
        "spread": round(spread, 3),
        "error": round(error, 3),
        "ratio": round(spread / error, 2) if error else 0.0,
        "best prompt": task.examples[int(means.argmax())],
    }


def main() -> None:
    """Measures what is missing for as long as it may."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a GGUF file; the embedded model if left out")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    arguments = parser.parse_args()
    end, lm = time.monotonic() + 60 * arguments.minutes, open_model(arguments.model)
    record = json.loads(TARGET.read_text(encoding="utf-8")) if TARGET.exists() else {}
    for name in reversed(TASKS):
        if name in record.setdefault(lm.name, {}) or time.monotonic() > end:
            continue
        record[lm.name][name] = measure(name, lm)
        print(lm.name, name, record[lm.name][name], flush=True)
        TARGET.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
