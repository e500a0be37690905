"""One self-contained HTML file: the prompt, the figures, every answer, and how to repeat the run."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bestprompt.ledger import Ledger
from bestprompt.report import figures, svg, texts
from bestprompt.report.contents import LONGEST_PROMPT, LONGEST_SAMPLE, contents
from bestprompt.report.wording import wording_map
from bestprompt.run.result import Recommendation
from bestprompt.run.sources import source_in_words
from bestprompt.types import SoftPromptSet

LONG_PROMPT = 400  # what is longer is folded in the leaderboard


def write_report(path: Path, ledger: Ledger, recommendation: Recommendation) -> Path:
    """Writes the report of a run; it needs no other file and no network.

    Args:
        path: The file to write.
        ledger: The run's record.
        recommendation: What the run concluded.
    """
    page = templates().get_template("report.html.j2").render(**contents(ledger, recommendation))
    _write_whole(path, page)
    return path


def write_search(path: Path, candidates: SoftPromptSet) -> Path:
    """Writes a page with a map of a candidate set and how it was found."""
    drawn = [
        ("Map of the prompts", figures.draw_search(candidates, wording_map(candidates.prompts, candidates.parents)))
    ]
    if history := candidates.details.get("history"):
        drawn.append(("How they were found", figures.draw_growth(*figures.rounds(history))))
    _write_whole(path, templates().get_template("search.html.j2").render(drawn=drawn, prompts=candidates.prompts))
    return path


@cache
def templates() -> Environment:
    """The templates of the page and of its parts."""
    made = Environment(
        loader=PackageLoader("bestprompt.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters |= {
        "visible": texts.visible,
        "shortened": texts.shortened,
        "one_line": texts.one_line,
        "level": svg.level,
        "source": source_in_words,
    }
    made.globals |= {
        "asset": asset,
        "LONG_PROMPT": LONG_PROMPT,
        "LONGEST_PROMPT": LONGEST_PROMPT,
        "SAMPLE": LONGEST_SAMPLE,
    }
    return made


def asset(name: str) -> Markup:
    """A style sheet or script of this package, to stand in a page as it is."""
    return Markup(files("bestprompt.report").joinpath("templates", name).read_text(encoding="utf-8"))


def _write_whole(path: Path, text: str) -> None:
    """Writes all of a file or leaves what was there; readable by its owner alone."""
    if path.exists() and not path.is_file():  # a pipe or a device is written to, and not put aside
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
        return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        # Half a character, which a prompt may hold, has no place in UTF-8.
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
