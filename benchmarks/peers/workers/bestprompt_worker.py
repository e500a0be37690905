"""bestprompt itself, through the same proxy as the others.

``options.settings`` are dotted keys of its settings file. With ``options.written`` that share of the calls asks the
model for prompts, as ``plain_worker`` does, which are then candidates to choose from.
"""

from __future__ import annotations

from typing import Any

from job import Job, serve
from plain_worker import written

import bestprompt as bp
from bestprompt.run.settings import load_settings


def choose(job: Job) -> dict[str, Any]:
    """One run."""
    task = bp.Task.from_pairs(
        [(pair["input"], pair["answer"]) for pair in job.pairs],
        job.examples,
        scorer=lambda output, pair: job.score(pair.input, output),
        template=job.template,
        max_tokens=job.max_tokens,
    )
    settings = load_settings(None, {"all_zero": "continue", **job.options.get("settings", {})})
    lm = bp.lm.openai("m", job.url + "/v1", concurrency=2)
    others = written(job, int(job.options.get("written", 0) * job.budget))[len(job.examples) :]
    rec = bp.optimize(task, lm, budget=job.budget - job.calls, seed=job.seed, config=settings, candidates=others)
    return {
        "prompt": rec.prompt_to_use,
        "stated": rec.score,
        "own_calls": job.calls + rec.calls,
        "proposals": len(rec.candidates.prompts) - len(job.examples),
        "interval": list(rec.interval),
        "pairs": int(rec.choice.counts[rec.candidate_to_use]),
        "observed": float(rec.choice.means[rec.candidate_to_use]),
    }


if __name__ == "__main__":
    serve(choose)
