"""Listening: on loopback for whoever is at this machine, elsewhere only with a token."""

from __future__ import annotations

import secrets
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from bestprompt.errors import ConfigError
from bestprompt.ui.app import create_app
from bestprompt.ui.guard import Guard, is_loopback

SHORTEST_TOKEN = 16


def serve(
    folder: Path,
    host: str,
    port: int,
    token: str | None,
    names: Sequence[str],
    say: Callable[[str], None],
    open_browser: bool,
) -> None:
    """Serves the runs in ``folder`` until interrupted.

    Args:
        folder: Where runs are, and where new ones go.
        host: Address to listen at.
        port: Port to listen at.
        token: What users must know; required unless ``host`` is loopback.
        names: Host names under which the machine may be asked for, besides its addresses.
        say: Told where the page is.
        open_browser: Whether to open it.

    Raises:
        ConfigError: If others could reach the page and there is no token, or a short one.
    """
    if not is_loopback(host) and token is None:
        raise ConfigError(
            f"At {host} others can reach this page, start runs with your keys and read your data. Give them a token: "
            f"set BESTPROMPT_UI_TOKEN, for example to {secrets.token_urlsafe(18)}"
        )
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise ConfigError(
            f"BESTPROMPT_UI_TOKEN is too short to keep anyone out: use {SHORTEST_TOKEN} characters or more."
        )
    csrf = secrets.token_urlsafe(24)
    app = Guard(create_app(folder, csrf), host=host, token=token, names=names, csrf=csrf)
    shown = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    say(f"{shown}{'?token=…  (the token is that in BESTPROMPT_UI_TOKEN)' if token else ''}")
    if open_browser:
        webbrowser.open(f"{shown}?token={token}" if token else shown)
    # Pages that wait for events would keep it from ending.
    uvicorn.run(app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=1, server_header=False)
