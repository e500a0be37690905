"""``status``, ``show``, ``export`` and ``wording``: looking at runs. All of them read only.

What a finished run concluded is in its record, so only ``wording`` needs a numerical engine.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from bestprompt.cli import completion, options
from bestprompt.cli.console import command, inert, output, print_json, say, tell, words
from bestprompt.cli.showing import show_end, show_result
from bestprompt.errors import BestPromptError, LedgerError
from bestprompt.ledger import PAUSED, PLANNED, Ledger, check_content, reading
from bestprompt.run.settings import recorded_settings


def register(app: typer.Typer) -> None:
    """Adds this module's commands."""
    app.command("status")(status)
    app.command("show")(show)
    app.command("export")(export)
    app.command("wording")(wording)


def status(
    folder: Annotated[Path, typer.Argument(help="A run, or a folder of runs.", autocompletion=completion.runs)] = Path(
        "runs"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List runs: how far each is, what it used, and how to continue it."""
    found = [
        _summary_or_damage(path.parent) for path in sorted({*folder.glob("ledger.db"), *folder.glob("*/ledger.db")})
    ]
    if as_json:
        print_json(found)
        return
    if not found:
        tell(f"No runs in {folder}. Start one with: bestprompt run first-letter")
        return
    for row in found:
        # A path is never cut, so that it can be copied: it has a line of its own.
        tell(row["run"], "bold")
        used = f"{row['calls']} calls, {row['tokens']:,} tokens, ${row['dollars']:.4f}"
        tell(f"  {row['task']} on {row['model']}: {row['state']}, {_done(row)}; {used}")
        if row["state"] not in ("finished",) and not row["state"].startswith("damaged"):
            tell(f"  continue with: {command('resume', row['run'])}", "dim")


def _done(row: dict[str, Any]) -> str:
    return f"{row['evaluations']} of {row['planned'] or '?'} evaluations"


def show(
    folder: options.RunFolder,
    top: Annotated[int, typer.Option(help="Rows of the leaderboard.")] = 10,
    report: Annotated[Path | None, typer.Option(help="Also write the HTML report to this file.")] = None,
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Work the conclusion out again, call by call, from the record.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Show a run's winner and leaderboard, from its ledger alone; also while it runs."""
    with Ledger.read(folder) as ledger:
        with reading(ledger.path):
            facts = ledger.facts()
        result = None if recompute or report is not None else _concluded(ledger)
        if result is None:
            from bestprompt.run import standing  # loads the numerical engines

            recommendation = standing(ledger)
            result = recommendation.as_dict()
            if report is not None:
                from bestprompt.report import write_report

                write_report(report, ledger, recommendation)
    if as_json:
        print_json(result)
    else:
        show_result(result, f"{facts['task']} on {facts['lm']}", top)
        show_end(result)


def export(
    folder: options.RunFolder,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            metavar="prompt|csv|jsonl|parquet|promptfoo",
            help="The prompt to use as plain text, every call of the run as a table, or a configuration for promptfoo.",
            autocompletion=completion.formats,
        ),
    ] = "prompt",
    output_file: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to a file instead; parquet needs one.")
    ] = None,
) -> None:
    """Print the prompt to use, the plain text and nothing else; or every call as CSV, JSON lines or Parquet.

    The prompt is the winner, or the one you use now where the verdict says to keep it. For promptfoo it is written with
    the pairs as tests.
    """
    if form not in ("prompt", "promptfoo"):
        from bestprompt.cli.tables import write_calls

        write_calls(folder, form, output_file)
        return
    with Ledger.read(folder) as ledger:
        if ledger.finished() is None:
            raise LedgerError(f"{folder} is not finished. Continue it with: {command('resume', folder)}")
        result = _concluded(ledger)
        if result is None:
            from bestprompt.run import standing  # loads the numerical engines

            result = standing(ledger).as_dict()
        if form == "promptfoo":
            from bestprompt.cli.promptfoo import configuration  # an extra

            text = configuration(ledger, result)
            typer.echo(text, nl=False) if output_file is None else output_file.write_text(text, encoding="utf-8")
            return
    prompt = result["prompt_to_use"]
    if prompt != result["prompt"]:
        say(f"The verdict says to keep the prompt in use; the challenger is in: {command('show', folder)}")
    if output_file is None:
        typer.echo(inert(prompt) if sys.stdout.isatty() else prompt)
    else:
        output_file.write_text(prompt + "\n", encoding="utf-8")


def wording(
    folder: options.RunFolder,
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


def _concluded(ledger: Ledger) -> dict[str, Any] | None:
    """What a finished run concluded, by its record; ``None`` if it goes on, or its record says less than is shown.

    Raises:
        LedgerError: The record is damaged, be it in a part that the conclusion does not show.
    """
    check_content(ledger)
    with reading(ledger.path):
        recorded_settings(ledger.facts())
        if any("evaluations" not in payload for payload in ledger.payloads(PLANNED)):
            raise ValueError("a plan cannot be right")
        result = ledger.finished()
    return result if result is not None and {"leaderboard", "prompt_to_use"} <= result.keys() else None


def _summary_or_damage(folder: Path) -> dict[str, Any]:
    """One run in a line; a record that cannot be read is a line, too, and hides none of the others."""
    try:
        with reading(folder):
            return _summary(folder)
    except (BestPromptError, OSError) as error:
        nothing = {"evaluations": 0, "planned": None, "calls": 0, "tokens": 0, "dollars": 0.0}
        return {"run": str(folder), "task": "?", "model": "?", "state": f"damaged: {error}", **nothing}


def _summary(folder: Path) -> dict[str, Any]:
    from bestprompt.execution import spent

    with Ledger.read(folder) as ledger:
        facts, entries, finished = ledger.facts(), list(ledger.entries()), ledger.finished()
        planned = [payload["evaluations"] for payload in ledger.payloads(PLANNED)]
        used = spent(ledger)
        paused = any(kind == PAUSED for kind, *_ in ledger.events()[-1:])
    return {
        "run": str(folder),
        "task": facts.get("task", "?"),
        "model": facts.get("lm", "?"),
        "state": "finished" if finished else "stopped: every answer scored 0" if paused else "resumable",
        "evaluations": sum(e.final for e in entries),
        "planned": planned[-1] if planned else None,
        "calls": int(used.calls),
        "tokens": int(used.tokens),
        "dollars": used.dollars,
    }
