"""Whole tasks: bundled names, task files, folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from bestprompt.errors import ConfigError, TaskError
from bestprompt.scoring import Choice, Contains, Exact, Number, Regex
from bestprompt.tasks import Task, bundled, from_table, names
from bestprompt.types import Pair

DATA = "input,output\na,1\nb,2\nc,3\nd,4\n"


def write(folder: Path, **files: str) -> Path:
    for name, content in files.items():
        stem, _, suffix = name.rpartition("_")
        (folder / f"{stem}.{suffix}").write_text(content)
    return folder


@pytest.mark.parametrize("name", names())
def test_bundled(name: str) -> None:
    assert Task.load(name) == bundled(name)


@pytest.mark.parametrize(
    ("name", "said"), [("first-leter", "did you mean 'first-letter'"), ("zzz", "bundled tasks: word-sorting")]
)
def test_unknown_names(name: str, said: str) -> None:
    with pytest.raises(TaskError, match=said):
        Task.load(name)


def test_missing_and_strange_files(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="no such file"):
        Task.load(tmp_path / "none.csv")
    with pytest.raises(TaskError, match="no such file"):
        Task.load(tmp_path / "none.toml")
    write(tmp_path, x_docx="hello")
    with pytest.raises(TaskError, match="unknown kind of file"):
        Task.load(tmp_path / "x.docx")


def test_a_task_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        data_csv="question text,right,note\nWhat?,That,x\n",
        prompts_txt="Answer.\nReply.\n",
        t_toml=r"""
            [task]
            name = "mine"
            description = "A test."
            data = "data.csv"
            prompts = "prompts.txt"
            template = "{prompt}\nQ: {input}"
            max_tokens = 9
            stop = "\n"
            scorer = { kind = "regex", pattern = "(\\w+)$" }
            columns = { input = "question text", output = "right" }
            [budget]
            calls = 3
        """,
    )
    task = Task.load(str(tmp_path / "t.toml"))
    assert task.pairs == (Pair("What?", ("That",), {"note": "x"}),)
    assert (task.name, task.description, task.examples) == ("mine", "A test.", ("Answer.", "Reply."))
    assert (task.template, task.max_tokens, task.stop) == ("{prompt}\nQ: {input}", 9, ("\n",))
    assert task.scorer == Regex(r"(\w+)$")


def test_split_files(tmp_path: Path) -> None:
    write(tmp_path, train_csv=DATA, validation_csv="input,output\ne,5\n", test_csv="input,output\nf,6\n")
    task = Task.load(tmp_path)
    assert [len(part) for part in (task.split(0).train, task.split(0).validation, task.split(0).test)] == [4, 1, 1]
    assert len(task.pairs) == 6
    table = {"name": "t", "data": {"train": "train.csv", "test": "test.csv"}}
    with pytest.raises(TaskError, match="no validation"):
        from_table(table, tmp_path)
    write(tmp_path, test_csv="input,output\na,6\n")
    with pytest.raises(TaskError, match=r"'a' is also in train\.csv"):
        Task.load(tmp_path)


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="holds no task"):
        Task.load(tmp_path)
    write(tmp_path, pairs_csv=DATA, prompts_json='{"annotations": ["Do."]}')
    task = Task.load(tmp_path)
    assert (task.name, task.examples, len(task.pairs)) == (tmp_path.name, ("Do.",), 4)
    write(tmp_path, pairs_jsonl='{"input": "a", "output": "1"}\n')
    with pytest.raises(TaskError, match="keep one of the two"):
        Task.load(tmp_path)
    write(tmp_path, task_toml='[task]\ndata = "pairs.csv"\n')
    assert Task.load(tmp_path).name == "task"


def test_a_bundled_task_may_be_changed(tmp_path: Path) -> None:
    task = from_table({"name": "first-letter", "examples": ["Do."]}, tmp_path)
    assert task.examples == ("Do.",)
    assert task.pairs == bundled("first-letter").pairs
    assert task.measured_on == bundled("first-letter").measured_on
    other = from_table({"name": "first-letter", "scorer": "exact", "max_tokens": 3}, tmp_path)
    assert (other.scorer, other.max_tokens, other.measured_on) == (Exact(), 3, {})
    with pytest.raises(TaskError, match="no bundled task 'mine'"):
        from_table({"name": "mine"}, tmp_path)


def test_the_default_score_is_choice_where_options_are_given(tmp_path: Path) -> None:
    write(tmp_path, a_jsonl='{"input": "a or b?", "output": "a", "options": ["a", "b"]}\n', b_csv=DATA)
    assert Task.load(tmp_path / "a.jsonl").scorer == Choice()
    assert Task.load(tmp_path / "b.csv").scorer == Number()
    assert Task.load(tmp_path / "b.csv").as_proposed(None).scorer == Exact()  # as a run began that goes on
    changed = Task.load(tmp_path / "b.csv", changes={"scorer": "contains", "max_tokens": 5, "system": "Be brief."})
    assert (changed.scorer, changed.max_tokens, changed.system) == (Contains(), 5, "Be brief.")
    assert Task.load("first-letter", changes={"max_tokens": 5}).max_tokens == 5
    write(tmp_path, c_csv="input,output,options\nlarger?,horse,cat|horse\n")
    task = Task.load(tmp_path / "c.csv")
    assert task.scorer.score(["The horse."], task.pairs)[0].value == 1


@pytest.mark.parametrize(
    ("table", "error", "said"),
    [
        ({"templte": "x"}, ConfigError, "did you mean 'template'"),
        ({"qqq": 1}, ConfigError, "allowed: "),
        ({"max_tokens": "9"}, ConfigError, "wrong type"),
        ({"max_tokens": True}, ConfigError, "wrong type"),
        ({"examples": "Do."}, ConfigError, "wrong type"),
        ({"examples": ["Do."], "prompts": "x.txt"}, ConfigError, "not both"),
        ({"columns": {"inptu": "x"}}, ConfigError, "wrong type"),
        ({"scorer": "exat"}, ConfigError, "did you mean 'exact'"),
        ({"template": "{prompt}"}, TaskError, "must contain {input}"),
        ({"prompts": "none.txt"}, TaskError, "no such file"),
        ({"columns": {"input": "nope"}}, TaskError, "no nope; found 'input', 'output'"),
    ],
)
def test_what_a_table_may_not_hold(tmp_path: Path, table: dict[str, object], error: type[Exception], said: str) -> None:
    write(tmp_path, d_csv=DATA)
    with pytest.raises(error, match=said):
        from_table({"name": "t", "data": "d.csv"} | table, tmp_path)


def test_bad_toml(tmp_path: Path) -> None:
    write(tmp_path, a_toml="[task\n", b_toml="[other]\n", c_toml="task = 3\n")
    with pytest.raises(TaskError, match=r"not TOML.*line 1"):
        Task.load(tmp_path / "a.toml")
    for name in ("b.toml", "c.toml"):
        with pytest.raises(TaskError, match=r"no \[task\] table"):
            Task.load(tmp_path / name)
