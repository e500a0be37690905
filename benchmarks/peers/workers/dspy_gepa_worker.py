"""GEPA as DSPy has it, asked for as many metric calls as the budget has."""

from __future__ import annotations

import tempfile
from typing import Any

import dspy
from dspy.teleprompt.gepa import InstructionProposer
from dspy_frame import prepare, result
from gepa.core.result import GEPAResult
from gepa.core.state import GEPAState
from job import Job, serve


def choose(job: Job) -> dict[str, Any]:
    """One run. Refused answers count as failures; a refused reflection raises, and what was saved before it counts."""
    program, writer, examples = prepare(job)
    held = min(len(examples) // 2, max(5, job.budget // 6))

    def metric(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> Any:
        score = job.score(gold.input, pred.answer)
        feedback = "Correct." if score >= 1 else f"The expected answer is {gold.answer!r}."
        return dspy.Prediction(score=score, feedback=feedback)

    with tempfile.TemporaryDirectory() as folder:
        optimizer = dspy.GEPA(
            metric=metric,
            max_metric_calls=job.budget,
            reflection_lm=writer,
            instruction_proposer=InstructionProposer(adapter=dspy.settings.adapter),  # JSON is beyond small writers
            num_threads=1,
            track_stats=True,
            log_dir=folder,
            seed=job.seed,
        )
        try:
            optimizer.compile(program, trainset=examples[held:], valset=examples[:held])
        except Exception as error:
            print("ended by", error)
        found = GEPAResult.from_state(GEPAState.load(folder))
    program.signature = program.signature.with_instructions(next(iter(found.candidates[found.best_idx].values())))
    stated = found.val_aggregate_scores[found.best_idx]
    return {
        **result(program, stated),
        "own_calls": found.total_metric_calls,
        "proposals": len(found.candidates) - 1,
        "pairs": held,
    }


if __name__ == "__main__":
    serve(choose)
