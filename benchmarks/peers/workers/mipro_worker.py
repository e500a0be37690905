"""DSPy's MIPROv2: instructions alone, or with demonstrations (``options.demos``).

It has no budget in calls. Trials are what is left of the budget after its own proposals, bootstrapping and first
evaluation, by the formula in its source; how many instructions it writes for so many trials is DSPy's own rule. With
``options.written`` that share of the calls asks for prompts as ``plain_worker`` does, and MIPROv2 only judges them, by
its search with minibatches.
"""

from __future__ import annotations

from typing import Any

import dspy
from dspy_frame import prepare, result
from job import Job, serve
from plain_worker import written

SUMMARIES = 8  # calls for describing data and program, at most


def sizes(budget: int, demos: bool) -> tuple[int, int, int]:
    """Pairs it evaluates on, trials, instructions it writes."""
    held = max(10, min(35, budget // 6))
    candidates = max(3, min(8, budget // 60))
    bootstrapping = 10 * (candidates - 2) if demos else 5 * (candidates - 2)
    left = budget - SUMMARIES - candidates - bootstrapping - held
    return held, max(1, left // held), candidates


def judged(job: Job, optimizer: Any, program: Any, examples: list[Any], prompts: list[str]) -> tuple[Any, int]:
    """MIPROv2's last step alone: three trials for two instructions, which is its rule; whole sets every tenth trial.

    Returns the program and the size of the whole set.
    """
    trials, left = 3 * len(prompts) // 2, job.budget - job.calls
    held = max(15, min(35, left // (3 * (trials // 10 + 2))))
    size = max(2, (left - held * (trials // 10 + 2)) // trials)
    evaluate = dspy.Evaluate(devset=examples[:held], metric=optimizer.metric, num_threads=1, max_errors=10**6)
    optimizer._set_random_seeds(job.seed)
    program.signature = program.signature.with_instructions(prompts[0])
    space = ({0: prompts}, None, evaluate, examples[:held], trials, True, size, 10, job.seed)
    return optimizer._optimize_prompt_parameters(program, *space), held


def choose(job: Job) -> dict[str, Any]:
    """One run. Refused calls count as failures, as DSPy takes them."""
    program, writer, examples = prepare(job)
    demos = int(job.options.get("demos", 0))
    held, trials, candidates = sizes(job.budget, bool(demos))

    def metric(example: Any, prediction: Any, trace: Any = None) -> float:
        score = job.score(example.input, prediction.answer)
        return score if trace is None else score >= 1

    optimizer = dspy.MIPROv2(
        metric=metric,
        prompt_model=writer,
        auto=None,
        num_candidates=candidates,
        max_bootstrapped_demos=demos,
        max_labeled_demos=demos,
        seed=job.seed,
        num_threads=1,
        max_errors=10**6,
    )
    if share := job.options.get("written"):
        best, held = judged(job, optimizer, program, examples, written(job, int(share * job.budget)))
    else:
        best = optimizer.compile(
            program, trainset=examples[held:], valset=examples[:held], num_trials=trials, minibatch=False
        )
    return {**result(best, best.score / 100), "own_calls": None, "pairs": held}


if __name__ == "__main__":
    serve(choose)
