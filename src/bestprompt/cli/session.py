"""What ``run`` and ``resume`` do once their options are read; kept apart because it loads the numerical engines."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

import typer
from rich.markup import escape
from rich.table import Table

from bestprompt.cli.console import ProgressBar, errors, inert, output, print_json, show_recommendation, words
from bestprompt.errors import LMError, TaskError
from bestprompt.ledger import Ledger
from bestprompt.lm import open_model, weights
from bestprompt.report import write_report
from bestprompt.run import Recommendation, Run, Settings
from bestprompt.run.preview import preview
from bestprompt.tasks import Task
from bestprompt.types import LanguageModel

REPORT = "report.html"


def execute(
    task: Task, lm: LanguageModel, settings: Settings, ledger: Ledger, folder: Path, as_json: bool, quiet: bool
) -> None:
    with ledger:
        try:
            # Ray tells of lost machines on stdout, which is for the result alone.
            apart = redirect_stdout(sys.stderr) if settings.ray is not None else nullcontext()
            with apart, ProgressBar(quiet=quiet or as_json) as bar:
                recommendation = Run(task, lm, settings, ledger, observer=bar).execute()
        except KeyboardInterrupt:
            ledger.event("interrupted")
            errors.print(f"\nInterrupted; every answer is kept. Continue with: [bold]{_resume(folder)}[/]")
            raise typer.Exit(130) from None
        except LMError as error:
            ledger.event("failed", error=str(error))
            errors.print(f"Every answer so far is kept. Continue with: [bold]{_resume(folder)}[/]")
            raise
        # The result first: it was paid for, while the report can be made again.
        _print_result(recommendation, f"{task.name} on {lm.name}", folder, as_json)
        written = _write_report(folder / REPORT, ledger, recommendation)
    if not as_json:
        if written:
            output.print(words(f"report  {folder / REPORT}"), soft_wrap=True)
        output.print(words(f"prompt  bestprompt export {folder}"), soft_wrap=True)


def _write_report(path: Path, ledger: Ledger, recommendation: Recommendation) -> bool:
    try:
        write_report(path, ledger, recommendation)
    except OSError as error:
        again = f"bestprompt show {path.parent} --report FILE"
        errors.print(words(f"warning: no report ({error}). Write it later with: {again}", "yellow"), soft_wrap=True)
        return False
    return True


def _resume(folder: Path) -> str:
    return escape(inert(f"bestprompt resume {folder}"))


def _print_result(recommendation: Recommendation, title: str, folder: Path, as_json: bool) -> None:
    if as_json:
        print_json({**recommendation.as_dict(), "run": str(folder), "report": str(folder / REPORT)})
        return
    show_recommendation(recommendation, title)
    output.print(
        words(
            f"\n{recommendation.calls} calls, {recommendation.tokens:,} tokens, ${recommendation.dollars:.4f}; "
            f"ended because {recommendation.stopped_because}"
        ),
        soft_wrap=True,
    )


def open_lm(settings: Settings, quiet: bool) -> LanguageModel:
    if settings.ray is not None:
        from bestprompt.lm.remote import open_fleet

        with errors.status("starting workers on the cluster") if not quiet else nullcontext():
            return open_fleet(settings.model, settings.ray)
    if settings.model.kind == "embedded" and settings.model.path is None and not weights.is_cached():
        fetch_weights(quiet)
    with errors.status("loading the model") if not quiet else nullcontext():
        return open_model(settings.model)


def fetch_weights(quiet: bool) -> Path:
    """Fetches the default weights, with a bar."""
    with errors.status("fetching the embedded model (about 93 MB, once)") if not quiet else nullcontext():
        return weights.fetch()


def load_task(source: str, settings: Settings, lm: LanguageModel) -> Task:
    judge = open_model(settings.judge) if settings.judge is not None else lm
    try:
        task = Task.load(source, lm=judge)
    except TaskError as error:
        if Path(source).exists() or "/" in source or "." in source:
            raise
        raise TaskError(f"{error} See: bestprompt tasks") from None
    for note in task.notes:
        errors.print(words(f"note: {note}", "yellow"), soft_wrap=True)
    return task


def print_plan(task: Task, lm: LanguageModel, settings: Settings, as_json: bool) -> None:
    seen = preview(task, lm, settings)
    plan = {
        "task": task.name, "model": lm.name, "evaluations": seen.evaluations, "calls_at_most": int(seen.most.calls),
        "tokens_at_most": int(seen.most.tokens), "dollars_at_most": round(seen.most.dollars, 6),
        "candidates": seen.candidates, "pairs": seen.pairs, "useful_calls": seen.useful_calls,
        "forecast": seen.forecast,
    }  # fmt: skip
    if as_json:
        print_json(plan)
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for key, value in plan.items():
        table.add_row(key.replace("_", " "), words(f"{value:,}" if isinstance(value, int) else value))
    output.print(table)
    output.print("Nothing was sent. Tokens and dollars are upper bounds: answers are usually shorter than max_tokens.")
