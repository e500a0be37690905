"""``search``: the candidate set alone, as a table and a picture; spends no calls."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from bestprompt.cli import options
from bestprompt.cli.console import output, print_json
from bestprompt.cli.progress import watching
from bestprompt.run.settings import load_settings


def register(app: typer.Typer) -> None:
    """Adds this module's command."""
    app.command("search")(search)


def search(
    task: options.TaskName,
    candidates: options.Candidates = None,
    mode: options.Method = None,
    seed: options.Seed = None,
    r1: options.R1 = None,
    r2: options.R2 = None,
    similarity: options.Similarity = None,
    dimension: options.Dimension = None,
    picture: Annotated[
        Path | None, typer.Option(help="Write a map of the set and how it grew to this HTML file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Show which candidate prompts the search stage finds around a task's examples.

    Moves the examples through the latent space of a text autoencoder and keeps what reads well and stays on the task.
    Prompts that the model writes (`rewrites`) cost calls and are left to `bestprompt run`.
    To use the set in a run, set `source = "latent"` under `[search]`, or pass `--latent` to `bestprompt run`.
    """
    overrides = {
        "search.source": "latent", "search.candidates": candidates, "search.mode": mode, "seed": seed,
        "search.r1": r1, "search.r2": r2, "search.similarity": similarity, "search.dimension": dimension,
    }  # fmt: skip
    settings = load_settings(Path(task) if task.endswith(".toml") else None, overrides)
    from bestprompt.cli import session  # loads the numerical engines, which --help does not need
    from bestprompt.report.html import write_search
    from bestprompt.run.search import build_prompt_set

    lm = session.open_lm(settings, quiet=as_json)
    loaded = session.load_task(task, settings, lm, {})
    with watching(quiet=as_json) as bar:
        bar.stage("fine-tuning on the examples, then growing the set", len(loaded.examples))
        found = build_prompt_set(loaded, settings, lm, progress=lambda done, _all: bar.advance(done))
    if picture is not None:
        write_search(picture, found)
    if as_json:
        rows = zip(found.prompts, found.sources, found.parents.tolist(), strict=True)
        print_json([{"prompt": p, "source": s, "parent": parent} for p, s, parent in rows])
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("#", "from", "prompt"):
        table.add_column(name)
    for n, (prompt, source) in enumerate(zip(found.prompts, found.sources, strict=True)):
        parent = int(found.parents[n])
        table.add_row(str(n), source if parent < 0 else f"{source} ← {parent}", Text(prompt))
    output.print(table)
    rate = found.details.get("acceptance_rate")
    if rate is not None:
        output.print(f"{len(found.prompts)} candidates; {rate:.0%} of the proposals were accepted.")
    if found.details.get("shortfall"):
        output.print(Text(found.details["shortfall"], style="yellow"))
