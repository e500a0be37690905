"""What a person reads when the server is broken: what is wrong, where, how often it was tried, and then what to do."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from bestprompt.cli import main

TOML = """
[task]
data = "pairs.csv"
examples = ["Repeat the word.", "Echo."]
[model]
kind = "openai"
name = "m"
base_url = "{url}"
max_retries = {retries}
concurrency = 1
[budget]
calls = 12
"""
HTML = b"<html><title>Sign in</title></html>"
TRIED = "(asked 2 times; `max_retries` allows more, a lower `concurrency` needs fewer)"


@pytest.mark.parametrize(
    ("retries", "reply", "said"),
    [
        (1, None, f"Cannot reach the server of m at HOST: [Errno] Connection refused {TRIED}"),
        (
            1,
            (429, {"Retry-After": "0"}, {"error": {"message": "slow down"}}),
            f"m: Error code: 429 - slow down {TRIED}",
        ),
        (0, (500, {}, {"error": {"message": "oops"}}), "m: Error code: 500 - oops"),
        (0, (200, {}, HTML), "m answered with HTML: <html><title>Sign in</title></html>"),
        (0, (200, {}, b'{"choices": [{"mess'), 'm answered with something that is not JSON: {"choices": [{"mess'),
        (0, (401, {}, {"error": {"message": "?"}}), "The server of m at HOST rejected the key: Error code: 401 - ?"),
    ],
)
def test_the_error_then_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, serve: Any, retries: int, reply: Any, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr("bestprompt.lm.patience.FIRST_WAIT", 0.01)
    monkeypatch.setattr(sys, "argv", ["bestprompt", "run", "t.toml", "-o", "run", "--quiet"])
    (tmp_path / "pairs.csv").write_text("input,output\n" + "\n".join(f"word{n},word{n}" for n in range(12)))
    with serve(lambda _: reply) as (url, _):
        if reply is not None:
            (tmp_path / "t.toml").write_text(TOML.format(url=url, retries=retries))
            with pytest.raises(SystemExit) as ended:
                main()
    if reply is None:  # the server is gone
        (tmp_path / "t.toml").write_text(TOML.format(url=url, retries=retries))
        with pytest.raises(SystemExit) as ended:
            main()
    lines = re.sub(r"Errno \d+", "Errno", capsys.readouterr().err).splitlines()
    assert ended.value.code == 1
    assert lines[-2:] == [
        f"error: {said.replace('HOST', url.split('/')[2])}",
        "Every answer so far is kept. Continue with: bestprompt resume run",
    ]
