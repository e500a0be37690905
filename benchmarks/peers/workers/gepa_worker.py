"""gepa, as its README drives it: one prompt to start from, the model itself as the reflecting model.

It takes one start where the user has several prompts. ``options.screened`` spends a third of the budget on trying the
examples first and starts from the best; otherwise the start is an example drawn by the seed.
"""

from __future__ import annotations

import random
from typing import Any

import gepa
from job import Job, Refused, serve


def start(job: Job) -> str:
    """The prompt that gepa begins with."""
    if not job.options.get("screened"):
        return str(random.Random(job.seed).choice(job.examples))
    each = max(1, job.budget // 3 // len(job.examples))
    scores = [sum(job.evaluate(prompt, pair) for pair in job.pairs[:each]) for prompt in job.examples]
    return str(job.examples[scores.index(max(scores))])


def choose(job: Job) -> dict[str, Any]:
    """One run; when the proxy refuses, what gepa has found so far."""
    seed_prompt, spent = start(job), job.calls
    data = [{"input": p["input"], "answer": p["answer"], "additional_context": {}} for p in job.pairs]
    held = min(len(data) // 2, max(5, job.budget // 6))  # its Pareto set is evaluated whole for each accepted prompt
    refused = []

    def task_lm(messages: list[dict[str, str]]) -> str:
        system, user = (message["content"] for message in messages)
        return job.answer(system, user)

    def evaluator(data: dict[str, Any], response: str) -> Any:
        score = job.score(data["input"], response)
        feedback = "Correct." if score >= 1 else f"The expected answer is {data['answer']!r}."
        return gepa.adapters.default_adapter.default_adapter.EvaluationResult(score, feedback, None)

    class Stop:
        def on_error(self, event: Any) -> None:
            refused.append(isinstance(event["exception"], Refused))

    result = gepa.optimize(
        seed_candidate={"system_prompt": seed_prompt},
        trainset=data[held:],
        valset=data[:held],
        task_lm=task_lm,
        evaluator=evaluator,
        reflection_lm=lambda prompt: job.write(prompt if isinstance(prompt, str) else prompt[-1]["content"]),
        max_metric_calls=job.budget - spent,
        stop_callbacks=[lambda state: any(refused)],
        callbacks=[Stop()],
        raise_on_exception=False,
        seed=job.seed,
    )
    best = result.best_idx
    own = spent + (result.total_metric_calls or 0)
    return {
        "prompt": result.candidates[best]["system_prompt"],
        "stated": result.val_aggregate_scores[best],
        "own_calls": own,
        "pairs": held,
        "proposals": len(result.candidates) - 1,
    }


if __name__ == "__main__":
    serve(choose)
