"""Scores of a real language model kept as a table, on which any method runs in seconds with the truth known."""

from bestprompt.replay.building import Progress, TableSize, build_table, union
from bestprompt.replay.table import ScoreTable
from bestprompt.replay.task import ReplayTask

__all__ = ["Progress", "ReplayTask", "ScoreTable", "TableSize", "build_table", "union"]
