"""Evaluating proposals within a budget."""

from bestprompt.execution.budget import UNLIMITED, Budget, Price, Spend, spent, spent_writing
from bestprompt.execution.evaluator import Evaluator, Prices
from bestprompt.execution.schedule import Schedule
from bestprompt.execution.writer import Writer

__all__ = [
    "UNLIMITED",
    "Budget",
    "Evaluator",
    "Price",
    "Prices",
    "Schedule",
    "Spend",
    "Writer",
    "spent",
    "spent_writing",
]
