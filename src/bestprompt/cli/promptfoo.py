"""``import-promptfoo``, and what ``export --format promptfoo`` writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bestprompt.cli.console import command, say, tell
from bestprompt.errors import LedgerError

if TYPE_CHECKING:
    from bestprompt.ledger import Ledger


def register(app: typer.Typer) -> None:
    """Adds this module's command."""
    app.command("import-promptfoo")(import_promptfoo)


def import_promptfoo(
    config: Annotated[Path, typer.Argument(help="A promptfooconfig.yaml.", show_default=False)] = Path(
        "promptfooconfig.yaml"
    ),
    folder: Annotated[Path, typer.Option("--output", "-o", help="A folder for the project.")] = Path("from-promptfoo"),
) -> None:
    """Make a project from a promptfoo configuration: prompts, tests as pairs, assertions as the score, the model.

    Assertions keep their meaning exactly (equals, contains, icontains, their -all and -any, starts-with, regex,
    is-json, and each with not-); what has no equal here is refused in words. Nothing is sent.

    Example:
      bestprompt import-promptfoo promptfooconfig.yaml -o project
    """
    from bestprompt.integrations.promptfoo import read_config

    found = read_config(config)
    written = found.write(folder)
    for note in found.notes:
        say(f"note: {note}", "yellow")
    tell(f"{len(found.prompts)} prompts, {len(found.rows)} pairs: {written}")
    tell(f"next    {command('run', written, '--dry-run')}")


def configuration(ledger: Ledger, result: Mapping[str, Any]) -> str:
    """The YAML of a finished run: the prompt to use and, if that is another, the incumbent, with the pairs as tests."""
    from bestprompt.integrations.promptfoo import config_of, to_yaml
    from bestprompt.tasks.files import describe
    from bestprompt.tasks.proposing import resolved

    facts, candidates = ledger.facts(), ledger.candidates()
    if "source" not in facts or candidates is None:
        raise LedgerError(
            "A run that was started from Python does not know its task's template; export the prompt alone."
        )
    spec = describe(facts["source"], facts.get("changes", {}))
    score, length, _ = resolved(spec)
    recorded = facts.get("proposed") or {}
    prompts = {"bestprompt": result["prompt_to_use"]}
    incumbent = facts["settings"]["selection"].get("incumbent")
    if incumbent and incumbent.strip() != result["prompt_to_use"]:
        prompts["in use before"] = incumbent.strip()
    model = facts["settings"]["model"]
    config, notes = config_of(spec, recorded.get("scorer", score), prompts, model, recorded.get("max_tokens", length))
    for note in notes:
        say(f"note: {note}", "yellow")
    return to_yaml(config)
