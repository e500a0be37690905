"""Prompts that a model writes while a run goes on: do they help, can they harm, and is the verdict still true?

    python benchmarks/ideas.py run [--minutes 10] [--worlds 40] [--writers good,harmful]
    python benchmarks/ideas.py table          # results/ideas.md

Whole runs (``bp.optimize``, temperature 0, four given prompts, 40 pairs) on simulated models whose prompts have a known
level on the logit scale and whose pairs have a difficulty. A scripted writer answers every request for a prompt: what
it writes has the level of the prompt it was made from plus N(shift, spread²).

good: +.5 ± .5.  useless: 0 ± .3.  harmful: −1 ± .5.  mute: writes nothing that could be tried.
mixed: good where it is shown mistakes, harmful else.
memory: the level of the parent, and every pair that it was shown, right: what a prompt with leaked answers would do.

``examples`` is the same run without ideas. ``memory, judged by what it saw`` lifts the rule that pairs which an author
was shown do not judge its prompt; it shows the bias that the rule removes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.special import expit

import bestprompt as bp
from bestprompt.proposals import Reflection
from bestprompt.rng import stream
from bestprompt.run.settings import load_settings
from bestprompt.types import ADDED, Request

RESULTS = Path(__file__).parent / "results"
RECORD = RESULTS / "ideas.json"
PAIRS, GIVEN, CALLS, SPREAD = 40, 4, 150, 1.0
WRITERS = ("examples", "good", "useless", "harmful", "mute", "mixed", "memory", "memory, judged by what it saw")
STEPS = {"good": (0.5, 0.5), "useless": (0.0, 0.3), "harmful": (-1.0, 0.5), "memory": (0.0, 0.0)}
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(61)


class World:
    """A simulated model: the level of every prompt, the difficulty of every pair, and who writes new prompts."""

    def __init__(self, seed: int, writer: str) -> None:
        self.seed, self.writer = seed, writer.partition(",")[0]
        rng = np.random.default_rng([7, seed])
        self.prompts = [self._text(f"given {n}") for n in range(GIVEN)]
        self.level = dict(zip(self.prompts, rng.normal(0.0, 0.6, GIVEN).tolist(), strict=True))
        self.difficulty = rng.normal(0.0, SPREAD, PAIRS)
        self.knows: dict[str, frozenset[int]] = {prompt: frozenset() for prompt in self.prompts}

    def _text(self, what: str) -> str:
        said = hashlib.sha256(f"{self.seed} {what}".encode()).hexdigest()
        return f"Answer as {said[:14]} would, with {said[14:30]} and {said[30:44]}"

    def truth(self, prompt: str) -> float:
        """Mean score over all pairs that there could be."""
        return float(expit(self.level[prompt] - SPREAD * NODES) @ (WEIGHTS / WEIGHTS.sum()))

    def __call__(self, request: Request) -> str:
        text = request.messages[-1].content
        if "new prompt only" in text:
            return self._write(text, request.seed)
        prompt, item = text.rsplit("\n\n", 1)
        number = int(item.split()[-1])
        chance = expit(self.level[prompt] - self.difficulty[number])
        right = number in self.knows[prompt] or stream(self.seed, "answer", prompt, number).random() < chance
        return f"answer {number}" if right else "something else"

    def _write(self, ask: str, seed: int) -> str:
        if self.writer == "mute":
            return "8"
        parent = max((p for p in self.level if p in ask), key=lambda p: -ask.index(p))
        new = self._text(ask + str(seed))
        kind = self.writer if self.writer != "mixed" else "good" if "WRONG ANSWER" in ask else "harmful"
        shift, spread = STEPS[kind]
        self.level[new] = self.level[parent] + float(stream(self.seed, "step", new).normal(shift, spread))
        shown = frozenset(n for n in range(PAIRS) if f"INPUT: item {n}\n" in ask)
        self.knows[new] = self.knows[parent] | shown if self.writer == "memory" else frozenset()
        return f"Sure! Here is the improved prompt:\n\n{new}"


def one_run(writer: str, seed: int) -> list[float]:
    """True and stated score, interval, probability of being best, whether it is, calls to write, added, calls."""
    world = World(seed, writer)
    pairs = [(f"item {n}", f"answer {n}") for n in range(PAIRS)]
    task = bp.Task.from_pairs(pairs, world.prompts, scorer="exact")
    on = "off" if writer == "examples" else "on"
    config = load_settings(None, {"search.source": "examples", "ideas.mode": on, "budget.calls": CALLS, "seed": seed})
    shows, Reflection.shows_answers = Reflection.shows_answers, not writer.endswith("saw")
    try:
        rec = bp.optimize(task, bp.lm.function(world, name="world", deterministic=True), config=config)
    finally:
        Reflection.shows_answers = shows
    truths = [world.truth(prompt) for prompt in rec.candidates.prompts]
    truth = truths[rec.choice.candidate]
    wrote = sum(each.calls for each in rec.refinement.sources) if rec.refinement else 0
    added = rec.candidates.sources[rec.choice.candidate] in ADDED
    best = truth >= max(truths) - 1e-12
    return [
        truth,
        rec.score,
        *rec.interval,
        rec.probability_best,
        float(best),
        float(wrote),
        float(added),
        float(rec.calls),
    ]


def run(minutes: float, worlds: int, writers: list[str]) -> None:
    """Goes on where the record ends."""
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    ends = time.monotonic() + 60 * minutes
    for seed in range(worlds):
        for writer in writers:
            rows = record.setdefault(writer, [])
            if len(rows) == seed:
                rows.append(one_run(writer, seed))
        RECORD.write_text(json.dumps({k: [[round(v, 5) for v in r] for r in rows] for k, rows in record.items()}))
        if time.monotonic() > ends:
            return


HEAD = """# Ideas while a run goes on, on simulated models

Command: `python benchmarks/ideas.py run`, then `table`; what the writers are is explained at the top of the script.
{calls} calls, {pairs} pairs, {given} given prompts. Columns: worlds; true score of what is recommended; the same less
that of the run without ideas in the same world (± two standard errors); stated less true score; share of 95 % intervals
that cover the mean over all pairs there could be (± the standard error of a share of .95 in so many worlds); share
right among runs that state a probability of at least .9 of being best (how many do); mean stated probability of being
best, and how often it was; calls that wrote; share of runs that recommend a written prompt; calls in all.

| writer | worlds | true score | less examples | stated − true | covers | right when ≥ .9 | stated / was best | \
calls to write | written wins | calls |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def table() -> None:
    """Writes ``ideas.md``."""
    record = json.loads(RECORD.read_text())
    lines = [HEAD.format(calls=CALLS, pairs=PAIRS, given=GIVEN)]
    base = np.array(record["examples"])
    for writer in (w for w in WRITERS if w in record):
        r = np.array(record[writer][: len(base)])
        count = len(r)
        truth, stated, low, high, sure, best, wrote, added, calls = r.T
        gain = truth - base[:count, 0]
        covers, high_ones = (low <= truth) & (truth <= high), sure >= 0.9
        right = f"{best[high_ones].mean():.2f} ({high_ones.sum()})" if high_ones.any() else "–"
        shown = [
            f"{writer} | {count} | {truth.mean():.3f}",
            f"{gain.mean():+.3f} ± {2 * gain.std(ddof=1) / np.sqrt(count):.3f} | {(stated - truth).mean():+.3f}",
            f"{covers.mean():.3f} ± {np.sqrt(0.95 * 0.05 / count):.3f} | {right}",
            f"{sure.mean():.2f} / {best.mean():.2f} | {wrote.mean():.1f} | {added.mean():.2f} | {calls.mean():.0f}",
        ]
        lines.append(f"| {' | '.join(shown)} |")
    (RESULTS / "ideas.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--worlds", type=int, default=40)
    parser.add_argument("--writers", type=lambda text: text.split(";"), default=list(WRITERS))
    given = parser.parse_args()
    actions: dict[str, Callable[[], None]] = {
        "run": lambda: run(given.minutes, given.worlds, given.writers), "table": table,
    }  # fmt: skip
    actions[given.what]()


if __name__ == "__main__":
    main()
