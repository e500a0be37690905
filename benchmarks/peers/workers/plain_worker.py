"""What a careful user would write in an hour: all prompts on as many pairs as fit, or halving.

With ``options.written`` that share of the calls asks for prompts, which join the examples.
"""

from __future__ import annotations

import random
from typing import Any

from job import Job, serve

ASK = "Write this instruction in other words and keep its meaning. Answer with the new instruction only.\n\n"


def uniform(job: Job, prompts: list[str]) -> dict[str, Any]:
    """Every prompt on the same pairs, the best mean."""
    each = min(len(job.pairs), (job.budget - job.calls) // len(prompts))
    means = [sum(job.evaluate(prompt, pair) for pair in job.pairs[:each]) / each for prompt in prompts]
    return {"prompt": prompts[means.index(max(means))], "stated": max(means), "pairs": each}


def written(job: Job, count: int) -> list[str]:
    """The examples and up to ``count`` others that the model writes."""
    rng, prompts = random.Random(job.seed), list(job.examples)
    for _ in range(count):
        lines = job.write(ASK + rng.choice(job.examples)).strip().splitlines()
        prompts += [line for line in lines[:1] if 5 < len(line) < 500 and line not in prompts]
    return prompts


def halving(job: Job, prompts: list[str]) -> dict[str, Any]:
    """Sequential halving: every survivor meets the same further pairs in each round, then the worse half leaves."""
    alive, at, sums = list(prompts), 0, dict.fromkeys(prompts, 0.0)
    rounds = max(1, (len(prompts) - 1).bit_length())
    for left in range(rounds, 0, -1):
        each = min((job.budget - job.calls) // left // len(alive), len(job.pairs) - at)
        for prompt in alive:
            sums[prompt] += sum(job.evaluate(prompt, pair) for pair in job.pairs[at : at + each])
        at += each
        alive = sorted(alive, key=lambda prompt: -sums[prompt])[: (len(alive) + 1) // 2]
    return {"prompt": alive[0], "stated": sums[alive[0]] / max(at, 1), "pairs": at}


def choose(job: Job) -> dict[str, Any]:
    """One run."""
    prompts = written(job, int(job.budget * job.options.get("written", 0)))
    return {"uniform": uniform, "halving": halving}[job.options["method"]](job, prompts)


if __name__ == "__main__":
    serve(choose)
