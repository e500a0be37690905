"""One self-contained HTML file: figures, leaderboard, sample answers, and how to repeat the run."""

from __future__ import annotations

import json
import os
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import plotly.io
from jinja2 import Environment

from bestprompt.execution import spent_writing
from bestprompt.ledger import Ledger
from bestprompt.report import data, figures
from bestprompt.run.result import Recommendation, Refinement


def write_report(path: Path, ledger: Ledger, recommendation: Recommendation) -> Path:
    """Writes the report of a run; it needs no other file and no network.

    Args:
        path: The file to write.
        ledger: The run's record.
        recommendation: What the run concluded.
    """
    entries = list(ledger.entries())
    candidates = recommendation.candidates
    rows = data.leaderboard(recommendation)
    course = data.progress(entries, len(candidates.prompts))
    drawn = [
        ("Leaderboard", "Estimated mean score with 95 % intervals; coloured: the winner and what is tied with it.",
         figures.draw_leaderboard(rows)),
        ("Where the calls went", "One dot per evaluation: early calls spread out, late calls compare the finalists.",
         figures.draw_allocation(course, len(candidates.prompts))),
        ("Progress", "Score of the leading candidate as evaluations came in.", figures.draw_progress(course)),
        ("Map of the candidates", "Near each other: similarly worded. Size: evaluations. Lines: from parent to child.",
         figures.draw_map(data.candidate_map(candidates, recommendation), candidates.prompts)),
    ]  # fmt: skip
    refined = recommendation.refinement
    drawn_of_refinement = [] if refined is None else _refinement_figures(refined)
    good, bad = data.samples(entries, recommendation.choice.candidate)
    facts = ledger.facts()
    html = _template().render(
        recommendation=recommendation,
        rows=rows,
        figures=[(title, text, _embed(figure, first=i == 0)) for i, (title, text, figure) in enumerate(drawn)],
        refinement=refined,
        refinement_figures=[(title, text, _embed(figure, first=False)) for title, text, figure in drawn_of_refinement],
        good=good,
        bad=bad,
        facts=facts,
        settings=json.dumps(facts.get("settings", {}), indent=2),
        written=int(spent_writing(ledger).calls),
        failures=sum(not e.final for e in entries),
        refusals=sum(e.status == "refused" for e in entries),
    )
    _write_whole(path, html)
    return path


def _write_whole(path: Path, text: str) -> None:
    """Writes all of a file or leaves what was there; readable by its owner alone."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        # Half a character, which a prompt may hold, has no place in UTF-8.
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _refinement_figures(refinement: Refinement) -> list[tuple[str, str, Any]]:
    drawn = []
    if refinement.tried:
        text = (
            "Each refined prompt: what was predicted of it (95 %) and what it scored. Larger dots: more evaluations; "
            "on the dashed line the two agree."
        )
        drawn.append(("Predicted and observed", text, figures.draw_predictions(data.predictions(refinement))))
    if refinement.looks:
        text = (
            "What the next call was expected to gain in the set and outside it, whenever the run looked. Filled: whose "
            "turn it was."
        )
        drawn.append(("Selecting or refining", text, figures.draw_turns(data.turns(refinement))))
    return drawn


def _template() -> Any:
    source = files("bestprompt.report").joinpath("report.html.j2").read_text(encoding="utf-8")
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source)


def _embed(figure: Any, first: bool) -> str:
    # The library goes into the file once, with the first figure.
    return str(plotly.io.to_html(figure, include_plotlyjs=first, full_html=False, config={"displaylogo": False}))
