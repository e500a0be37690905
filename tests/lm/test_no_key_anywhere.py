"""A key shows nowhere: not in the record, the report, the terminal, a log or an exception, whatever a server echoes."""

from __future__ import annotations

import base64
import json
import logging
import traceback
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import bestprompt as bp
from bestprompt.cli.app import main
from bestprompt.errors import BestPromptError, ConfigError, LMAuthError
from bestprompt.lm import patience
from bestprompt.lm.secrets import Scrubber
from bestprompt.run.settings import load_settings, recorded_settings

KEY = 'sk-canary/4+2="&<7>\\end'
TASK = bp.Task.from_pairs([("a", "four"), ("b", "four")], ["Say four.", "Four!"], scorer="exact", max_tokens=4)
ECHOES = {
    "plain": KEY,
    "escaped": json.dumps(KEY),
    "percent": quote(KEY, safe=""),
    "lower percent": quote(KEY, safe="").lower(),
    "base64": base64.b64encode(KEY.encode()).decode(),
    "basic": base64.b64encode(f"user:{KEY}".encode()).decode(),
    "bearer": base64.b64encode(f"Bearer {KEY}!".encode()).decode(),
    "hex": KEY.encode().hex(),
}


def _needles() -> list[bytes]:
    whole = [*ECHOES.values(), repr(KEY)[1:-1], KEY[:12], base64.b64encode(KEY.encode()).decode()[:16]]
    return [needle.encode() for needle in whole]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(patience, "FIRST_WAIT", 0.01)


def _reply(kind: str, echo: str, answer: Any) -> Any:
    said = f"you sent {echo} as your key"
    if kind == "answer":
        return 200, {}, answer(said)
    if kind == "refusal":
        return 200, {}, answer(None, refusal=said)
    if kind == "html":
        return 200, {"Content-Type": "text/html"}, f"<html>{'x' * 150} {said}</html>".encode()
    if kind == "error under 200":
        return 200, {}, {"error": {"message": said}}
    return int(kind), {}, {"error": {"message": said}}


@pytest.mark.parametrize("kind", ["answer", "refusal", "html", "error under 200", "400", "401", "404", "429", "500"])
def test_the_canary_is_nowhere(
    serve: Any, chat_answer: Any, tmp_path: Path, capfd: Any, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    caplog.set_level(logging.DEBUG)
    raised = []
    echo = " and ".join(ECHOES.values())
    with serve(lambda _: _reply(kind, echo, chat_answer)) as (url, seen):
        model = bp.lm.openai("m", url, max_retries=1)
        try:
            bp.optimize(TASK, model, budget=8, ledger=tmp_path)
        except BestPromptError as error:
            raised = [str(error), repr(error), *traceback.format_exception(error)]
        raised.append(repr(model))
    assert seen
    printed = capfd.readouterr()
    shown = [*raised, caplog.text, printed.out, printed.err]
    kept = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert any(b"***" in content for content in kept)
    for needle in _needles():
        assert not [text for text in shown if needle in text.encode()], (kind, needle)
        assert not [content for content in kept if needle in content], (kind, needle)


def test_each_form_is_scrubbed() -> None:
    scrub = Scrubber(KEY, None, "")
    for name, echo in ECHOES.items():
        text = scrub(f"before {echo} after")
        assert text.startswith("before "), name
        assert text.endswith(" after"), name
        assert "***" in text, name
    assert scrub("nothing to hide") == "nothing to hide"


def test_a_key_is_stripped_and_checked_when_it_is_read(
    serve: Any, ask: Any, chat_answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "  sk-canary-1\r\n")
    with serve(lambda _: (200, {}, chat_answer("four"))) as (url, _):
        assert bp.lm.openai("m", url).complete([ask("hi")])[0].text == "four"
    for bad in ("sk-canary\n1", "sk-canäry", "sk canary"):
        monkeypatch.setenv("OPENAI_API_KEY", bad)
        with pytest.raises(LMAuthError, match="OPENAI_API_KEY") as refused:
            bp.lm.openai("m", "http://127.0.0.1:9/v1")
        assert bad not in str(refused.value)


@pytest.mark.parametrize(
    "line",
    [
        'api_key = "sk-canary-1"',
        'apikey = "sk-canary-1"',
        'api_token = "sk-canary-1"',
        'api_key_env = "sk-canary-1"',
        'api_key_env = "sk_canary_1"',
        'base_url = "https://h/v1?API-KEY=sk-canary-1"',
        'base_url = "https://h/v1?code=sk-canary-1"',
        'base_url = "https://h/v1?sig=sk-canary-1"',
        'base_url = "https://h/v1?sk-canary-1"',
        'base_url = "https://h/v1#sk-canary-1"',
        'base_url = "https://u:sk-canary-1@h/v1"',
        'options = { API_KEY = "sk-canary-1" }',
    ],
)
def test_a_credential_in_a_file_is_refused_and_not_shown(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    file = tmp_path / "run.toml"
    file.write_text(f'[task]\nname = "first-letter"\n[model]\nkind = "openai"\nname = "m"\n{line}\n')
    with pytest.raises(ConfigError) as refused:
        load_settings(file)
    monkeypatch.setattr("sys.argv", ["bestprompt", "run", str(file), "-o", str(tmp_path / "run")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert "environment variable" in str(refused.value) or "allow_query" in str(refused.value)
    assert "canary" not in str(refused.value) + printed.out + printed.err
    assert not (tmp_path / "run").exists()


def test_a_query_may_be_allowed_by_name_and_records_go_on() -> None:
    url = "https://h/v1?api-version=2024&tenant=ours"
    table = {"model.kind": "openai", "model.name": "m", "model.base_url": url}
    with pytest.raises(ConfigError, match=r'allow_query = \["tenant"\]'):
        load_settings(None, table)
    for odd in ("http://h:sk-canary-1/v1", "http://u:sk-canary-1@h:99999/v1", "http://[sk-canary-1"):
        with pytest.raises(ConfigError) as refused:
            load_settings(None, {**table, "model.base_url": odd})
        assert "canary" not in str(refused.value)
    allowed = load_settings(None, {**table, "model.allow_query": ["tenant"]})
    assert allowed.model.base_url == url
    recorded = {"settings": {"model": {"kind": "openai", "name": "m", "base_url": url, "api_key_env": "my_key"}}}
    assert recorded_settings(recorded).model.base_url == url
