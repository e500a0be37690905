"""promptolution's CAPO and EvoPrompt (genetic), which take all examples as their first population; with
``options.written`` also prompts that the model is asked for, as ``plain_worker`` does, until there are enough to breed.

Neither has a budget in calls. CAPO races on blocks of five pairs, so many that two steps fit, until the proxy refuses,
and then returns what its last finished step left; EvoPrompt makes two, three or four steps on as many pairs as then fit
the budget.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pandas as pd
from job import Job, serve
from plain_worker import written
from promptolution.llms.base_llm import BaseLLM
from promptolution.optimizers.capo import CAPO
from promptolution.optimizers.evoprompt_ga import EvoPromptGA
from promptolution.predictors.base_predictor import BasePredictor
from promptolution.tasks.reward_tasks import RewardTask


class Answers(BaseLLM):
    """The task's model; the predictor has put prompt and input into the product's frame."""

    def __init__(self, job: Job, writes: bool) -> None:
        super().__init__()
        self.job, self.writes = job, writes

    def _get_response(self, prompts: list[str], system_prompts: list[str]) -> list[str]:
        if self.writes:
            return [self.job.write(prompt) for prompt in prompts]
        return [self.job.ask([{"role": "user", "content": prompt}]) for prompt in prompts]


class Framed(BasePredictor):
    """Prompt and input in the product's template, the answer as it is."""

    def predict(self, prompts: Any, xs: list[str], system_prompts: Any = None) -> tuple[list[str], list[str]]:
        """Answers, and inputs with answers."""
        outputs = self.llm.get_response([self.llm.job.render(str(p), x) for p, x in zip(prompts, xs, strict=True)])
        return outputs, [f"{x}\n{output}" for x, output in zip(xs, outputs, strict=True)]

    def _extract_preds(self, preds: list[str]) -> list[str]:
        return preds


def choose(job: Job) -> dict[str, Any]:
    """One run."""
    random.seed(job.seed)
    np.random.seed(job.seed)  # noqa: NPY002 - what the package draws from
    capo = job.options["method"] == "capo"
    wanted = max(4, job.budget // 60) if job.options.get("written") else 0
    first = written(job, max(wanted - len(job.examples), 0))
    population, left = len(first), job.budget - job.calls
    steps = left if capo else max(2, (job.budget // 75).bit_length())
    block = 5 if capo else max(2, (left - steps * population) // (population * (1 + steps)))
    crossovers = max(2, min(4, population // 2))
    races = max(1, left // 2 // (block * (population + crossovers)))  # blocks of one race: two steps have to fit
    task = RewardTask(
        pd.DataFrame([{"x": p["input"], "y": p["answer"], "question": p["input"]} for p in job.pairs]),
        lambda output, question: job.score(question, output),
        y_column="y",
        reward_columns=["question"],
        task_description=job.description,
        n_subsamples=block,
        eval_strategy="sequential_block" if capo else "subsample",
        seed=job.seed,
    )
    common = {"predictor": Framed(Answers(job, False)), "task": task, "meta_llm": Answers(job, True)}
    if capo:
        sizes = {"crossovers_per_iter": crossovers, "max_n_blocks_eval": races}
        shots = {"check_fs_accuracy": False, "create_fs_reasoning": False}
        optimizer = CAPO(**common, initial_prompts=first, **sizes, **shots)
    else:
        optimizer = EvoPromptGA(**common, initial_prompts=first)
    prompts = optimizer.optimize(steps)
    stated = float(optimizer.scores[0]) if len(optimizer.scores) else None
    return {"prompt": prompts[0].construct_prompt(), "stated": stated, "pairs": block * (races if capo else 1)}


if __name__ == "__main__":
    serve(choose)
