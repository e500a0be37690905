"""The tasks of ``experiments/search_quality/tasks`` load; what the search makes of them is not looked at here."""

from pathlib import Path

import pytest

from bestprompt.tasks import Task

FOLDER = Path(__file__).parents[2] / "experiments" / "search_quality" / "tasks"


@pytest.mark.parametrize("group", ["tuning", "untouched"])
def test_six_tasks_of_ten_prompts_load(group: str) -> None:
    tasks = [Task.load(path) for path in sorted((FOLDER / group).glob("*.toml"))]
    assert len({task.name for task in tasks}) == 6
    assert {len(task.examples) for task in tasks} == {10}
    assert all(6 <= len(task.pairs) <= 10 for task in tasks)
