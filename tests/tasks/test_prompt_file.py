import json
from pathlib import Path

import pytest

from bestprompt.errors import TaskError
from bestprompt.tasks import read_prompt_file, read_prompts


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "One.\r\n\r\n  Two. \nOne.\n"),
        ("a.json", json.dumps(["One.", "Two.", "One."])),
        ("b.json", json.dumps({"annotations": ["One.", "Two."]})),
        ("c.json", json.dumps({"candidates": [{"system_prompt": "One."}, {"system_prompt": "Two."}]})),
        ("d.json", json.dumps({"prompts": [{"raw": "One.", "label": "x"}, "Two."]})),
        ("a.jsonl", '{"prompt": "One."}\n\n{"instruction": "Two."}\n'),
        ("a.csv", "id,Prompt\n1,One.\n2,Two.\n"),
        ("b.csv", "prompt\nOne.\nTwo.\n"),
        ("c.csv", "One.\nTwo.\n"),
        ("a.tsv", "text\tby\nOne.\tme\nTwo.\tyou\n"),
        ("a.md", "One.\n---\nTwo.\n"),
        ("b.txt", "One.\n-----\n\nTwo.\n---\n"),
        ("b.md", "---\ntitle: mine\n---\nOne.\n---\nTwo.\n"),
    ],
)
def test_layouts(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert read_prompts(tmp_path / name) == ("One.", "Two.")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", "[1,", "line 1"),
        ("a.json", '{"other": "One."}', "no prompt found"),
        ("b.json", '{"prompts": 1}', "is not a text: 1"),
        ("c.json", '["One.", ""]', "is not a text"),
        ("d.json", "[]", "no prompt found"),
        ("a.jsonl", '{"prompt": "One."}\n{"other": "Two."}\n', "line 2: no prompt found"),
        ("a.txt", " \n", "is empty"),
        ("a.csv", "id,who\n1,me\n", "no column named"),
    ],
)
def test_unusable_files_are_refused(tmp_path: Path, name: str, content: str, words: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(TaskError, match=words):
        read_prompts(tmp_path / name)


def test_missing_and_binary_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="no such file"):
        read_prompts(tmp_path / "none.txt")
    (tmp_path / "b.txt").write_bytes(b"ok\n\xff\x00")
    with pytest.raises(TaskError, match="line 2: is not UTF-8"):
        read_prompts(tmp_path / "b.txt")


LONG = "# Role\nYou are a critic.\n\n- Be brief.\n- Be kind."


@pytest.mark.parametrize(
    ("name", "content", "prompts", "said"),
    [
        ("a.md", LONG, (LONG,), "one prompt of 4 lines"),
        ("a.txt", LONG, (LONG,), "one prompt of 4 lines"),
        ("b.txt", "Sort it:\n- by name", ("Sort it:\n- by name",), "one prompt of 2 lines"),
        ("c.md", f"{LONG}\n---\nShort.", (LONG, "Short."), "2 prompts, separated by lines of ---"),
        ("d.txt", "Capital:\nName it.", ("Capital:", "Name it."), "2 prompts, one a line"),
        ("e.csv", "n,instruction\n1,One.\n", ("One.",), "1 prompts in the column “instruction”"),
        ("f.csv", "One.\n", ("One.",), "one column without a header"),
        ("g.txt", "One.\nTwo.\nOne.\n", ("One.", "Two."), "counted once: “One.”"),
    ],
)
def test_how_a_file_was_read_is_said(
    tmp_path: Path, name: str, content: str, prompts: tuple[str, ...], said: str
) -> None:
    (tmp_path / name).write_text(content)
    read = read_prompt_file(tmp_path / name)
    assert read.prompts == prompts
    assert said in " ".join(read.notes)


def test_a_folder_has_a_prompt_in_each_file(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text(LONG)
    (tmp_path / "a.txt").write_text("Short.")
    (tmp_path / "ignored.png").write_bytes(b"\xff")
    assert read_prompts(tmp_path) == ("Short.", LONG)
