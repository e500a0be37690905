"""Progress where there is no terminal: lines, few of them, also while the model is waited for."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console
from rich.text import Text

from bestprompt.cli import progress
from bestprompt.cli.progress import ProgressLines
from bestprompt.ledger import Entry


def test_lines_say_how_far_a_run_is_and_what_it_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressLines() as lines:
        lines.stage("evaluating", 40)
        for n in range(20):
            lines.evaluated(Entry(0, n, 0, n, {}, "ok", "x", None, 1.0))
        lines.stage("refining", 40)
        lines._said_at -= 2.0
        lines.stage("refining, 1 retry; waiting 4 s: too many requests", 40)
        lines.stage("refining, 2 retries; waiting 4 s: too many requests", 40)
        lines.warn("little is left")
    assert capsys.readouterr().err.splitlines() == [
        "evaluating 0/40",
        *(f"evaluating {done}/40, mean of the last {done}: 1.00" for done in (4, 8, 12, 16, 20)),
        "refining 20/40",
        "refining, 1 retry; waiting 4 s: too many requests 20/40",
        "warning: little is left",
    ]


def test_quiet_is_quiet_but_for_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ProgressLines(quiet=True)
    lines.stage("evaluating", 40)
    lines.pilot([])
    assert not lines.goes_on("nobody is there")
    lines.warn("all the same")
    assert capsys.readouterr().err == "warning: all the same\n"


def test_the_count_stays_readable_where_the_terminal_is_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (60, 80, 200):
        drawn = Console(width=width, file=StringIO(), force_terminal=True)
        monkeypatch.setattr(progress, "errors", drawn)
        bar = progress.ProgressBar()
        bar.stage("evaluating, 14 retries; waiting 16 s: m: Error code: 429 - Rate limit reached for m", 1000)
        for n in range(123):
            bar.evaluated(Entry(0, n, 0, n, {}, "ok", "x", None, 1.0))
        drawn.print(bar._bar.get_renderable())
        line = Text.from_ansi(drawn.file.getvalue()).plain.strip()  # type: ignore[attr-defined]
        assert "123/1000" in line
        assert "evaluating, 14 retries" in line
        assert "\n" not in line, "one line"
        assert len(line) <= width
        assert ("mean of the last 50" in line) == (width == 200)
