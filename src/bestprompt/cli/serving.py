"""``ui``: runs in the browser."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Annotated

import typer

from bestprompt.cli.console import errors, words
from bestprompt.errors import MissingExtraError


def register(app: typer.Typer) -> None:
    """Adds this module's command."""
    app.command("ui")(ui)


def ui(
    folder: Annotated[Path, typer.Argument(help="Folder of runs.")] = Path("runs"),
    port: Annotated[int, typer.Option(help="Port to listen at.")] = 8765,
    host: Annotated[
        str, typer.Option(help="Address to listen at; any but loopback needs a token in BESTPROMPT_UI_TOKEN.")
    ] = "127.0.0.1",
    name: Annotated[
        list[str] | None, typer.Option("--name", help="A host name under which the page may be asked for.")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """Watch, compare, start, stop and continue runs in the browser.

    Only this machine can reach the page unless --host says otherwise. It reads the records of runs and writes none: a
    run that is started there is a process of this command line, and stops with the page, resumable as ever.
    """
    missing = [module for module in ("fastapi", "uvicorn", "python_multipart") if not importlib.util.find_spec(module)]
    if missing:
        raise MissingExtraError("bestprompt ui", "ui")
    from bestprompt.ui.server import serve  # loads the numerical engines, which --help does not need

    def say(where: str) -> None:
        errors.print(words(f"{where}  (Ctrl-C ends it)"), soft_wrap=True)

    serve(folder, host, port, os.environ.get("BESTPROMPT_UI_TOKEN") or None, name or [], say, browser)
