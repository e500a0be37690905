"""Linear algebra leaves the cores to those who send requests, while there are any."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_info

import bestprompt as bp
from bestprompt.run.settings import load_settings
from bestprompt.types import Request


def blas_threads() -> set[int]:
    np.linalg.inv(np.eye(2))  # the library is loaded
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_one_thread_of_arithmetic_beside_evaluations_in_flight() -> None:
    before, meanwhile = blas_threads(), set()

    def answer(request: Request) -> str:
        meanwhile.update(blas_threads())
        return request.messages[-1].content.split()[-1]

    task = bp.Task.from_pairs([(f"w{n}", f"w{n}") for n in range(20)], ["Say it.", "Repeat it."], scorer="exact")
    config = load_settings(None, {"budget.calls": 12, "selection.in_flight": 4})
    bp.optimize(task, bp.lm.function(answer, concurrency=4), config=config)
    assert meanwhile == {1}
    assert blas_threads() == before
