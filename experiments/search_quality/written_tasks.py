"""The example prompts of the tasks under ``tasks/``: ``tuning`` to choose settings on, ``untouched`` for the end."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from bestprompt.tasks import Task

FOLDER = Path(__file__).parent / "tasks"


def written_tasks(group: Literal["tuning", "untouched"]) -> dict[str, list[str]]:
    """Example prompts by the name of the task."""
    loaded = [Task.load(path) for path in sorted((FOLDER / group).glob("*.toml"))]
    return {task.name: list(task.examples) for task in loaded}
