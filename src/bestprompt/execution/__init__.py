"""Evaluating proposals within a budget."""

from bestprompt.execution.budget import UNLIMITED, Budget, Price, Spend, spent, spent_on_ideas, spent_writing
from bestprompt.execution.evaluator import Evaluator
from bestprompt.execution.in_flight import AsynchronousEvaluator, recorded_rounds
from bestprompt.execution.jobs import Prices
from bestprompt.execution.questions import Questions
from bestprompt.execution.schedule import HELD_OUT, Schedule
from bestprompt.execution.writer import Writer

__all__ = [
    "HELD_OUT",
    "UNLIMITED",
    "AsynchronousEvaluator",
    "Budget",
    "Evaluator",
    "Price",
    "Prices",
    "Questions",
    "Schedule",
    "Spend",
    "Writer",
    "recorded_rounds",
    "spent",
    "spent_on_ideas",
    "spent_writing",
]
