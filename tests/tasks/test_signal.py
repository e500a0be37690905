"""What the package says about its tasks is what was measured, on the tasks as they are now."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bestprompt.tasks import bundled, names

RESULTS = json.loads((Path(__file__).parents[2] / "experiments" / "task_signal" / "results.json").read_text())


@pytest.mark.golden
@pytest.mark.parametrize("name", names())
def test_verdicts_belong_to_the_shipped_tasks(name: str) -> None:
    task = bundled(name)
    measured = {model: tasks[name] for model, tasks in RESULTS.items() if name in tasks}
    assert task.measured_on == {model: entry["separates"] for model, entry in measured.items()}
    assert all(entry["task"] == task.fingerprint for entry in measured.values())  # else: make task-signal
    assert all(set(entry["means"]) == set(task.examples[:12]) for entry in measured.values())


def test_verdicts_follow_from_the_figures() -> None:
    for tasks in RESULTS.values():
        for entry in tasks.values():
            spread = np.std(list(entry["means"].values()), ddof=1)
            assert spread == pytest.approx(entry["spread"], abs=2e-3)
            assert entry["ratio"] == pytest.approx(spread / entry["se"], rel=0.05) or entry["se"] < 0.01
            if entry["separates"]:
                assert entry["ratio"] >= 2
                assert max(entry["means"].values()) > entry["chance"]


def test_the_bar() -> None:
    separating = {model: sum(entry["separates"] for entry in tasks.values()) for model, tasks in RESULTS.items()}
    embedded = "SmolLM2-135M-Instruct"
    assert separating.pop(embedded) >= 2
    for model, count in separating.items():
        if set(RESULTS[model]) == set(names()):  # the larger model's table is complete
            assert count >= 5
