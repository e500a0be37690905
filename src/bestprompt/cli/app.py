"""The ``bestprompt`` command: its subcommands, and how errors become messages and exit codes.

Exit codes: 0 done, 1 a run that failed, 2 usage or configuration, 3 budget exhausted before an answer, 4 every answer
of the pilot scored 0, 5 a check found the new prompt worse, 6 a check could not decide and was told to fail then, 130
interrupted.
"""

from __future__ import annotations

import inspect
import re
import sys
from typing import Annotated

import typer
from rich.markup import escape

from bestprompt import __version__
from bestprompt.cli import checking, inspecting, promptfoo, running, searching, serving, setting_up
from bestprompt.cli.console import errors, inert, never_fail_to_print, say
from bestprompt.errors import (
    BestPromptError,
    BudgetExhausted,
    ConfigError,
    LedgerError,
    MissingExtraError,
    NothingScored,
    TaskError,
)

app = typer.Typer(
    name="bestprompt",
    help="Find the best prompt for a language model with the fewest calls, and know how sure that is.",
    epilog="Start with: bestprompt run first-letter — or with your own data: bestprompt init",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"bestprompt {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _flowing(text: str) -> str:
    """A docstring whose paragraphs fit any width: lines are joined but for those that are indented, as examples are."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(re.sub(r"\n(?! )", " ", paragraph) for paragraph in paragraphs)


for module in (running, checking, searching, inspecting, serving, setting_up, promptfoo):
    module.register(app)
for each in app.registered_commands:
    each.help = _flowing((each.callback and each.callback.__doc__) or "")


def main() -> None:
    """Runs the command line; a known error is printed as a message, never as a traceback."""
    never_fail_to_print()
    try:
        app(prog_name="bestprompt")
    except KeyboardInterrupt:
        errors.print("Interrupted.")
        sys.exit(130)
    except BestPromptError as error:
        errors.print(f"[red]error:[/] {escape(inert(error))}", soft_wrap=True)
        for what_to_do in getattr(error, "__notes__", ()):
            say(what_to_do)
        sys.exit(_exit_code(error))
    except OSError as error:  # a file that cannot be read or written, wherever that is: it says which, and why
        errors.print(f"[red]error:[/] {escape(inert(error))}", soft_wrap=True)
        sys.exit(2)


def _exit_code(error: BestPromptError) -> int:
    if isinstance(error, BudgetExhausted):
        return 3
    if isinstance(error, NothingScored):
        return 4
    return 2 if isinstance(error, ConfigError | TaskError | LedgerError | MissingExtraError) else 1
