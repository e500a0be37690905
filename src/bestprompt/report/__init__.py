"""The report: pure data functions, drawing functions, and one HTML file."""

from bestprompt.report.html import write_report

__all__ = ["write_report"]
