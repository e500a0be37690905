"""A record that may only be read is read; one that is damaged says so, to whoever looks at it or goes on with it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
from bestprompt.cli.app import main
from bestprompt.errors import LedgerError
from bestprompt.ledger import Ledger
from bestprompt.run import open_ledger, run_facts, standing
from bestprompt.run.settings import load_settings

TASK = bp.Task.from_pairs([(f"w{n}", f"w{n}") for n in range(6)], ["Repeat.", "Say it again."], scorer="exact")
NOBODY = 65534


def _lm() -> Any:
    return bp.lm.function(lambda request: request.messages[-1].content.split()[-1], name="m")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    bp.optimize(TASK, _lm(), budget=8, ledger=folder)
    return folder


@pytest.fixture
def untouchable(finished: Path) -> Iterator[Path]:
    """A copy of the run in a folder that this user may read and not write; even if this user is root."""
    parent = Path(tempfile.mkdtemp())
    parent.chmod(0o755)
    folder = Path(shutil.copytree(finished, parent / "run"))
    root = os.geteuid() == 0
    for path in (*folder.iterdir(), folder):
        if root:
            os.chown(path, NOBODY, NOBODY)
        path.chmod(0o500 if path.is_dir() else 0o400)
    if root:
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o700)
        shutil.rmtree(parent)


def test_a_folder_that_may_only_be_read_is_read(untouchable: Path) -> None:
    assert not os.access(untouchable, os.W_OK, effective_ids=True)
    with Ledger.read(untouchable) as ledger:
        assert standing(ledger).prompt in TASK.examples
        with pytest.raises(sqlite3.OperationalError):
            ledger._db.execute("DELETE FROM event")
    assert not [path for path in untouchable.iterdir() if path.name not in ("ledger.db", "ledger.lock")]
    with pytest.raises(LedgerError, match="cannot be opened"):
        bp.optimize(TASK, _lm(), budget=10, ledger=untouchable)
    with pytest.raises(LedgerError, match="cannot be made"):
        bp.optimize(TASK, _lm(), budget=10, ledger=untouchable / "new")


def test_what_a_killed_run_had_not_yet_moved_into_the_file_is_read_too(untouchable: Path, finished: Path) -> None:
    if os.geteuid() == NOBODY:
        os.seteuid(0)
    folder = untouchable
    folder.chmod(0o700)
    (folder / "ledger.db").chmod(0o600)
    with closing(sqlite3.connect(folder / "ledger.db")) as db:
        db.execute("INSERT INTO event (kind, payload, created) VALUES ('late', '{}', 0)")
        db.commit()
        shutil.copyfile(folder / "ledger.db-wal", folder / "kept")
        before = (folder / "ledger.db").read_bytes()
    (folder / "ledger.db").write_bytes(before)
    (folder / "kept").rename(folder / "ledger.db-wal")
    for path in (*folder.iterdir(), folder):
        path.chmod(0o500 if path.is_dir() else 0o400)
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
    if os.geteuid() == 0:
        os.seteuid(NOBODY)
    with Ledger.read(folder) as ledger:
        assert ledger.payloads("late") == [{}]


def _sql(*statements: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        with closing(sqlite3.connect(folder / "ledger.db", isolation_level=None)) as db:
            for statement in statements:
                db.execute(statement)

    return change


def _bytes(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        file = folder / "ledger.db"
        file.write_bytes(change(file.read_bytes()))

    return changed


_FREE = [f"DROP TRIGGER {table}_update" for table in ("run", "candidate", "evaluation", "event")]
DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "newer": (_sql("PRAGMA user_version = 99"), "newer bestprompt"),
    "renamed column": (_sql("ALTER TABLE evaluation RENAME COLUMN score TO points"), "no column score"),
    "dropped table": (_sql("DROP TABLE outcome"), "no column intent"),
    "cut off": (_bytes(lambda data: data[: len(data) // 2]), "damaged"),
    "no database": (_bytes(lambda data: b"no database at all" * 200), "damaged"),
    "empty pages": (_bytes(lambda data: data[:4096] + bytes(len(data) - 4096)), "damaged"),
    "flipped bytes": (_bytes(lambda data: data[:4096] + bytes(255 - b for b in data[4096:])), "damaged"),
    "schema in another tongue": (_bytes(lambda data: data.replace(b"CREATE TABLE", b"CREATE \xe4ABLE")), "damaged"),
    "half a fact": (_sql(*_FREE, "UPDATE run SET value = '{' WHERE key = 'settings'"), "damaged"),
    "settings of other kinds": (_sql(*_FREE, "UPDATE run SET value = '[1]' WHERE key = 'settings'"), "damaged"),
    "a missing fact": (_sql("DROP TRIGGER run_delete", "DELETE FROM run WHERE key = 'settings'"), "settings"),
    "coordinates of other lengths": (_sql(*_FREE, "UPDATE candidate SET z = x'00' WHERE n = 1"), "damaged"),
    "a score that is none": (_sql(*_FREE, "UPDATE evaluation SET score = 'high' WHERE id = 1"), "the evaluation"),
    "a candidate that is none": (
        _sql(*_FREE, "PRAGMA foreign_keys = OFF", "UPDATE evaluation SET candidate = 77 WHERE id = 1"),
        "the evaluation 77",
    ),
    "a plan of nothing": (_sql(*_FREE, "UPDATE event SET payload = '{}' WHERE kind = 'planned'"), "damaged"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_record_is_refused_in_one_sentence(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    change, said = DAMAGE[name]
    folder = Path(shutil.copytree(finished, tmp_path / "run"))
    change(folder)
    for command in ("show", "export", "resume"):
        monkeypatch.setattr(sys, "argv", ["bestprompt", command, str(folder)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2, command
        printed = " ".join(capsys.readouterr().err.split())
        assert printed.startswith("error: ")
        assert said in printed or (command == "resume" and "started from Python" in printed), command
    with pytest.raises(LedgerError), open_ledger(folder, run_facts(TASK, _lm(), load_settings())) as ledger:
        bp.run.live.Run(TASK, _lm(), load_settings(), ledger).execute()
