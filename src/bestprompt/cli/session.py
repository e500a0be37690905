"""What ``run`` and ``resume`` do once their options are read; kept apart because it loads the numerical engines."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from bestprompt.cli.console import command, errors, output, print_json, say, tell, words
from bestprompt.cli.progress import watching
from bestprompt.cli.showing import show_end, show_result
from bestprompt.errors import LedgerError, LMError, NothingScored, TaskError
from bestprompt.ledger import Ledger
from bestprompt.lm import ModelSettings, Several, open_model, weights
from bestprompt.lm.settings import RaySettings
from bestprompt.report import write_report
from bestprompt.run import Recommendation, Run, Settings
from bestprompt.run.automatic import decided, in_words
from bestprompt.run.given import notes_on_prompts
from bestprompt.run.preview import preview
from bestprompt.tasks import Task
from bestprompt.types import LanguageModel

REPORT = "report.html"


def execute(
    task: Task,
    lm: LanguageModel,
    settings: Settings,
    ledger: Ledger,
    folder: Path,
    as_json: bool,
    quiet: bool,
    writer: LanguageModel | None = None,
) -> Mapping[str, Any]:
    """Carries a run out, prints what it found and writes the report; returns what was found as plain values."""
    again = command("resume", folder)
    with ledger:
        try:
            # Ray tells of lost machines on stdout, which is for the result alone.
            apart = redirect_stdout(sys.stderr) if settings.ray is not None else nullcontext()
            with apart, watching(quiet=quiet or as_json) as observer:
                recommendation = Run(task, lm, settings, ledger, observer=observer, writer=writer).execute()
        except KeyboardInterrupt:
            with suppress(LedgerError):  # no room for it is no reason not to say how to go on
                ledger.event("interrupted")
            say(f"\nInterrupted; every answer is kept. Continue with: {again}")
            raise typer.Exit(130) from None
        except NothingScored as error:
            error.add_note(f"Every answer is kept. Spend the rest of the budget all the same with: {again}")
            raise
        except (LMError, LedgerError) as error:
            with suppress(LedgerError):
                ledger.event("failed", error=str(error))
            error.add_note(f"Every answer so far is kept. Continue with: {again}")
            raise
        # The result first: it was paid for, while the report can be made again.
        result = recommendation.as_dict()
        _print_result(result, f"{task.name} on {lm.name}", folder, as_json)
        written = _write_report(folder / REPORT, ledger, recommendation)
    if not as_json:
        if written:
            tell(f"report  {folder / REPORT}")
        tell(f"prompt  {command('export', folder)}")
    return result


def _write_report(path: Path, ledger: Ledger, recommendation: Recommendation) -> bool:
    try:
        write_report(path, ledger, recommendation)
    except OSError as error:
        again = command("show", path.parent, "--report", "FILE")
        say(f"warning: no report ({error}). Write it later with: {again}", "yellow")
        return False
    return True


def _print_result(result: Mapping[str, Any], title: str, folder: Path, as_json: bool) -> None:
    if as_json:
        print_json({**result, "run": str(folder), "report": str(folder / REPORT)})
        return
    show_result(result, title)
    show_end(result)


def open_lm(settings: Settings, quiet: bool) -> LanguageModel:
    """The model of the settings, or all of them as one."""
    if settings.ray is not None:
        with errors.status("starting workers on the cluster") if not quiet else nullcontext():
            return _together([_fleet(each, settings.ray) for each in settings.models])
    if any(m.kind == "embedded" and m.path is None for m in settings.models) and not weights.is_cached():
        fetch_weights(quiet)
    with errors.status("loading the model") if not quiet else nullcontext():
        return _together([open_model(each) for each in settings.models])


def _together(opened: list[LanguageModel]) -> LanguageModel:
    return Several(opened) if len(opened) > 1 else opened[0]


def _fleet(model: ModelSettings, ray: RaySettings) -> LanguageModel:
    from bestprompt.lm.remote import open_fleet  # Ray is an extra

    return open_fleet(model, ray)


def fetch_weights(quiet: bool) -> Path:
    """Fetches the default weights, with a bar."""
    with errors.status("fetching the embedded model (about 93 MB, once)") if not quiet else nullcontext():
        return weights.fetch()


def load_task(source: str, settings: Settings, lm: LanguageModel, changes: Mapping[str, Any]) -> Task:
    """The task, with what its data hold that a user should know."""
    judge = open_model(settings.judge) if settings.judge is not None else lm
    try:
        task = Task.load(source, lm=judge, changes=changes)
    except TaskError as error:
        if Path(source).exists() or "/" in source or "." in source:
            raise
        raise TaskError(f"{error} See: bestprompt tasks") from None
    for note in (*task.notes, *notes_on_prompts(task, settings)):
        say(f"note: {note}", "yellow")
    return task


def say_how_it_is_scored(task: Task) -> None:
    """One line before anything is spent, where the score was proposed rather than chosen."""
    if "scorer" in task.proposed:
        say(f"score: {task.scored_by} (another one: --scorer)")


def decide(task: Task, lm: LanguageModel, settings: Settings) -> tuple[Settings, LanguageModel | None]:
    """Settings without ``auto``, and the model that writes prompts, where it is another than the one that answers."""
    settings = decided(task, lm, settings)
    opens = settings.writer is not None and settings.has_ideas
    return settings, open_model(settings.writer) if opens and settings.writer is not None else None


def say_where_prompts_come_from(lm: LanguageModel, settings: Settings, writer: LanguageModel | None) -> None:
    """One line before anything is spent, where there are more than were given."""
    if settings.search.source == "latent" or settings.has_ideas:
        say(f"prompts: {in_words(settings, lm, writer)} (yours alone: --examples-only --no-ideas)")


def print_plan(
    task: Task, lm: LanguageModel, settings: Settings, as_json: bool, writer: LanguageModel | None = None
) -> None:
    seen = preview(task, lm, settings, writer)
    plan = {
        "task": task.name, "model": lm.name, "evaluations": seen.evaluations, "calls_at_most": int(seen.most.calls),
        "tokens_at_most": int(seen.most.tokens), "dollars_at_most": round(seen.most.dollars, 6),
        "candidates": seen.candidates, "pairs": seen.pairs, "pairs_for_demonstrations": seen.shown,
        "useful_calls": seen.useful_calls, "score": task.scored_by, "forecast": seen.forecast, "prompts": seen.sources,
        **({"ideas_calls_at_most": seen.ideas} if seen.ideas else {}),
    }  # fmt: skip
    if as_json:
        print_json(plan)
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for key, value in plan.items():
        table.add_row(key.replace("_", " "), words(f"{value:,}" if isinstance(value, int) else value))
    output.print(table)
    output.print("Nothing was sent. Tokens and dollars are upper bounds: answers are usually shorter than max_tokens.")
