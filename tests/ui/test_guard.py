"""Who is let in, over real HTTP: no stranger's name, no stranger's form, nobody without the token."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bestprompt.errors import ConfigError
from bestprompt.ui.guard import COOKIE, CSRF_HEADER, Guard, is_loopback
from bestprompt.ui.server import serve

TOKEN = "a-token-that-is-long-enough"


@pytest.fixture(scope="module")
def pages(serve_pages: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    with serve_pages(tmp_path_factory.mktemp("runs")) as served:
        yield served


def ask(url: str, path: str = "/", method: str = "GET", body: str = "", **headers: str) -> tuple[int, Any, str]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request(method, path, body or None, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def test_the_page_is_served_with_a_strict_policy(pages: tuple[str, str]) -> None:
    status, headers, text = ask(pages[0])
    assert status == 200
    assert "There are no runs here yet" in text
    assert "script-src 'self';" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


def test_a_strangers_name_for_this_machine_is_refused(pages: tuple[str, str]) -> None:
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost.evil.example"):
        assert ask(pages[0], Host=host)[0] == 421
    for host in ("localhost", "127.0.0.1:1", "[::1]:8765"):
        assert ask(pages[0], Host=host)[0] == 200


def test_a_change_must_come_from_our_own_page(pages: tuple[str, str]) -> None:
    url, csrf = pages
    own = {CSRF_HEADER: csrf, "Origin": url}
    for wrong in ({}, {**own, CSRF_HEADER: "guessed"}, {**own, "Origin": "http://evil.example"}, {CSRF_HEADER: csrf}):
        assert ask(url, "/runs/x/stop", "POST", **wrong)[0] == 403
    status, _, text = ask(url, "/runs/x/stop", "POST", **own)
    assert status == 200
    assert "started elsewhere" in text


@pytest.mark.parametrize("path", ["/runs/..%2f..%2fetc", "/runs/%2e%2e", "/runs/none", "/static/../app.py", "/docs"])
def test_there_is_nothing_outside_the_folder(pages: tuple[str, str], path: str) -> None:
    assert ask(pages[0], path)[0] == 404


def test_elsewhere_the_token_is_needed(serve_pages: Any, tmp_path: Path) -> None:
    # It listens on loopback here, and is told that it does not.
    with serve_pages(tmp_path, TOKEN, "0.0.0.0") as (url, _):
        assert ask(url)[0] == 401
        assert ask(url, "/?token=guessed")[0] == 401
        assert ask(url, Host="evil.example")[0] == 421
        status, headers, _ = ask(url, f"/?token={TOKEN}", Host="known.example")
        assert (status, headers["location"]) == (303, "/")
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert ask(url, Cookie=cookie.split(";")[0])[0] == 200
        assert ask(url, Cookie=f"{COOKIE}=guessed")[0] == 401


def test_nobody_is_served_elsewhere_without_a_token(tmp_path: Path) -> None:
    def never(_: str) -> None:
        raise AssertionError

    for host in ("0.0.0.0", "192.168.1.7", "::", "box.example"):
        with pytest.raises(ConfigError, match="BESTPROMPT_UI_TOKEN"):
            serve(tmp_path, host, 1, None, (), never, open_browser=False)
    with pytest.raises(ConfigError, match="too short"):
        serve(tmp_path, "0.0.0.0", 1, "short", (), never, open_browser=False)


def test_addresses_and_names() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "::1", "localhost", "127.8.0.1")))
    assert not any(map(is_loopback, ("0.0.0.0", "10.0.0.1", "localhost.example", "")))
    guard = Guard(lambda *_: None, host="10.0.0.5", token=TOKEN, names=["box"])  # type: ignore[arg-type, return-value]
    assert all(map(guard.knows_host, ("10.0.0.5:80", "box", "[fe80::1]:80")))
    assert not guard.knows_host("evil.example")
