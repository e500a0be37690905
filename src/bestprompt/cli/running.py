"""``run`` and ``resume``: from options to settings."""

from __future__ import annotations

import itertools
import re
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bestprompt.cli import options
from bestprompt.cli.console import command
from bestprompt.cli.showing import exit_code
from bestprompt.errors import ConfigError, LedgerError
from bestprompt.lm.settings import RaySettings
from bestprompt.run.settings import load_settings, recorded_settings


def register(app: typer.Typer) -> None:
    """Adds this module's commands."""
    app.command("run")(run)
    app.command("resume")(resume)


def run(
    task: options.TaskName,
    scorer: options.ScorerKind = None,
    template: options.Template = None,
    system: options.System = None,
    max_tokens: options.MaxTokens = None,
    incumbent: options.Incumbent = None,
    holdout: options.Holdout = None,
    model: options.Models = None,
    base_url: options.BaseUrl = None,
    in_flight: options.InFlight = None,
    ray: options.Ray = None,
    workers: options.Workers = None,
    budget: options.Calls = None,
    dollars: options.Dollars = None,
    tokens: options.Tokens = None,
    spend_all: options.SpendAll = False,
    stop_at: options.StopAt = None,
    stop_loss: options.StopLoss = None,
    keep_going: options.KeepGoing = False,
    prompts: options.PromptFiles = None,
    latent: options.Latent = None,
    ideas: options.Ideas = None,
    writer: options.Writer = None,
    candidates: options.Candidates = None,
    rewrites: options.Rewrites = None,
    demos: options.Demos = None,
    refine: options.Refine = None,
    r1: options.R1 = None,
    r2: options.R2 = None,
    similarity: options.Similarity = None,
    dimension: options.Dimension = None,
    mode: options.Method = None,
    surrogate: options.SurrogateName = None,
    maximizer: options.MaximizerName = None,
    draws: options.Draws = None,
    seed: options.Seed = None,
    folder: options.Output = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Choose the best prompt for a task.

    Evaluates candidate prompts one small batch at a time, where a call is worth most, until the budget is spent or
    the answer is settled; at temperature 0 no question is asked twice. Then prints the winner, how sure that is, and
    the path of a report. Every call is kept: Ctrl-C loses nothing,
    and `bestprompt resume` continues.

    Exit codes: 0 done, 2 wrong usage or data, 3 the budget ended before an answer, 4 every answer of the first 24
    scored 0, 130 interrupted; all but 2 can be continued.

    Examples:
      bestprompt run first-letter --budget 200

      bestprompt run reviews.csv --prompts ideas.txt

      bestprompt run reviews.csv -m gpt-4o-mini --base-url https://host/v1

      bestprompt run project.toml --dry-run
    """
    path = Path(task)
    overrides: dict[str, Any] = {
        "budget.calls": budget, "budget.dollars": dollars, "budget.tokens": tokens, "search.candidates": candidates,
        "search.file": _files(prompts), "search.rewrites": rewrites, "search.demos": demos,
        "search.source": {None: None, True: "latent", False: "examples"}[latent],
        "ideas.mode": {None: None, True: "on", False: "off"}[ideas],
        "writer": None if writer is None else _model(writer, base_url),
        "refinement.mode": refine, "selection.incumbent": incumbent, "mode": mode,
        "selection.surrogate": surrogate, "selection.maximizer": maximizer, "selection.draws": draws,
        "search.r1": r1, "search.r2": r2, "search.similarity": similarity, "search.dimension": dimension,
        "selection.stop_at": stop_at, "selection.stop_loss": stop_loss,
        "selection.stop_gain": 0.0 if spend_all else None, "holdout": holdout, "seed": seed, "output": folder,
        "selection.in_flight": in_flight, "model.concurrency": in_flight, "ray.address": ray, "ray.workers": workers,
        "all_zero": "continue" if keep_going else None,
        **model_overrides(model, base_url, in_flight),
    }  # fmt: skip
    settings = load_settings(path if path.suffix == ".toml" else None, overrides)
    source = str(path.absolute()) if path.exists() else task
    changes = task_changes(scorer, template, system, max_tokens)
    from bestprompt.cli import session  # loads the numerical engines, which --help does not need
    from bestprompt.ledger import holds_a_run
    from bestprompt.run import open_ledger, run_facts

    lm = session.open_lm(settings, quiet=quiet or as_json)
    loaded = session.load_task(source, settings, lm, changes)
    settings, author = session.decide(loaded, lm, settings)
    if dry_run:
        session.print_plan(loaded, lm, settings, as_json, author)
        return
    target = settings.output or new_folder(loaded.name)
    if holds_a_run(target):
        raise LedgerError(f"{target} already holds a run. Continue it with: {command('resume', target)}")
    session.say_how_it_is_scored(loaded)
    session.say_where_prompts_come_from(lm, settings, author)
    ledger = open_ledger(
        target,
        run_facts(loaded, lm, settings, writer=author),
        {"source": source, "changes": changes, "command": command(*sys.argv[1:])},
    )
    session.execute(loaded, lm, settings, ledger, target, as_json, quiet, author)


def resume(
    folder: options.RunFolder,
    budget: Annotated[
        int | None,
        typer.Option("--budget", "-b", min=1, help="Calls allowed in all; more than before extends the run."),
    ] = None,
    dollars: Annotated[float | None, typer.Option(min=1e-9, help="Dollars allowed in all.")] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="Tokens allowed in all.")] = None,
    ray: options.Ray = None,
    workers: options.Workers = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Continue a run that was interrupted, or extend one; nothing that was answered is asked again.

    A run that has used its budget goes on with a larger one: bestprompt resume runs/mine --budget 600
    """
    from bestprompt.cli import session
    from bestprompt.ledger import Ledger, reading
    from bestprompt.run import as_begun, budgets, open_ledger, refuse_less, run_facts

    changes = {"calls": budget, "dollars": dollars, "tokens": tokens}
    with Ledger.read(folder) as ledger, reading(ledger.path):
        facts, limits = ledger.facts(), budgets(ledger)[-1].model_dump()
        limits |= {name: limit for name, limit in changes.items() if limit is not None}
        settings = recorded_settings({"settings": {**facts["settings"], "budget": limits}})
        if ray is not None:
            settings = settings.model_copy(update={"ray": RaySettings(address=ray, workers=workers or 1)})
        refuse_less(ledger, settings.budget)  # before the model is loaded
    if "source" not in facts:
        raise LedgerError(
            f"{folder} was started from Python. Continue it with: bestprompt.optimize(..., ledger={str(folder)!r})"
        )
    lm = session.open_lm(settings, quiet=quiet or as_json)
    task = as_begun(session.load_task(facts["source"], settings, lm, facts.get("changes", {})), facts)
    settings, author = session.decide(task, lm, settings)
    ledger = open_ledger(folder, run_facts(task, lm, settings, writer=author))
    raise typer.Exit(exit_code(session.execute(task, lm, settings, ledger, folder, as_json, quiet, author)))


def task_changes(
    scorer: str | None, template: str | None, system: str | None, max_tokens: int | None
) -> dict[str, Any]:
    """What the options say about the task, as keys of a ``[task]`` table."""
    changes = {
        "scorer": None if scorer is None else _scorer(scorer),
        # Shells pass a backslash and an n where a new line is meant.
        "template": None if template is None else template.replace("\\n", "\n"),
        "system": system,
        "max_tokens": max_tokens,
    }
    return {name: value for name, value in changes.items() if value is not None}


def _scorer(text: str) -> str | dict[str, Any]:
    if not text.lstrip().startswith("{"):
        return text
    try:
        table: dict[str, Any] = tomllib.loads(f"scorer = {text}")["scorer"]
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"--scorer {text!r} is not a TOML table: {error}") from None
    return table


def _files(paths: Sequence[Path] | None) -> str | list[str] | None:
    found = [str(path.absolute()) for path in paths or ()]
    return found[0] if len(found) == 1 else found or None


def new_folder(name: str) -> Path:
    """``runs/NAME-TIME``, or with a number behind it: two runs may begin in the same second."""
    from bestprompt.ledger import holds_a_run

    # A task may have any name, and its runs belong into their folder.
    plain = re.sub(r"[^\w.-]+", "-", name).strip(".-")[:100] or "run"
    name = f"{plain}-{time.strftime('%Y%m%d-%H%M%S')}"
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(folder for folder in map(Path("runs").joinpath, names) if not holds_a_run(folder))


def model_overrides(models: Sequence[str] | None, base_url: str | None, in_flight: int | None) -> Mapping[str, Any]:
    if not models:
        return {"model.kind": "openai", "model.base_url": base_url} if base_url is not None else {}
    first, *further = [_model(text, base_url) for text in models]
    further = [{**each, "concurrency": in_flight} for each in further] if in_flight else further
    return {**{f"model.{key}": value for key, value in first.items()}, "further_models": further or None}


def _model(text: str, base_url: str | None) -> dict[str, Any]:
    """What ``--model`` says: ``embedded``, a GGUF file, or a name, at the common address or one of its own."""
    if text == "embedded":
        return {"kind": "embedded"}
    if text.endswith(".gguf") and (base_url is None or Path(text).is_file()):  # servers name models by files, too
        return {"kind": "embedded", "path": str(Path(text).absolute())}
    name, at, address = text.partition("@http")
    return {"kind": "openai", "name": name, "base_url": f"http{address}" if at else base_url}
