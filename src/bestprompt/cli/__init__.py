"""The command line ``bestprompt``."""

from bestprompt.cli.app import main

__all__ = ["main"]
