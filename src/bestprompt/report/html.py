"""One self-contained HTML file: the prompt, the figures, every answer, and how to repeat the run."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bestprompt.execution import HELD_OUT, spent_writing
from bestprompt.ledger import Entry, Ledger
from bestprompt.report import answers, assurance, figures, refining, svg, texts
from bestprompt.report.course import course, strips
from bestprompt.report.data import sources
from bestprompt.report.wording import wording_map
from bestprompt.run.result import Recommendation, Refinement
from bestprompt.types import Pair

# What a page shows of long lists and long texts; all of it is in the ledger.
MOST_ROWS, MOST_STRIPS, MOST_SAMPLES, LONG_PROMPT = 200, 20, 8, 400
LONGEST_PROMPT, LONGEST_SAMPLE = 4000, 500

SOURCES: Mapping[str, str] = {
    "example": "yours",
    "file": "from your file",
    "latent": "varied from yours",
    "rewrite": "written by the model",
    "proposed": "from your own source",
    "refined": "found by refinement",
}


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


def write_search(path: Path, candidates: Any) -> Path:
    """Writes a page with a map of a candidate set and how it was found."""
    drawn = [
        ("Map of the prompts", figures.draw_search(candidates, wording_map(candidates.prompts, candidates.parents)))
    ]
    if history := candidates.details.get("history"):
        drawn.append(("How they were found", figures.draw_growth(*figures.rounds(history))))
    _write_whole(path, templates().get_template("search.html.j2").render(drawn=drawn, prompts=candidates.prompts))
    return path


def contents(ledger: Ledger, recommendation: Recommendation) -> dict[str, Any]:
    """All that the page shows, as values and drawn figures."""
    entries, pairs, facts = list(ledger.entries()), ledger.pairs(), ledger.facts()
    finished = ledger.finished() is not None
    rows = recommendation.leaderboard
    found = assurance.against(recommendation, entries)
    used = assurance.to_use(recommendation)
    return {
        "facts": facts,
        "recommendation": recommendation,
        "rows": rows[:MOST_ROWS],
        "rows_left_out": max(0, len(rows) - MOST_ROWS),
        "use": recommendation.candidates.prompts[used],
        "use_json": Markup(texts.inline_json(recommendation.candidates.prompts[used])),
        "headline": assurance.headline(recommendation, found),
        "steps": assurance.next_steps(recommendation, finished, ledger.path.parent, entries),
        "summary": _summary(entries, pairs, facts, recommendation),
        "against": found,
        "written": int(spent_writing(ledger).calls),
        "failures": sum(not e.final for e in entries),
        "refusals": sum(e.status == "refused" for e in entries),
        **_figures(entries, recommendation, rows),
        **_answers(entries, pairs, recommendation, rows, found),
        "outlook": replace(recommendation, variation=None).outlook,  # the causes of variation have a figure
        "causes": assurance.causes(recommendation),
        "halves": assurance.later_as_expected(entries),
        "refinement": recommendation.refinement,
        "refinement_figures": _refinement_figures(recommendation.refinement),
        "command": facts.get("command") or "# started from Python: bestprompt.optimize(task, lm, config=settings)",
        "settings": json.dumps(facts.get("settings", {}), indent=2),
    }


def _summary(
    entries: Sequence[Entry], pairs: Mapping[int, Pair], facts: Mapping[str, Any], recommendation: Recommendation
) -> dict[str, Any]:
    asked = {e.pair for e in entries if e.final}
    times = [e.created for e in entries]
    return {
        "began": datetime.fromtimestamp(min(times), UTC) if times else None,
        "ended": datetime.fromtimestamp(max(times), UTC) if times else None,
        "pairs": len(pairs) or facts.get("items"),
        "pairs_used": len(asked),
        "held_out": len({e.pair for e in entries if e.replication >= HELD_OUT}),
        "prompts": len(recommendation.candidates.prompts),
    }


def _figures(entries: Sequence[Entry], recommendation: Recommendation, rows: Sequence[Any]) -> dict[str, Any]:
    values = course(entries, len(recommendation.candidates.prompts))
    low, high = recommendation.interval
    asked = [row for row in rows if row.evaluations]
    lines = strips(values, [row.candidate for row in asked])
    scale = figures.score_scale([end for row in rows for end in (row.low, row.high)])
    return {
        "course": figures.draw_course(values, (low, recommendation.score, high)),
        "strips": [(row, figures.draw_strip(line)) for row, line in list(zip(asked, lines, strict=True))[:MOST_STRIPS]],
        "strips_left_out": (len(asked[MOST_STRIPS:]), sum(row.evaluations for row in asked[MOST_STRIPS:])),
        "map": figures.draw_map(
            wording_map(recommendation.candidates.prompts, recommendation.candidates.parents), rows
        ),
        "intervals": {row.candidate: figures.draw_interval(row, scale) for row in rows[:MOST_ROWS]},
        "scale": scale,
        "sources": sources(rows),
        "priced": any(row.cost for row in rows),
        "timed": any(row.latency and row.latency >= 0.005 for row in rows),
        "modelled": any(row.model for row in rows),
    }


def _answers(
    entries: Sequence[Entry],
    pairs: Mapping[int, Pair],
    recommendation: Recommendation,
    rows: Sequence[Any],
    found: assurance.Against | None,
) -> dict[str, Any]:
    order = [row.candidate for row in rows]
    if found is not None:  # beside the winner, what it is compared with
        order = list(dict.fromkeys([order[0], found.theirs, *order]))
    table = answers.answer_table(entries, pairs, order)
    wrong = answers.mistakes(entries, pairs, recommendation.choice.candidate)
    apart = [] if found is None else answers.differences(entries, pairs, found.ours, found.theirs)
    rank = {row.candidate: row for row in rows}
    return {
        "table": table,
        "columns": [rank[n] for n in table.candidates],
        "cells": Markup(texts.inline_json(_cells(table, rank))),
        "mistakes": wrong[:MOST_SAMPLES],
        "mistakes_in_all": len(wrong),
        "winner_answers": sum(n == recommendation.choice.candidate for _, n in answers.all_answers(entries)),
        "differences": apart[:MOST_SAMPLES],
    }


def _cells(table: answers.AnswerTable, rank: Mapping[int, Any]) -> dict[str, Any]:
    """What a click on a cell shows, for the page's script."""
    longest = table.longest
    return {
        "prompts": {str(n): [rank[n].rank, texts.shortened(rank[n].prompt, LONGEST_PROMPT)] for n in table.candidates},
        "pairs": {
            str(pair.number): [
                texts.shortened(pair.input, LONGEST_PROMPT),
                [texts.shortened(right, LONGEST_SAMPLE) for right in pair.expected],
            ]
            for pair in table.pairs
        },
        "answers": {
            f"{pair}-{candidate}": [
                texts.shortened(a.output, longest),
                None if a.extracted is None else texts.shortened(a.extracted, LONGEST_SAMPLE),
                round(a.score, 4),
                a.times,
                int(a.refused),
            ]
            for (pair, candidate), a in table.answers.items()
        },
    }


def _refinement_figures(refinement: Refinement | None) -> list[tuple[str, str, Markup]]:
    if refinement is None:
        return []
    drawn = []
    if refinement.tried and any(r.evaluations for r in refinement.tried):
        text = (
            "Each refined prompt: what was predicted of it (95 %) and what it scored. Larger dots: more answers; on "
            "the dashed line the two agree."
        )
        drawn.append(("Predicted and observed", text, figures.draw_predictions(refining.predictions(refinement))))
    if refinement.looks:
        text = (
            "What the next call was expected to gain in the set and outside it, whenever the run looked. Filled: whose "
            "turn it was."
        )
        drawn.append(("Selecting or refining", text, figures.draw_turns(refining.turns(refinement))))
    return drawn


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
        "source": lambda name: SOURCES.get(name, name),
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
