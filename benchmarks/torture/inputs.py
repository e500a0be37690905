"""Malformed inputs of every kind that the package takes, and what is done with each: only our own errors may come out.

``KINDS`` maps a name to a strategy and an action. An action gets what was drawn and a scratch folder, and
either returns or raises a ``BestPromptError``; anything else is a defect. ``fuzz.py`` runs thousands, a test some.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import bestprompt as bp
from bestprompt.cli.app import main
from bestprompt.errors import BestPromptError
from bestprompt.ledger import Ledger
from bestprompt.lm.failures import retry_after
from bestprompt.lm.replies import read_reply
from bestprompt.run import standing
from bestprompt.run.preview import preview
from bestprompt.run.setting_tables import SelectionSettings
from bestprompt.run.settings import Settings, load_settings
from bestprompt.scoring.build import KINDS as SCORERS
from bestprompt.tasks import read_prompts
from bestprompt.tasks.opening import from_table
from bestprompt.types import Usage

Action = Callable[[Any, Path], None]

TEXTS = (
    "", " ", "x", "\x00", "a\x00b", "\ud800", "x\udcff", "\u2028", "\x1b[31m", "[/]", "[bold]", "{input}", "{prompt}",
    "{", "../..", "/", ".", "..", "~", "~nobody-there/x", "C:\\x", "nan", "inf", "-1", "1e999", "9" * 5000, "0x10",
    "true", "null", "x" * 300, "/".join("x" * 5000), "é" * 200, "\U0001f600", "http://", "http://h:99999/v1",
    "http://[::1", "https://h/v1?code=1", "http://u:p@h/v1", "ftp://h", "http://h:-1/v1", "http://\ud800/", "(", "[",
    "(?P<x>", "(a+)+$", "\\", "first-letter", "exact", "judge", "paper", "pairs.csv", "missing.csv", "/dev/null",
    "/proc/self/mem", "/dev/full", "folder", "deep.json", "task.toml",
)  # fmt: skip
NUMBERS = (
    0,
    -1,
    1,
    2**31,
    2**63,
    2**64,
    10**400,
    -(10**400),
    0.0,
    -0.0,
    1e308,
    1e-320,
    float("inf"),
    float("nan"),
    0.5,
)

text = st.sampled_from(TEXTS) | st.text(max_size=12)
scalar = st.none() | st.booleans() | st.sampled_from(NUMBERS) | text
value = st.recursive(
    scalar, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=6
)


def _names(table: Any) -> list[str]:
    return [f.name for f in fields(table)] if table is SelectionSettings else list(table.model_fields)


_TABLES = {
    "": [*Settings.model_fields, "mode"],
    **{
        name: _names(kind)
        for name, kind in (
            ("model", type(Settings().model)), ("judge", type(Settings().model)), ("budget", type(Settings().budget)),
            ("search", type(Settings().search)), ("selection", SelectionSettings),
            ("refinement", type(Settings().refinement)),
        )
    },
}  # fmt: skip
_TASK = ("name", "examples", "prompts", "scorer", "template", "system", "max_tokens", "stop", "columns", "x")


def _table(keys: Sequence[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Mostly one odd value under a right key: several would hide one another."""
    known = st.sampled_from(list(keys))
    return st.dictionaries(known, value, min_size=1, max_size=1) | st.dictionaries(known | text, value, max_size=3)


tables = st.fixed_dictionaries(
    {}, optional={name: _table(keys) | value for name, keys in _TABLES.items() if name}
).flatmap(lambda named: _table(_TABLES[""]).map(lambda top: {**top, **named}))
scorer = text | _table(("kind", "pattern", "normalisation", "tolerance", "prompt", "attempts", "max_tokens")).flatmap(
    lambda options: st.sampled_from(sorted(SCORERS)).map(lambda kind: {**options, "kind": kind})
)
task_table = st.tuples(st.just("pairs.csv") | text, _table(_TASK) | st.just({}), st.none() | scorer).map(
    lambda drawn: {"data": drawn[0], **drawn[1], **({} if drawn[2] is None else {"scorer": drawn[2]})}
)
row = st.tuples(
    st.fixed_dictionaries({"input": text, "output": text}),
    _table(("input", "output", "references", "options", "messages", "item", "ideal", "x")) | st.just({}),
).map(lambda drawn: {**drawn[0], **drawn[1]})


def damaged(data: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """The same, and cut off, or with a byte changed, or with one put in between."""
    place, byte = st.integers(0, 10**6), st.binary(max_size=3)

    def change(drawn: tuple[bytes, int, bytes, int]) -> bytes:
        whole, at, other, how = drawn
        at %= len(whole) + 1
        return (whole, whole[:at], whole[:at] + other + whole[at + 1 :], whole[:at] + other + whole[at:])[how]

    return st.tuples(data, place, byte, st.integers(0, 3)).map(change)


def as_json(drawn: Any) -> bytes:
    return json.dumps(drawn, ensure_ascii=False).encode("utf-8", "surrogatepass")


def as_toml(drawn: Any) -> bytes:
    """TOML of tables, inline below the first level; what TOML cannot say is left for its reader to refuse."""

    def one(thing: Any) -> str:
        if isinstance(thing, dict):
            return "{" + ", ".join(f"{json.dumps(str(k))} = {one(v)}" for k, v in thing.items()) + "}"
        if isinstance(thing, list):
            return "[" + ", ".join(map(one, thing)) + "]"
        return json.dumps(thing, ensure_ascii=False) if isinstance(thing, str | bool) else str(thing)

    top = [f"{json.dumps(str(k))} = {one(v)}" for k, v in drawn.items() if not isinstance(v, dict)]
    below = [
        "\n".join([f"[{json.dumps(str(k))}]", *(f"{json.dumps(str(a))} = {one(b)}" for a, b in v.items())])
        for k, v in drawn.items()
        if isinstance(v, dict)
    ]
    return "\n".join([*top, *below]).encode("utf-8", "surrogatepass")


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    names = list(dict.fromkeys(name for each in rows for name in each)) or ["input", "output"]
    lines = [",".join(names), *(",".join(str(each.get(name, "")) for name in names) for each in rows)]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


GOOD = {
    "pairs.csv": b"input,output\na,b\nc,d\ne,f\ng,h\n",
    "chat.jsonl": b'{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n' * 1,
    "prompts.txt": b"Say it.\nTell it.\n",
    "deep.json": b"[" * 100_000,
    "task.toml": b'[task]\ndata = "pairs.csv"\nexamples = ["Say.", "Tell."]\n[model]\nkind = "openai"\nname = "m"\n'
    b'base_url = "http://127.0.0.1:9/v1"\n',
}


def furnish(folder: Path) -> None:
    """Files that inputs may name, a folder among them, and a finished run."""
    for name, content in GOOD.items():
        (folder / name).write_bytes(content)
    (folder / "folder").mkdir()
    (folder / "folder.toml").mkdir()
    bp.optimize(_task(), _model(), budget=6, ledger=folder / "run")


@cache
def _task() -> bp.Task:
    return bp.Task.from_pairs([("a", "b"), ("c", "d"), ("e", "f")], ["Say.", "Tell."], scorer="exact")


@cache
def _model() -> Any:
    return bp.lm.function(lambda request: request.messages[-1].content[-1:], name="m")


def _overrides(drawn: Mapping[str, Any], _: Path) -> None:
    load_settings(None, drawn)


def _file(name: str, act: Callable[[Path], object]) -> Action:
    def action(content: bytes, folder: Path) -> None:
        path = folder / name
        path.write_bytes(content)
        act(path)

    return action


def _both(path: Path) -> None:
    settings = load_settings(path)
    task = bp.Task.load(path)
    preview(task, _model(), settings)


def _small_run(drawn: tuple[list[tuple[str, str]], list[str], Any, str], _: Path) -> None:
    pairs, prompts, score, said = drawn
    lm = bp.lm.function(lambda request: said, name="m")
    task = bp.Task.from_pairs(pairs, prompts, scorer=score, lm=lm)
    bp.optimize(task, lm, budget=5)


def _settled(drawn: tuple[bytes, str], _: Path) -> None:
    body, api = drawn
    read_reply(body, api, "m", 0.0, lambda said: Usage(1, 1, 1), lambda said: said)  # type: ignore[arg-type]


def _command(arguments: list[str], folder: Path) -> None:
    """The command line in this process: any exit code but that of a crash, and no traceback."""
    before = Path.cwd()
    os.chdir(folder)
    argv, sys.argv = sys.argv, ["bestprompt", *arguments]
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main()
    except SystemExit as ended:
        if ended.code not in (0, 1, 2, 3, None):
            raise AssertionError(f"exit code {ended.code}") from ended
    finally:
        sys.argv = argv
        os.chdir(before)
    if set(folder.parent.iterdir()) != {folder}:
        raise AssertionError("something was written outside of the folder")


def _flipped(drawn: list[tuple[int, int]], folder: Path) -> None:
    bad = folder / "bad"
    shutil.rmtree(bad, ignore_errors=True)
    bad.mkdir()
    content = bytearray((folder / "run" / "ledger.db").read_bytes())
    for at, bit in drawn:
        content[at % len(content)] ^= 1 << bit
    (bad / "ledger.db").write_bytes(content)
    with Ledger.read(bad) as ledger:
        standing(ledger)


def _rewritten(drawn: tuple[str, str, Any], folder: Path) -> None:
    table, column, other = drawn
    bad = folder / "bad"
    shutil.rmtree(bad, ignore_errors=True)
    shutil.copytree(folder / "run", bad)
    db = sqlite3.connect(bad / "ledger.db", isolation_level=None)
    try:
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute(f"DROP TRIGGER {table}_update")
        stored = other if isinstance(other, str | float | None) else json.dumps(other)
        with contextlib.suppress(sqlite3.Error, UnicodeEncodeError, OverflowError):
            db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = 1 OR {column} LIKE '%evaluations%'", (stored,))
    finally:
        db.close()
    with Ledger.read(bad) as ledger:
        standing(ledger)
    bp.optimize(_task(), _model(), budget=7, ledger=bad)


_reply = st.fixed_dictionaries(
    {}, optional={"choices": st.lists(
        st.fixed_dictionaries({}, optional={
            "message": st.fixed_dictionaries({}, optional={"content": value, "refusal": value}) | value,
            "text": value, "finish_reason": value}) | value, max_size=2) | value,
        "usage": st.fixed_dictionaries({}, optional={"prompt_tokens": value, "completion_tokens": value}) | value,
        "error": value},
)  # fmt: skip
_OPTIONS = (
    "--budget", "-b", "--dollars", "--tokens", "--model", "--base-url", "--candidates", "--r1", "--r2", "--similarity",
    "--dimension", "--draws", "--prompts", "--rewrites", "--refine", "--incumbent", "--mode", "--surrogate",
    "--maximizer", "--seed", "--stop-at", "--stop-loss", "--holdout", "--output", "--top", "--report", "--json",
)  # fmt: skip
# Commands write where they are told to: nothing outside of the scratch folder, please.
_RELATIVE = [t for t in TEXTS if not t.startswith(("/", "~", "..", "-"))]
_where = st.sampled_from(
    ["task.toml", "pairs.csv", "folder", "folder.toml", "run", "first-letter", "\udcff\udcfe", *_RELATIVE]
)
_SERVER = ("--base-url", "http://127.0.0.1:9/v1", "--model", "m")
_arguments = st.tuples(
    st.sampled_from([("run", "--dry-run", *_SERVER), ("resume",), ("show",), ("export",), ("status",), ("init",)]),
    _where,
    st.lists(st.tuples(st.sampled_from(_OPTIONS), _where), max_size=2),
).map(lambda drawn: [*drawn[0], drawn[1], *(part for option in drawn[2] for part in option)])
_COLUMNS = [
    ("run", "value"), ("candidate", "z"), ("candidate", "prompt"), ("candidate", "parent"), ("evaluation", "score"),
    ("evaluation", "request"), ("evaluation", "status"), ("evaluation", "candidate"), ("evaluation", "replication"),
    ("evaluation", "calls"), ("evaluation", "cost"), ("event", "payload"), ("event", "kind"),
]  # fmt: skip
_pairs = st.lists(st.tuples(text, text), max_size=3).map(lambda more: [("q1", "a"), ("q2", "b"), *more])

KINDS: dict[str, tuple[st.SearchStrategy[Any], Action]] = {
    "settings as a mapping": (st.dictionaries(
        st.sampled_from([f"{t}.{k}" if t else k for t, keys in _TABLES.items() for k in keys]) | text, value,
        max_size=3,
    ), _overrides),
    "settings in a file": (damaged(tables.map(as_toml)), _file("fuzz.toml", load_settings)),
    "a project file": (damaged(task_table.map(lambda t: as_toml({"task": t}))), _file("fuzz.toml", _both)),
    "a table of a task": (task_table, lambda table, folder: from_table(table, folder) and None),
    "CSV": (damaged(st.lists(row, max_size=4).map(as_csv)), _file("fuzz.csv", bp.Task.load)),
    "JSON lines": (
        damaged(st.lists(row | value, max_size=4).map(lambda rows: b"\n".join(map(as_json, rows)))),
        _file("fuzz.jsonl", bp.Task.load),
    ),
    "JSON": (
        damaged((st.lists(row, max_size=3) | st.fixed_dictionaries({"examples": value}) | value).map(as_json)),
        _file("fuzz.json", bp.Task.load),
    ),
    "a file of prompts": (
        damaged(value.map(as_json)) | st.binary(max_size=40),
        lambda content, folder: [_file(name, read_prompts)(content, folder) for name in ("p.json", "p.txt")] and None,
    ),
    "a reply": (
        st.tuples(
            damaged((_reply | value).map(as_json)) | st.binary(max_size=30), st.sampled_from(["chat", "completions"])
        ),
        _settled,
    ),
    "when to ask again": (
        st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms"]), text),
        lambda headers, _: retry_after(headers) and None,
    ),
    "a small run": (st.tuples(_pairs, st.lists(text, max_size=3), st.just("exact") | scorer, text), _small_run),
    "a command": (_arguments, _command),
    "a record with flipped bits": (st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 7)), max_size=9), _flipped),
    "a record with other values": (
        st.tuples(st.sampled_from(_COLUMNS), value).map(lambda drawn: (*drawn[0], drawn[1])), _rewritten
    ),
}  # fmt: skip


def attempt(kind: str, drawn: Any, folder: Path) -> str:
    """What came of one input: ``"taken"``, or the name of our own error.

    Raises:
        Exception: Anything else: a defect.
    """
    try:
        KINDS[kind][1](drawn, folder)
    except BestPromptError as error:
        return type(error).__name__
    return "taken"
