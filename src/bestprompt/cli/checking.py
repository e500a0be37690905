"""``check``: fail a job when a new prompt is worse than the one in use."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bestprompt.cli import completion, options
from bestprompt.cli.console import command, print_json, say
from bestprompt.cli.running import model_overrides, new_folder, task_changes
from bestprompt.cli.showing import exit_code
from bestprompt.run.settings import load_settings

_CHECK = "What is checked"


def register(app: typer.Typer) -> None:
    """Adds this module's command."""
    app.command("check")(check)


def check(
    task: options.TaskName,
    incumbent: Annotated[
        Path, typer.Option(metavar="FILE", help="The prompt in use: the whole file.", rich_help_panel=_CHECK)
    ],
    new: Annotated[Path, typer.Option(metavar="FILE", help="The prompt to take its place.", rich_help_panel=_CHECK)],
    probability: Annotated[
        float, typer.Option("--probability", "-p", help="How sure the answer must be.", rich_help_panel=_CHECK)
    ] = 0.95,
    margin: Annotated[
        float,
        typer.Option(help="A score that is lower by no more than this is not worse.", rich_help_panel=_CHECK),
    ] = 0.0,
    if_undecided: Annotated[
        str,
        typer.Option(
            metavar="pass|fail",
            help="What the job shall do where the pairs or the budget do not settle it.",
            autocompletion=completion.if_undecided,
            rich_help_panel=_CHECK,
        ),
    ] = "pass",
    scorer: options.ScorerKind = None,
    template: options.Template = None,
    system: options.System = None,
    max_tokens: options.MaxTokens = None,
    model: options.OneModel = None,
    base_url: options.BaseUrl = None,
    in_flight: options.InFlight = None,
    budget: options.Calls = None,
    dollars: options.Dollars = None,
    tokens: options.Tokens = None,
    keep_going: options.KeepGoing = False,
    seed: options.Seed = None,
    folder: options.Output = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Fail a job when a new prompt is worse than the one in use.

    Both prompts meet the same pairs, a few at a time, and asking ends as soon as it is settled with the probability
    whether the new one is worse, or when the pairs that are left would not change the decision. The same command with
    the same --output goes on where a job was cut off, and pays for nothing twice.

    Exit codes: 0 not worse (or undecided, unless --if-undecided fail), 5 worse, 6 undecided with --if-undecided fail;
    1 the model failed, 2 wrong usage or data, 3 the budget ended before an answer, 4 every answer of the first 24
    scored 0, 130 interrupted.

    Examples:
      bestprompt check tickets.csv --incumbent prompts/live.txt --new prompts/next.txt

      bestprompt check tickets.csv --incumbent a.md --new b.md --margin 0.02 --if-undecided fail -m gpt-4o-mini
    """
    from bestprompt.cli import session  # loads the numerical engines, which --help does not need
    from bestprompt.ledger import Ledger, holds_a_run
    from bestprompt.run import as_begun, open_ledger, run_facts
    from bestprompt.run.checking import SAME, check_settings, is_same
    from bestprompt.tasks.loaders import read_text

    texts = [read_text(path).strip() for path in (incumbent, new)]
    if is_same(*texts):
        say(SAME)
        if as_json:
            print_json({"check": {"outcome": "not worse", "passes": True, "sentence": SAME}, "calls": 0})
        return
    path = Path(task)
    overrides: dict[str, Any] = {
        "budget.calls": budget, "budget.dollars": dollars, "budget.tokens": tokens, "seed": seed, "output": folder,
        "selection.in_flight": in_flight, "model.concurrency": in_flight,
        "all_zero": "continue" if keep_going else None,
        **model_overrides([model] if model else None, base_url, in_flight),
        **check_settings(texts[0], probability, margin, if_undecided),
    }  # fmt: skip
    settings = load_settings(path if path.suffix == ".toml" else None, overrides)
    source = str(path.absolute()) if path.exists() else task
    changes = {**task_changes(scorer, template, system, max_tokens), "examples": texts}
    lm = session.open_lm(settings, quiet=quiet or as_json)
    loaded = session.load_task(source, settings, lm, changes)
    target = settings.output or new_folder(f"check-{loaded.name}")
    if holds_a_run(target):
        with Ledger.read(target) as recorded:
            loaded = as_begun(loaded, recorded.facts())
    else:
        session.say_how_it_is_scored(loaded)
    ledger = open_ledger(
        target,
        run_facts(loaded, lm, settings),
        {"source": source, "changes": changes, "command": command(*sys.argv[1:])},
    )
    raise typer.Exit(exit_code(session.execute(loaded, lm, settings, ledger, target, as_json, quiet)))
