"""Evaluating proposals within a budget."""

from bestprompt.execution.budget import UNLIMITED, Budget, Price, Spend
from bestprompt.execution.evaluator import Evaluator, Prices
from bestprompt.execution.schedule import Schedule

__all__ = ["UNLIMITED", "Budget", "Evaluator", "Price", "Prices", "Schedule", "Spend"]
