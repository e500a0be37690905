"""``status``, ``show``, ``export`` and ``wording``: looking at runs. All of them read only."""

from __future__ import annotations

import csv
import sqlite3
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from bestprompt.cli.console import errors, inert, output, print_json, show_recommendation, words
from bestprompt.errors import BestPromptError, LedgerError
from bestprompt.ledger import PLANNED, Ledger
from bestprompt.run.settings import recorded_settings

Folder = Annotated[Path, typer.Argument(help="Folder of the run.")]


def register(app: typer.Typer) -> None:
    """Adds this module's commands."""
    app.command("status")(status)
    app.command("show")(show)
    app.command("export")(export)
    app.command("wording")(wording)


def status(
    folder: Annotated[Path, typer.Argument(help="A run, or a folder of runs.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List runs: how far each is, what it used, and whether it can be resumed."""
    found = [
        _summary_or_damage(path.parent) for path in sorted({*folder.glob("ledger.db"), *folder.glob("*/ledger.db")})
    ]
    if as_json:
        print_json(found)
        return
    if not found:
        output.print(words(f"No runs in {folder}. Start one with: bestprompt run first-letter"))
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("run", "task", "model", "state", "evaluations", "calls", "tokens", "dollars"):
        table.add_column(name, justify="right" if name in ("evaluations", "calls", "tokens", "dollars") else "left")
    for row in found:
        evaluations = f"{row['evaluations']}/{row['planned'] or '?'}"
        table.add_row(
            words(row["run"]), words(row["task"]), words(row["model"]), words(row["state"]), evaluations,
            str(row["calls"]), f"{row['tokens']:,}", f"{row['dollars']:.4f}",
        )  # fmt: skip
    output.print(table)


def show(
    folder: Folder,
    top: Annotated[int, typer.Option(help="Rows of the leaderboard.")] = 10,
    report: Annotated[Path | None, typer.Option(help="Also write the HTML report to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Show a run's winner and leaderboard, from its ledger alone; also while it runs."""
    from bestprompt.report import write_report
    from bestprompt.run import standing

    with Ledger.read(folder) as ledger:
        recommendation, facts = standing(ledger), ledger.facts()
        if report is not None:
            write_report(report, ledger, recommendation)
    if as_json:
        print_json(recommendation.as_dict())
    else:
        show_recommendation(recommendation, f"{facts['task']} on {facts['lm']}", top)


def export(
    folder: Folder,
    output_file: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file instead.")] = None,
) -> None:
    """Print the prompt to use: the plain text and nothing else.

    That is the winner, or the prompt you use now where the verdict says to keep it.
    """
    from bestprompt.run import standing

    with Ledger.read(folder) as ledger:
        if ledger.finished() is None:
            raise LedgerError(f"{folder} is not finished. Continue it with: bestprompt resume {folder}")
        found, incumbent = standing(ledger), recorded_settings(ledger.facts()).selection.incumbent
    prompt = found.prompt
    if found.choice.keep_incumbent and incumbent is not None and incumbent.strip() != prompt:
        errors.print("The verdict says to keep the prompt in use; the challenger is in `bestprompt show`.")
        prompt = incumbent.strip()
    if output_file is None:
        typer.echo(inert(prompt) if sys.stdout.isatty() else prompt)
    else:
        output_file.write_text(prompt + "\n", encoding="utf-8")


def wording(
    folder: Folder,
    top: Annotated[int, typer.Option(help="Prompts, best first.")] = 10,
    scale: Annotated[float, typer.Option(help="How far wordings move, in units of the set's own spread.")] = 0.25,
    output_file: Annotated[Path | None, typer.Option("--output", "-o", help="Write as CSV to a file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Say how much the best prompts' scores depend on their exact wording.

    Needs no call: the score is learned from the run's evaluations as a function of the latent space, and predicted
    at random wordings around each prompt. For runs with invented prompts (--latent or --refine).
    """
    from bestprompt.run import wording_uncertainty

    with Ledger.read(folder) as ledger:
        rows = [each.as_dict() for each in wording_uncertainty(ledger, top, scale)]
    if output_file is not None:
        with output_file.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    if as_json:
        print_json(rows)
    elif output_file is None:
        table = Table(box=None, header_style="bold", pad_edge=False)
        for name in ("score", "predicted", "±", "reworded", "± model", "± wording"):
            table.add_column(name, justify="right")
        table.add_column("prompt")
        for row in rows:
            figures = [f"{value:.3f}" for value in row.values() if not isinstance(value, str)]
            table.add_row(*figures, words(row["prompt"]))
        output.print(table)


def _summary_or_damage(folder: Path) -> dict[str, Any]:
    """One run in a line; a record that cannot be read is a line, too, and hides none of the others."""
    try:
        return _summary(folder)
    except (BestPromptError, sqlite3.Error, ValueError, KeyError, TypeError) as error:
        nothing = {"evaluations": 0, "planned": None, "calls": 0, "tokens": 0, "dollars": 0.0}
        return {"run": str(folder), "task": "?", "model": "?", "state": f"damaged: {error}", **nothing}


def _summary(folder: Path) -> dict[str, Any]:
    from bestprompt.execution import spent  # loads the numerical engines, which --help does not need

    with Ledger.read(folder) as ledger:
        facts, entries, finished = ledger.facts(), list(ledger.entries()), ledger.finished()
        planned = [payload["evaluations"] for payload in ledger.payloads(PLANNED)]
        used = spent(ledger)
    return {
        "run": str(folder),
        "task": facts.get("task", "?"),
        "model": facts.get("lm", "?"),
        "state": "finished" if finished else "resumable",
        "evaluations": sum(e.final for e in entries),
        "planned": planned[-1] if planned else None,
        "calls": int(used.calls),
        "tokens": int(used.tokens),
        "dollars": used.dollars,
    }
