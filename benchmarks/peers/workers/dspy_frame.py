"""DSPy in the product's frame: prompt and input in one user message, demonstrations as earlier turns.

DSPy's own frame asks for ``[[ ## answer ## ]]`` around everything, which models of this size never write, so that every
answer would count as a failure. Requests for new instructions keep DSPy's frame; there an answer that forgets the
marks is taken as it is, where DSPy would ask once more and then give up.
"""

from __future__ import annotations

import random
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError
from job import WRITER, Job


class Frame(dspy.ChatAdapter):
    """Renders ``input -> answer`` by the product's template and everything else as DSPy does."""

    def __init__(self, job: Job) -> None:
        super().__init__(use_json_adapter_fallback=False)
        self.job = job

    def format(self, signature: Any, demos: list[dict[str, Any]], inputs: dict[str, Any]) -> list[dict[str, Any]]:
        """Messages of one call."""
        if not _is_task(signature):
            return super().format(signature, demos, inputs)
        turns = []
        for demo in demos:
            turns.append({"role": "user", "content": self.job.render(signature.instructions, demo["input"])})
            turns.append({"role": "assistant", "content": str(demo["answer"])})
        return [*turns, {"role": "user", "content": self.job.render(signature.instructions, inputs["input"])}]

    def parse(self, signature: Any, completion: str) -> dict[str, Any]:
        """The answer as it is, or the fields of a proposal."""
        if _is_task(signature):
            return {"answer": completion}
        try:
            return super().parse(signature, completion)
        except AdapterParseError:
            return dict.fromkeys(signature.output_fields, completion.strip())


def _is_task(signature: Any) -> bool:
    return list(signature.input_fields) == ["input"] and list(signature.output_fields) == ["answer"]


def prepare(job: Job) -> tuple[Any, Any, list[Any]]:
    """Program, writing model and examples of one run."""
    at = {"api_base": job.url + "/v1", "api_key": "none", "cache": False, "num_retries": 0}
    task_lm = dspy.LM("openai/m", temperature=0.0, max_tokens=job.max_tokens, **at)
    dspy.configure(lm=task_lm, adapter=Frame(job))
    start = random.Random(job.seed).choice(job.examples)
    program = dspy.Predict(dspy.Signature("input -> answer", start))
    return program, dspy.LM("openai/m", **WRITER, **at), [dspy.Example(**p).with_inputs("input") for p in job.pairs]


def result(program: Any, stated: float) -> dict[str, Any]:
    """What was chosen."""
    demos = [[str(demo["input"]), str(demo["answer"])] for demo in program.demos]
    return {"prompt": program.signature.instructions, "demos": demos, "stated": stated}
