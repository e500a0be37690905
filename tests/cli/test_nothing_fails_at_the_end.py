"""Once the money is spent nothing may fail: odd names, poor terminals, no room for a report, a damaged neighbour."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
from bestprompt.cli import session
from bestprompt.cli.app import main
from bestprompt.ledger import Ledger
from bestprompt.report import html
from bestprompt.run import open_ledger, run_facts
from bestprompt.run.settings import load_settings

PROMPTS = ["Repeat [/] \x1b[31mred\x9b31m ★ →.", "Say [bold] it [/bold] ☃."]
NAME = "odd [/] name"


def _parts() -> tuple[Any, Any, Any]:
    task = bp.Task.from_pairs([(f"w{n}", f"w{n}") for n in range(4)], PROMPTS, scorer="exact", name=NAME)
    lm = bp.lm.function(lambda request: request.messages[-1].content.split()[-1], name="m[/]")
    return task, lm, load_settings(None, {"budget.calls": 8})


def _execute(folder: Path, as_json: bool = False) -> None:
    task, lm, settings = _parts()
    ledger = open_ledger(folder, run_facts(task, lm, settings))
    session.execute(task, lm, settings, ledger, folder, as_json, quiet=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "a[/]b"
    _execute(folder)
    return folder


def _command(monkeypatch: pytest.MonkeyPatch, encoding: str, *arguments: str) -> str:
    printed = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", printed)
    monkeypatch.setattr(sys, "argv", ["bestprompt", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    printed.flush()
    return printed.buffer.getvalue().decode(encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_odd_names_and_escape_sequences_are_shown_and_inert(
    finished: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    shown = _command(monkeypatch, encoding, "show", str(finished))
    listed = _command(monkeypatch, encoding, "status", str(finished.parent))
    assert NAME in shown
    assert "[bold] it [/bold]" in shown
    assert "\\x1b[31mred" in shown
    assert "[/]" in listed
    as_json = _command(monkeypatch, encoding, "show", str(finished), "--json")
    for text in (shown, listed, as_json):
        assert "\x1b[31m" not in text
        assert "\x9b" not in text


def test_the_result_is_printed_though_there_is_no_room_for_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(html.os, "replace", full)
    _execute(tmp_path / "run")
    printed = capsys.readouterr()
    assert f"best prompt for {NAME}" in printed.out
    assert "No space left on device" in printed.err
    assert "--report FILE" in printed.err
    assert not [file for file in (tmp_path / "run").iterdir() if "report" in file.name]


def test_a_run_is_its_owners_alone(finished: Path) -> None:
    assert finished.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in finished.iterdir()} == {0o600}


def test_a_damaged_run_is_shown_as_damaged_beside_the_others(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(finished, tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "ledger.db").write_bytes(b"no database at all " * 500)
    Ledger.create(tmp_path / "newer", {}).close()
    with Ledger.open(tmp_path / "newer") as ledger:
        ledger._db.execute("PRAGMA user_version = 99")
    listed = _command(monkeypatch, "utf-8", "status", str(tmp_path), "--json")
    assert listed.count("damaged: ") == 2
    assert "newer bestprompt" in listed
    assert '"state": "finished"' in listed


def test_a_task_of_any_name_runs_in_the_folder_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    (inside / "pairs.csv").write_text("input,output\na,b\nc,d\n")
    model = '[model]\nkind = "openai"\nname = "m"\nbase_url = "http://127.0.0.1:9/v1"\nmax_retries = 0\n'
    own = '[task]\nname = "../../x"\ndata = "pairs.csv"\nexamples = ["Say."]\n[search]\nsource = "examples"\n'
    (inside / "t.toml").write_text(own + model)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.chdir(inside)
    monkeypatch.setattr(sys, "argv", ["bestprompt", "run", "t.toml", "--quiet"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert next((inside / "runs").iterdir()).name.startswith("x-")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert {path.name for path in inside.iterdir()} == {"pairs.csv", "t.toml", "runs"}
