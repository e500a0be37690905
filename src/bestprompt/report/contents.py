"""What the page of a run shows, as values and drawn figures: of a run that has ended, and of one that goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from bestprompt.execution import HELD_OUT, spent, spent_writing
from bestprompt.ledger import PLANNED, Entry, Ledger
from bestprompt.report import answers, assurance, figures, refining, texts
from bestprompt.report.course import course, own_answers, strips
from bestprompt.report.data import provisional
from bestprompt.report.wording import wording_map
from bestprompt.run.leaderboard import LeaderboardRow
from bestprompt.run.result import Recommendation, Refinement
from bestprompt.run.sources import sources
from bestprompt.search.extension import extended
from bestprompt.types import Pair, SoftPromptSet

# What a page shows of long lists and long texts; all of it is in the ledger.
MOST_ROWS, MOST_STRIPS, MOST_SAMPLES = 200, 20, 6
LONGEST_PROMPT, LONGEST_SAMPLE = 4000, 500


def contents(ledger: Ledger, recommendation: Recommendation) -> dict[str, Any]:
    """All that the page shows, as values and drawn figures."""
    entries, pairs, facts = list(ledger.entries()), ledger.pairs(), ledger.facts()
    finished = ledger.finished() is not None
    rows = recommendation.leaderboard
    found = assurance.against(recommendation, entries)
    use = recommendation.prompt_to_use
    low, high = recommendation.interval
    return {
        "facts": facts,
        "recommendation": recommendation,
        "rows": rows[:MOST_ROWS],
        "rows_left_out": max(0, len(rows) - MOST_ROWS),
        "use": use,
        "use_json": Markup(texts.inline_json(use)),
        "headline": assurance.headline(recommendation, found),
        "steps": assurance.next_steps(recommendation, finished, ledger.path.parent, entries),
        "summary": _summary(entries, pairs, facts, recommendation),
        "against": found,
        "written": int(spent_writing(ledger).calls),
        "failures": sum(not e.final for e in entries),
        "refusals": sum(e.status == "refused" for e in entries),
        **_figures(entries, recommendation.candidates, rows, (low, recommendation.score, high)),
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


def live_contents(ledger: Ledger) -> dict[str, Any]:
    """The same figures of a run that goes on, by each prompt's own answers: quick enough to be drawn every second."""
    entries, planned, used = list(ledger.entries()), ledger.payloads(PLANNED), spent(ledger)
    candidates = ledger.candidates()
    for new in ledger.added_candidates():
        candidates = extended(candidates, new) if candidates is not None else None
    shown: dict[str, Any] = {
        "facts": ledger.facts(),
        "answered": sum(e.final for e in entries),
        "planned": planned[-1]["evaluations"] if planned else None,
        "used": used,
        "rows": [],
    }
    if candidates is None or not shown["answered"]:
        return shown
    rows = provisional(candidates, own_answers(entries, len(candidates.prompts)), entries)
    return {
        **shown,
        "rows": rows[:MOST_ROWS],
        "rows_left_out": max(0, len(rows) - MOST_ROWS),
        **_figures(entries, candidates, rows, None),
    }


def _figures(
    entries: Sequence[Entry],
    candidates: SoftPromptSet,
    rows: Sequence[LeaderboardRow],
    verdict: tuple[float, float, float] | None,
) -> dict[str, Any]:
    values = course(entries, len(candidates.prompts))
    asked = [row for row in rows if row.evaluations]
    lines = strips(values, [row.candidate for row in asked])
    scale = figures.score_scale([end for row in rows for end in (row.low, row.high)])
    return {
        "course": figures.draw_course(values, verdict),
        "strips": [(row, figures.draw_strip(line)) for row, line in list(zip(asked, lines, strict=True))[:MOST_STRIPS]],
        "strips_left_out": (len(asked[MOST_STRIPS:]), sum(row.evaluations for row in asked[MOST_STRIPS:])),
        "map": figures.draw_map(wording_map(candidates.prompts, candidates.parents), rows),
        "intervals": {row.candidate: figures.draw_interval(row, scale) for row in rows[:MOST_ROWS]},
        "scale": scale,
        "sources": sources(rows),
        "priced": any(row.cost for row in rows),
        # Seconds tell models apart; of prompts on one model they tell how busy it was.
        "timed": any(row.model and row.latency for row in rows),
        "modelled": any(row.model for row in rows),
    }


def _answers(
    entries: Sequence[Entry],
    pairs: Mapping[int, Pair],
    recommendation: Recommendation,
    rows: Sequence[LeaderboardRow],
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
