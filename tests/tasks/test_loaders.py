"""User files: what is understood, and what is refused by file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bestprompt.errors import TaskError
from bestprompt.tasks import Task
from bestprompt.types import Pair


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def lines(*records: object) -> str:
    return "\n".join(json.dumps(record) for record in records) + "\n"


# ------------------------------------------------------------------------------------------------------------- CSV
def test_csv_with_extra_columns(tmp_path: Path) -> None:
    path = write(
        tmp_path / "capitals.csv", 'input,output,continent\nFrance,Paris,Europe\n"Côte d\'Ivoire","A, b",Africa\n'
    )
    task = Task.load(path)
    assert task.name == "capitals"
    assert task.pairs == (
        Pair("France", ("Paris",), {"continent": "Europe"}),
        Pair("Côte d'Ivoire", ("A, b",), {"continent": "Africa"}),
    )


@pytest.mark.parametrize(
    "column", ["output", "target", "reference", "references", "ideal", "Output", "answer", "label"]
)
def test_csv_names_of_the_answer(tmp_path: Path, column: str) -> None:
    assert Task.load(write(tmp_path / "x.csv", f"Input,{column}\n1,2\n")).pairs == (Pair("1", ("2",)),)


def test_csv_several_references(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", 'input,references\na,x|y\nb,"[""p"", ""q|r""]"\n')
    assert [pair.references for pair in Task.load(path).pairs] == [("x", "y"), ("p", "q|r")]


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfinput,output\r\na,1\r\nb,2\r\n",  # byte-order mark, CRLF: what spreadsheets write
        "input,output\na,1\nb,2\n".encode("utf-16"),
        b"input;output\na;1\nb;2\n",
        b"input,output\na,1\n\nb,2",  # blank line, no newline at the end
    ],
)
def test_csv_dialects(tmp_path: Path, content: bytes) -> None:
    assert Task.load(write(tmp_path / "x.csv", content)).pairs == (Pair("a", ("1",)), Pair("b", ("2",)))


def test_tsv(tmp_path: Path) -> None:
    assert Task.load(write(tmp_path / "x.tsv", "input\toutput\na, b\t1\n")).pairs == (Pair("a, b", ("1",)),)


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        ("input,output\na,1\nb\n", 3, "1 cells"),
        ('input,output\n"two\nlines",1\nb,\n', 4, "output is empty"),
        ('input,output\n"two\nlines",\nb,2\n', 2, "output is empty"),
        ("input,output\n,1\n", 2, "input is empty"),
        ("input,output\na,1\nb,2,3\n", 3, "3 cells"),
        ("input,result\na,1\n", 2, "no output"),
        ("query,output\na,1\n", 2, "no input"),
        ("input,input\na,1\n", 1, "name of its own"),
        ('input,output\na,"1"x\n', 2, "well-formed"),
        ("input,output\na,1\na,2\n", 3, "line 2"),
        (b"input,output\na,1\nb,caf\xe9\n", 3, "UTF-8"),
    ],
)
def test_csv_bad_rows_are_named(tmp_path: Path, content: str | bytes, line: int, said: str) -> None:
    path = write(tmp_path / "x.csv", content)
    with pytest.raises(TaskError, match=said) as caught:
        Task.load(path)
    assert caught.value.file == str(path)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"{path}, line {line}: ")


@pytest.mark.parametrize("content", ["", "  \n", "input,output\n"])
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "json"])
def test_empty_files(tmp_path: Path, content: str, suffix: str) -> None:
    if suffix != "csv":
        content = content.replace("input,output\n", "" if suffix == "jsonl" else "[]")
    with pytest.raises(TaskError, match=r"is empty|holds no rows"):
        Task.load(write(tmp_path / f"x.{suffix}", content))


def test_identical_rows_count_once_and_are_reported(tmp_path: Path) -> None:
    task = Task.load(write(tmp_path / "x.csv", "input,output\na,1\nb,2\na,1\na,1\n"))
    assert len(task.pairs) == 2
    assert task.notes == ("x.csv: 2 rows repeat an earlier one and count once (lines 4, 5)",)


# ----------------------------------------------------------------------------------------------------------- JSONL
def test_jsonl_layouts(tmp_path: Path) -> None:
    chat = [
        {"role": "system", "content": "Name the capital."},
        {"role": "user", "content": "France"},
        {"role": "assistant", "content": "Paris"},
    ]
    records = [
        {"input": "plain", "output": 7, "topic": "x"},
        {"input": "several", "references": ["a", "b", "a"]},
        {"input": "both", "output": "a", "references": ["b"]},
        {"messages": chat},
        {"input": [*chat[:2], {"role": "user", "content": "really?"}], "ideal": ["Paris", "paris"]},
        {"item": {"input": "hosted", "target": True, "id": 3}},
    ]
    pairs = Task.load(write(tmp_path / "x.jsonl", lines(*records))).pairs
    assert pairs == (
        Pair("plain", ("7",), {"topic": "x"}),
        Pair("several", ("a", "b")),
        Pair("both", ("a", "b")),
        Pair("France", ("Paris",), {"system": "Name the capital."}),
        Pair("user: France\nuser: really?", ("Paris", "paris"), {"system": "Name the capital."}),
        Pair("hosted", ("true",), {"id": 3}),
    )


def test_system_messages_become_the_example_prompts(tmp_path: Path) -> None:
    def record(system: str, question: str) -> dict[str, object]:
        roles = (("system", system), ("user", question), ("assistant", "x"))
        return {"messages": [{"role": role, "content": content} for role, content in roles]}

    path = write(tmp_path / "x.jsonl", lines(record("A", "1"), record("B", "2"), record("A", "3")))
    assert Task.load(path).examples == ("A", "B")


def test_jsonl_line_separator_inside_a_text(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.jsonl", '\ufeff{"input": "a\u2028b", "output": "1"}\r\n\r\n{"input": "c", "output": "2"}\r\n'
    )
    assert [pair.input for pair in Task.load(path).pairs] == ["a\u2028b", "c"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ('{"input": "b", "output": }', "not JSON"),
        ('["input"]', "expected an object"),
        ('{"input": "b"}', "no output"),
        ('{"input": "b", "output": null}', "must be text"),
        ('{"input": "b", "output": []}', "empty list"),
        ('{"input": "b", "output": ["x", ""]}', "empty"),
        ('{"input": {"x": 1}, "output": "x"}', "must be text"),
        ('{"output": "x"}', "no input"),
        ('{"messages": []}', "list of turns"),
        ('{"messages": [{"role": "user", "content": "x"}]}', "assistant"),
        ('{"messages": [{"role": "assistant", "content": "x"}]}', "no user message"),
        ('{"messages": [{"role": "bard", "content": "x"}, {"role": "assistant", "content": "x"}]}', "role"),
    ],
)
def test_jsonl_bad_rows_are_named(tmp_path: Path, bad: str, said: str) -> None:
    path = write(tmp_path / "x.jsonl", '{"input": "a", "output": "1"}\n\n' + bad + "\n")
    with pytest.raises(TaskError, match=said) as caught:
        Task.load(path)
    assert caught.value.line == 3


# ------------------------------------------------------------------------------------------------------------ JSON
def test_instruction_induction(tmp_path: Path) -> None:
    content = {
        "metadata": {"num_examples": 3},
        "examples": {
            "1": {"input": "place", "output": "p"},
            "2": {"input": "sing", "output": "ring", "other_rhymes": ["king", "wing"]},
            "3": {"input": "cat, horse", "output": "horse", "small": "cat", "large": "horse"},
        },
    }
    pairs = Task.load(write(tmp_path / "x.json", json.dumps(content, indent=2))).pairs
    assert pairs[0] == Pair("place", ("p",))
    assert pairs[1] == Pair("sing", ("ring", "king", "wing"))
    assert pairs[2] == Pair("cat, horse", ("horse",), {"small": "cat", "large": "horse", "options": ["cat", "horse"]})


def test_big_bench_hard(tmp_path: Path) -> None:
    content = {
        "canary": "x",
        "examples": [{"input": "not ( True ) is", "target": "False"}, {"input": "1", "target": "2"}],
    }
    assert Task.load(write(tmp_path / "x.json", json.dumps(content))).pairs == (
        Pair("not ( True ) is", ("False",)),
        Pair("1", ("2",)),
    )


def test_json_list(tmp_path: Path) -> None:
    assert len(Task.load(write(tmp_path / "x.json", '[{"input": 1, "output": 2}]')).pairs) == 1


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        ('{"examples": {\n"1": {"input": "a", "output": "b"},\n"2": {"input": "c"}}}', 3, "no output"),
        ('{"examples": {\n"1": {"input": "a", "output": "b"},\n"1": {"input": "a", "output": "c"}}}', 3, "line 2"),
        ('[\n{"input": "a", "output": "b"},\n\n3]', 4, "expected an object"),
        ('{"examples":\n 3}', 2, "must be a list or an object"),
        ('{"other": []}', None, "examples"),
        ('[{"input": "a",\n "output" "b"}]', 2, "not JSON"),
    ],
)
def test_json_bad_rows_are_named(tmp_path: Path, content: str, line: int | None, said: str) -> None:
    with pytest.raises(TaskError, match=said) as caught:
        Task.load(write(tmp_path / "x.json", content))
    assert caught.value.line == line
