import json
from pathlib import Path

import pytest

from bestprompt.errors import TaskError
from bestprompt.tasks import read_prompts


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "One.\r\n\r\n  Two. \nOne.\n"),
        ("a.json", json.dumps(["One.", "Two.", "One."])),
        ("b.json", json.dumps({"annotations": ["One.", "Two."]})),
        ("c.json", json.dumps({"candidates": [{"system_prompt": "One."}, {"system_prompt": "Two."}]})),
        ("d.json", json.dumps({"prompts": [{"raw": "One.", "label": "x"}, "Two."]})),
        ("a.jsonl", '{"prompt": "One."}\n\n{"instruction": "Two."}\n'),
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
