"""The report: pure data functions, drawing functions, and one HTML file."""

from bestprompt.report.data import leaderboard
from bestprompt.report.html import write_report

__all__ = ["leaderboard", "write_report"]
